/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call comes to, given what the transaction found: a pure decision, and
 * the answer that goes with it. Nothing is promised before the commit.
 */
#ifndef PRODUCER_DECIDE_H
#define PRODUCER_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "db/db_submit.h"
#include "domain/event.h"
#include "producer_item.h"
#include "producer_settings.h"

enum producer_verdict {
    PRODUCER_BUSY,     /* Somebody else works on the request: again in a moment. */
    PRODUCER_KEY_BUSY, /* Somebody else works under the key. */
    PRODUCER_REPLAY,   /* The answer that stands under the key. */
    PRODUCER_ALONE,    /* The same, but it is large and was not read: again, alone. */
    PRODUCER_REUSED,   /* Another call stands under the key. */
    PRODUCER_REFUSE,   /* With problem and detail. */
    PRODUCER_TELL,     /* With status and body; nothing is to be written. */
    PRODUCER_WRITE,    /* The same once `write` is committed. */
};

#define PRODUCER_DETAIL_SIZE 320

struct producer_decision {
    enum producer_verdict verdict;
    const struct http_problem *problem;
    char detail[PRODUCER_DETAIL_SIZE];
    int status;
    struct buf body;
    bool has_location;
    char location[64]; /* Of the request. */
    char headers[160]; /* As they are kept under a key. */
    struct db_idempotency_write answer;
    struct db_submit_write write; /* Borrows from the rest, from the item and from what was found. */
    struct event event;
    struct buf value;
    struct db_submit_document *documents;  /* To add. */
    struct db_document_row *all_documents; /* As they will be. */
    char request_id_text[UUID_TEXT_SIZE];
    char event_id_text[UUID_TEXT_SIZE];
    char time_text[28];
};

/* What every decision of a batch rests on. */
struct producer_ground {
    const struct producer_settings *settings;
    const char *public_url;
    const char *source;
    int64_t clock_us; /* The database's. */
};

/* Fills *ret_decision, which producer_decision_done() empties. index is the item's place in the batch. */
void producer_decide(const struct producer_ground *ground, const struct producer_item *item,
                     const struct db_submit_found *found, size_t index, struct producer_decision *ret_decision);
void producer_decision_done(struct producer_decision *decision);

#endif
