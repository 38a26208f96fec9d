/* SPDX-License-Identifier: Apache-2.0
 *
 * Applying. Order inside the transaction: cursors first (fencing, and it fails
 * fast), then claims in order of id, then dead letters, then the effect of the
 * fresh, with which the commit goes out. After its commit a crash repeats nothing; before it, everything.
 */
#include "consumer_apply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/rand.h"
#include "consumer_hash.h"
#include "db/db_dead_letter.h"
#include "db/db_tx.h"

bool consumer_apply_init(struct consumer_apply *apply, size_t batch_count_max, struct err *err)
{
    apply->count_max = batch_count_max;
    apply->events = calloc(batch_count_max, sizeof *apply->events);
    if (apply->events == NULL) {
        return err_set(err, ERR_FATAL, "out_of_memory", "a batch of %zu events", batch_count_max);
    }
    return consumer_claim_init(&apply->claim, batch_count_max, err);
}

static void free_moves(struct consumer_apply *apply)
{
    free(apply->moves);
    free(apply->move_cursors);
    free(apply->has_moved);
    apply->moves = NULL;
    apply->move_cursors = NULL;
    apply->has_moved = NULL;
    apply->move_count_max = 0;
}

void consumer_apply_done(struct consumer_apply *apply)
{
    consumer_claim_done(&apply->claim);
    free(apply->events);
    apply->events = NULL;
    free_moves(apply);
}

static bool reserve_moves(struct consumer_apply *apply, size_t count, struct err *err)
{
    if (count <= apply->move_count_max) {
        return true;
    }
    free_moves(apply);
    apply->moves = calloc(count, sizeof *apply->moves);
    apply->move_cursors = calloc(count, sizeof *apply->move_cursors);
    apply->has_moved = calloc(count, sizeof *apply->has_moved);
    if (apply->moves == NULL || apply->move_cursors == NULL || apply->has_moved == NULL) {
        return err_set(err, ERR_FATAL, "out_of_memory", "%zu partitions", count);
    }
    apply->move_count_max = count;
    return true;
}

/* What one call of consumer_apply_batch is about. */
struct job {
    struct consumer_apply *apply;
    struct db *db;
    struct consumer_batch *batch;
    struct consumer_cursors *cursors;
};

/* Where each cursor of items[begin, end) goes. Returns how many there are. */
static size_t plan_moves(const struct job *job, size_t begin, size_t end)
{
    struct consumer_apply *apply = job->apply;
    const struct consumer_cursors *cursors = job->cursors;
    size_t count = consumer_batch_moves(job->batch, begin, end, cursors->count, apply->moves, apply->move_cursors);
    for (size_t i = 0; i < count; i++) {
        const struct consumer_cursor *cursor = &cursors->items[apply->move_cursors[i]];
        struct db_progress_move *move = &apply->moves[i];
        move->place = (struct db_progress_place){.topic = cursor->topic, .partition = cursor->partition};
        move->seq = cursor->seq;
        move->attempt = cursor->attempt;
        rand_bytes(move->next_attempt.bytes, sizeof move->next_attempt.bytes);
    }
    return count;
}

/* What the crash matrix must find out if it is switched on: the cursor is committed before the effect. */
static bool commit_cursor_first(struct db *db, struct db_tx **txp, struct err *err)
{
    return !FAILPOINT_FAILS("consumer.offset_first") ||
           (db_tx_commit(txp, err) == DB_TX_COMMITTED && db_tx_begin(db, txp, err));
}

/* Begins by moving the cursors; deliveries of a partition that did not move leave the batch. Then the claims. */
static bool move_then_claim(const struct job *job, size_t begin, size_t end, size_t count, struct db_tx **ret_tx,
                            struct err *err)
{
    struct consumer_apply *apply = job->apply;
    struct consumer_batch *batch = job->batch;
    if (!db_progress_move(job->db, apply->self, apply->moves, count, apply->has_moved, ret_tx, err)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t at = begin; !apply->has_moved[i] && at < end; at++) {
            if (batch->items[at].cursor == apply->move_cursors[i]) {
                batch->items[at].verdict = CONSUMER_VERDICT_LEFT;
            }
        }
    }
    if (!commit_cursor_first(job->db, ret_tx, err)) {
        return false;
    }
    FAILPOINT("consumer.after_cursor_before_inbox");
    return consumer_claim_run(&apply->claim, *ret_tx, batch, begin, end, err);
}

/* Cursors and claims in one journey, as long as nobody has moved one of the cursors and what comes is new; else one
 * after the other. */
