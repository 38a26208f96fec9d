/* SPDX-License-Identifier: Apache-2.0
 *
 * The one transaction of a batch: cursors, inbox, effect, dead letters. Either
 * all of it is kept or nothing. What the sink refuses for good is found by
 * halving the batch, so that only it becomes a dead letter.
 */
#ifndef CONSUMER_APPLY_H
#define CONSUMER_APPLY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "consumer_batch.h"
#include "consumer_breaker.h"
#include "consumer_claim.h"
#include "consumer_cursor.h"
#include "db/db_progress.h"
#include "sinks/sink.h"

struct db;

/* Since the start, for metrics. */
struct consumer_counts {
    uint64_t applied;
    uint64_t duplicates;
    uint64_t dead_letters;
    uint64_t batches;
    uint64_t batch_records;
};

struct consumer_apply {
    const struct db_progress_self *self; /* Borrowed, as the sink. */
    struct sink *sink;
    struct consumer_breaker breaker;
    struct consumer_claim claim;
    struct consumer_counts counts;
    struct db_sink_event *events;
    size_t count_max;
    struct db_progress_move *moves; /* One per assigned partition, as the two below. */
    size_t *move_cursors;
    bool *has_moved;
    size_t move_count_max;
};

bool consumer_apply_init(struct consumer_apply *apply, size_t batch_count_max, struct err *err) MUST_CHECK;
void consumer_apply_done(struct consumer_apply *apply);

enum consumer_apply_outcome {
    CONSUMER_APPLIED, /* All of the batch, but for partitions that were marked FENCED. */
    CONSUMER_BREAKER, /* The breaker opened: what would have opened it was not kept. */
};

/* Applies the batch, which it leaves as it is; cursors that moved are moved, partitions that could not be are
 * marked FENCED, to be looked at. On false a part of the batch, from the front, may have been applied, and the
 * outcome of the last commit may be unknown (code db_commit_unknown): look at every cursor, then read again.
 * TRANSIENT: database or sink are not there. FATAL: this process must stop. */
bool consumer_apply_batch(struct consumer_apply *apply, struct db *db, struct consumer_batch *batch,
                          struct consumer_cursors *cursors, enum consumer_apply_outcome *ret_outcome,
                          struct err *err) MUST_CHECK;

#endif
