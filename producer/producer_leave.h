/* SPDX-License-Identifier: Apache-2.0
 *
 * How an item leaves: with what was committed, with an answer that stood under
 * its key, or refused. Whatever follows it leaves with it.
 */
#ifndef PRODUCER_LEAVE_H
#define PRODUCER_LEAVE_H

#include "db/db_submit.h"
#include "producer_decide.h"
#include "producer_flight.h"
#include "producer_item.h"

struct metric;

struct producer_leave {
    struct producer_flights *flights;
    struct metric *queued;
    struct metric *duplicates;
    struct metric *replays;
};

/* With a decision that is committed, or needs no commit. */
void producer_leave_answered(const struct producer_leave *leave, struct producer_item *item,
                             struct producer_decision *decision, const struct db_submit_found *found);

/* With the answer that stands under its key. */
void producer_leave_replayed(const struct producer_leave *leave, struct producer_item *item,
                             const struct db_idempotency_found *answer);

/* Another call stands under its key. */
void producer_leave_reused(const struct producer_leave *leave, struct producer_item *item,
                           const struct db_idempotency_found *answer);

void producer_leave_refused(const struct producer_leave *leave, struct producer_item *item,
                            const struct http_problem *problem, const char *detail);

/* Somebody else works under its key, and its patience is over. Gives the one that goes on in its place, or NULL. */
struct producer_item *producer_leave_in_progress(const struct producer_leave *leave,
                                                 struct producer_item *item) MUST_CHECK;

#endif