static bool move_and_claim(const struct job *job, size_t begin, size_t end, size_t count, struct db_tx **ret_tx,
                           struct err *err)
{
    struct consumer_apply *apply = job->apply;
    const struct db_progress_moves moves = {apply->moves, count, apply->has_moved};
    struct db_inbox_claim claim = {.count = 0};
    bool is_stepwise = FAILPOINT_IS_ARMED("consumer.offset_first") ||
                       FAILPOINT_IS_ARMED("consumer.after_cursor_before_inbox") ||
                       !consumer_claim_prepare(&apply->claim, job->batch, begin, end, &claim);
    if (!is_stepwise && !db_progress_move_and_claim(job->db, apply->self, &moves, &claim, ret_tx, err)) {
        return false;
    }
    return *ret_tx == NULL ? move_then_claim(job, begin, end, count, ret_tx, err)
                           : consumer_claim_finish(&apply->claim, *ret_tx, job->batch, begin, end, &claim, err);
}

/* The effect of what is fresh, and the commit. */
static enum db_tx_outcome commit_effect(struct consumer_apply *apply, struct db_tx **txp,
                                        const struct consumer_batch *batch, size_t begin, size_t end, struct err *err)
{
    size_t count = 0;
    for (size_t i = begin; i < end; i++) {
        const struct consumer_delivery *delivery = &batch->items[i];
        if (delivery->verdict == CONSUMER_VERDICT_FRESH) {
            const struct kafka_record *record = &delivery->message.record;
            apply->events[count++] = (struct db_sink_event){
                .event = &delivery->event, .partition = record->partition, .offset = record->offset};
        }
    }
    const struct sink_ops *ops = apply->sink->ops;
    if (count > 0 && !FAILPOINT_IS_ARMED("consumer.after_sink_before_commit")) {
        return ops->commit(apply->sink, txp, apply->events, count, err);
    }
    if (count > 0 && !ops->apply(apply->sink, *txp, apply->events, count, err)) {
        db_tx_rollback(txp);
        return DB_TX_FAILED;
    }
    FAILPOINT("consumer.after_sink_before_commit");
    return db_tx_commit(txp, err);
}

static bool put_dead_letter(struct consumer_apply *apply, struct db_tx *tx, const struct consumer_delivery *delivery,
                            struct err *err)
{
    const struct kafka_record *record = &delivery->message.record;
    unsigned char hash[CONSUMER_HASH_SIZE];
    consumer_hash_record(record, hash);
    struct db_dead_letter letter = {
        .consumer = apply->self->consumer,
        .scope = apply->self->scope,
        .topic = record->topic,
        .partition = record->partition,
        .offset = record->offset,
        .hash = {hash, sizeof hash},
        .timestamp_ms = record->timestamp_ms,
        .event_id = delivery->is_event ? delivery->event.event_id : NULL,
        .source = delivery->is_event ? delivery->event.source : NULL,
        .key = record->key,
        .value = record->value,
        .headers = record->headers,
        .header_count = record->header_count,
        .reason_code = delivery->reason.code,
        .reason = delivery->reason.text,
    };
    return db_dead_letter_put(tx, &letter, err);
}

static bool put_dead_letters(struct consumer_apply *apply, struct db_tx *tx, const struct consumer_batch *batch,
                             size_t begin, size_t end, struct err *err)
{
    for (size_t i = begin; i < end; i++) {
        if (consumer_delivery_is_dead(&batch->items[i]) && !put_dead_letter(apply, tx, &batch->items[i], err)) {
            return false;
        }
    }
    return true;
}

/* The breaker as it will be if this is kept. */
static struct consumer_breaker breaker_after(const struct consumer_apply *apply, const struct consumer_batch *batch,
                                             size_t begin, size_t end)
{
    struct consumer_breaker breaker = apply->breaker;
    for (size_t i = begin; i < end && !breaker.is_open; i++) {
        bool is_dead = consumer_delivery_is_dead(&batch->items[i]);
        if (is_dead || batch->items[i].verdict == CONSUMER_VERDICT_FRESH) {
            consumer_breaker_feed(&breaker, is_dead);
        }
    }
    return breaker;
}

static void follow_commit(struct consumer_apply *apply, struct consumer_cursors *cursors, size_t move_count)
{
    for (size_t i = 0; i < move_count; i++) {
        struct consumer_cursor *cursor = &cursors->items[apply->move_cursors[i]];
        const struct db_progress_move *move = &apply->moves[i];
        if (!apply->has_moved[i]) {
            cursor->state = CONSUMER_CURSOR_FENCED;
            cursor->until_ms = 0;
            continue;
        }
        cursor->seq++;
        cursor->attempt = move->next_attempt;
        cursor->next_offset = move->next_offset;
        cursor->last_offset = move->last_offset;
        memcpy(cursor->last_hash, move->last_hash, sizeof cursor->last_hash);
        if (cursor->anchor_offset == DB_PROGRESS_OFFSET_NONE) {
            consumer_cursor_anchor(cursor, cursor->last_offset, cursor->last_hash);
        }
    }
}

