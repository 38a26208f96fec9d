/* SPDX-License-Identifier: Apache-2.0
 *
 * The batch. Memory for its items is made once. The invariant: every message
 * that was added is given back once.
 */
#include "consumer_batch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "consumer_hash.h"

bool consumer_batch_init(struct consumer_batch *batch, size_t count_max, size_t size_max, struct err *err)
{
    assert(count_max > 0 && size_max > 0);
    *batch = (struct consumer_batch){.count_max = count_max, .size_max = size_max};
    batch->items = calloc(count_max, sizeof *batch->items);
    return batch->items != NULL || err_set(err, ERR_FATAL, "out_of_memory", "a batch of %zu records", count_max);
}

void consumer_batch_done(struct consumer_batch *batch)
{
    consumer_batch_clear(batch);
    free(batch->items);
    batch->items = NULL;
}

void consumer_batch_clear(struct consumer_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        kafka_message_done(&batch->items[i].message);
    }
    batch->count = 0;
    batch->size = 0;
}

bool consumer_batch_is_full(const struct consumer_batch *batch)
{
    return batch->count == batch->count_max || batch->size >= batch->size_max;
}

struct consumer_delivery *consumer_batch_add(struct consumer_batch *batch, struct kafka_message *message, size_t cursor)
{
    assert(!consumer_batch_is_full(batch));
    struct consumer_delivery *delivery = &batch->items[batch->count++];
    *delivery = (struct consumer_delivery){.message = *message, .cursor = cursor, .reason = ERR_INIT};
    *message = (struct kafka_message){.handle = NULL};
    batch->size += delivery->message.size;
    delivery->is_event = kafka_message_decode(&delivery->message, &delivery->event, &delivery->reason);
    if (delivery->is_event) {
        delivery->verdict = CONSUMER_VERDICT_OPEN;
        delivery->payload_hash = consumer_hash_payload(delivery->event.value);
    } else {
        delivery->verdict = CONSUMER_VERDICT_DEAD;
    }
    return delivery;
}

void consumer_delivery_kill(struct consumer_delivery *delivery, const char *code, const char *text)
{
    delivery->verdict = CONSUMER_VERDICT_DEAD;
    err_clear(&delivery->reason);
    err_set(&delivery->reason, ERR_PERMANENT, code, "%s", text);
}

static bool is_final(enum consumer_verdict verdict)
{
    return verdict == CONSUMER_VERDICT_DEAD || verdict == CONSUMER_VERDICT_REFUSED;
}

void consumer_batch_reopen(struct consumer_batch *batch, size_t begin, size_t end)
{
    assert(begin <= end && end <= batch->count);
    for (size_t i = begin; i < end; i++) {
        struct consumer_delivery *delivery = &batch->items[i];
        if (!is_final(delivery->verdict)) {
            delivery->verdict = CONSUMER_VERDICT_OPEN;
        }
    }
}

bool consumer_delivery_is_dead(const struct consumer_delivery *delivery)
{
    return is_final(delivery->verdict) || delivery->verdict == CONSUMER_VERDICT_DIFFERS;
}

size_t consumer_batch_moves(const struct consumer_batch *batch, size_t begin, size_t end, size_t cursor_count,
                            struct db_progress_move *ret_moves, size_t *ret_cursors)
{
    size_t count = 0;
    for (size_t cursor = 0; cursor < cursor_count; cursor++) {
        ret_moves[cursor] = (struct db_progress_move){.record_count = 0};
    }
    for (size_t i = begin; i < end; i++) {
        const struct kafka_record *record = &batch->items[i].message.record;
        struct db_progress_move *move = &ret_moves[batch->items[i].cursor];
        assert(move->record_count == 0 || record->offset > move->last_offset);
        move->record_count++;
        move->last_offset = record->offset;
        move->seq = (int64_t)i; /* Until the end: where its last record is. */
    }
    for (size_t cursor = 0; cursor < cursor_count; cursor++) {
        struct db_progress_move move = ret_moves[cursor];
        if (move.record_count == 0) {
            continue;
        }
        const struct kafka_record *record = &batch->items[move.seq].message.record;
        move.next_offset = move.last_offset + 1;
        consumer_hash_record(record, move.last_hash);
        ret_cursors[count] = cursor;
        ret_moves[count++] = move;
    }
    return count;
}
