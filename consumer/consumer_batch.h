/* SPDX-License-Identifier: Apache-2.0
 *
 * The records that wait to be applied together, in the order in which they came
 * (so in offset order per partition). Owns their messages. No I/O.
 */
#ifndef CONSUMER_BATCH_H
#define CONSUMER_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"
#include "db/db_inbox.h"
#include "db/db_progress.h"
#include "domain/event.h"
#include "kafka/kafka_message.h"

/* What is known of a delivery before and during its transaction. */
enum consumer_verdict {
    CONSUMER_VERDICT_OPEN,      /* An event that is to be claimed. */
    CONSUMER_VERDICT_FRESH,     /* Claimed in this transaction: its effect is due. */
    CONSUMER_VERDICT_DUPLICATE, /* Known, with the same payload. */
    CONSUMER_VERDICT_DIFFERS,   /* Known, with another payload: a dead letter. */
    CONSUMER_VERDICT_DEAD,      /* Never was an event, or its id does not fit: a dead letter. Final. */
    CONSUMER_VERDICT_REFUSED,   /* The sink will never take it: a dead letter and a failed claim. Final. */
    CONSUMER_VERDICT_LEFT,      /* Its partition is no longer ours: nothing of it is applied. */
};

struct consumer_delivery {
    struct kafka_message message;
    size_t cursor; /* Index of its partition. */
    enum consumer_verdict verdict;
    bool is_event;
    struct event event;
    enum db_inbox_source kind;
    struct uuid event_id; /* For own sources. */
    int64_t payload_hash;
    int64_t known_hash; /* What the inbox holds for its id, once that is known. */
    struct err reason;  /* Of a dead letter. */
};

struct consumer_batch {
    struct consumer_delivery *items;
    size_t count;
    size_t count_max;
    size_t size; /* Bytes that the messages keep. */
    size_t size_max;
};

bool consumer_batch_init(struct consumer_batch *batch, size_t count_max, size_t size_max, struct err *err) MUST_CHECK;
void consumer_batch_done(struct consumer_batch *batch);

/* Gives all messages back. */
void consumer_batch_clear(struct consumer_batch *batch);

bool consumer_batch_is_full(const struct consumer_batch *batch);

/* Takes the message over and decodes it. Precondition: not full. */
struct consumer_delivery *consumer_batch_add(struct consumer_batch *batch, struct kafka_message *message,
                                             size_t cursor);

/* A delivery turns into a dead letter for this reason. */
void consumer_delivery_kill(struct consumer_delivery *delivery, const char *code, const char *text);

/* Verdicts that a rolled back transaction made are open again; final ones stay. */
void consumer_batch_reopen(struct consumer_batch *batch, size_t begin, size_t end);

bool consumer_delivery_is_dead(const struct consumer_delivery *delivery);

/* Where each partition of items[begin, end) will be: one move per partition that has any, in order of cursor index.
 * ret_cursors[i] is the index of ret_moves[i]'s partition. Fills what the deliveries tell; the caller adds what the
 * cursor knows. Both arrays have room for cursor_count. Returns the number of moves. */
size_t consumer_batch_moves(const struct consumer_batch *batch, size_t begin, size_t end, size_t cursor_count,
                            struct db_progress_move *ret_moves, size_t *ret_cursors);

#endif