static void count_verdicts(struct consumer_apply *apply, const struct consumer_batch *batch, size_t begin, size_t end)
{
    uint64_t fresh = 0;
    uint64_t duplicates = 0;
    uint64_t dead = 0;
    for (size_t i = begin; i < end; i++) {
        const struct consumer_delivery *delivery = &batch->items[i];
        fresh += delivery->verdict == CONSUMER_VERDICT_FRESH ? 1 : 0;
        duplicates += delivery->verdict == CONSUMER_VERDICT_DUPLICATE ? 1 : 0;
        dead += consumer_delivery_is_dead(delivery) ? 1 : 0;
    }
    apply->counts.applied += fresh;
    apply->counts.duplicates += duplicates;
    apply->counts.dead_letters += dead;
    apply->counts.batches++;
    apply->counts.batch_records += end - begin;
    apply->claim.reads_first = duplicates > fresh;
}

/* One line for each that is kept: the breaker bounds how many come in a row. What a sink says of a row may hold the
 * row. */
static void tell_dead_letters(const struct consumer_batch *batch, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        const struct consumer_delivery *delivery = &batch->items[i];
        const struct kafka_record *record = &delivery->message.record;
        if (consumer_delivery_is_dead(delivery)) {
            log_warning("consumer.dead_letter",
                        LOG_FIELDS(LOG_TEXT("event_id", delivery->is_event ? delivery->event.event_id : ""),
                                   LOG_TEXT("topic", record->topic), LOG_INT("partition", record->partition),
                                   LOG_INT("offset", record->offset), LOG_ERR(&delivery->reason)),
                        "%s; set aside, going on behind it",
                        delivery->verdict == CONSUMER_VERDICT_REFUSED ? "the sink refused it" : delivery->reason.text);
        }
    }
}

enum range_outcome { RANGE_KEPT, RANGE_REFUSED, RANGE_BREAKER };

/* One transaction over items[begin, end). REFUSED: the sink refuses something in it. */
static bool apply_range(const struct job *job, size_t begin, size_t end, enum range_outcome *ret_outcome,
                        struct err *err)
{
    struct consumer_apply *apply = job->apply;
    struct consumer_batch *batch = job->batch;
    DB_TX_AUTO struct db_tx *tx = NULL;
    consumer_batch_reopen(batch, begin, end);
    size_t move_count = plan_moves(job, begin, end);
    if (!move_and_claim(job, begin, end, move_count, &tx, err)) {
        return false;
    }
    FAILPOINT("consumer.after_inbox_before_sink");
    struct consumer_breaker breaker = breaker_after(apply, batch, begin, end);
    if (breaker.is_open) {
        *ret_outcome = RANGE_BREAKER;
        return true;
    }
    if (!put_dead_letters(apply, tx, batch, begin, end, err)) {
        return false;
    }
    enum db_tx_outcome outcome = commit_effect(apply, &tx, batch, begin, end, err);
    if (outcome != DB_TX_COMMITTED) {
        *ret_outcome = RANGE_REFUSED;
        return outcome == DB_TX_FAILED && err->kind == ERR_PERMANENT;
    }
    FAILPOINT("consumer.after_commit");
    apply->breaker = breaker;
    follow_commit(apply, job->cursors, move_count);
    count_verdicts(apply, batch, begin, end);
    tell_dead_letters(batch, begin, end);
    *ret_outcome = RANGE_KEPT;
    return true;
}

static void refuse(struct consumer_delivery *delivery, const struct err *why)
{
    assert(delivery->is_event && why->kind == ERR_PERMANENT);
    delivery->verdict = CONSUMER_VERDICT_REFUSED;
    delivery->reason = *why;
}

/* Of a range that the sink refuses: the one delivery that is refused, or half of the range. */
static size_t narrow(struct consumer_batch *batch, size_t begin, size_t end, const struct err *why)
{
    if (end - begin > 1) {
        return begin + (end - begin) / 2;
    }
    refuse(&batch->items[begin], why);
    return end;
}

bool consumer_apply_batch(struct consumer_apply *apply, struct db *db, struct consumer_batch *batch,
                          struct consumer_cursors *cursors, enum consumer_apply_outcome *ret_outcome, struct err *err)
{
    assert(batch->count <= apply->count_max && !apply->breaker.is_open);
    if (!reserve_moves(apply, cursors->count, err)) {
        return false;
    }
    const struct job job = {.apply = apply, .db = db, .batch = batch, .cursors = cursors};
    *ret_outcome = CONSUMER_APPLIED;
    size_t begin = 0;
    size_t end = batch->count;
    while (begin < batch->count) {
        enum range_outcome outcome = RANGE_KEPT;
        struct err why = ERR_INIT;
        if (!apply_range(&job, begin, end, &outcome, &why)) {
            *err = why;
            return false;
        }
        if (outcome == RANGE_BREAKER) {
            *ret_outcome = CONSUMER_BREAKER;
            return true;
        }
        if (outcome == RANGE_REFUSED) {
            end = narrow(batch, begin, end, &why);
            continue;
        }
        begin = end;
        end = batch->count;
    }
    return true;
}
