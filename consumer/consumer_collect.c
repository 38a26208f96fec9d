/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes out of Kafka's queue: changes of the assignment, trouble, records.
 * The invariant: when the assignment changes the batch is empty, applied where
 * it still could be.
 */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "consumer_private.h"
#include "db/db.h"

static bool fill_cursors(struct consumer *consumer, const struct kafka_consumer_event *event, struct err *err)
{
    consumer_cursors_done(&consumer->cursors);
    if (!consumer_cursors_init(&consumer->cursors, event->place_count, err)) {
        return false;
    }
    for (size_t i = 0; i < event->place_count; i++) {
        struct consumer_cursor *cursor = &consumer->cursors.items[i];
        *cursor = (struct consumer_cursor){.topic = event->places[i].topic,
                                           .partition = event->places[i].partition,
                                           .state = CONSUMER_CURSOR_UNTAKEN,
                                           .last_offset = DB_PROGRESS_OFFSET_NONE,
                                           .verified_offset = DB_PROGRESS_OFFSET_NONE,
                                           .anchor_offset = DB_PROGRESS_OFFSET_NONE,
                                           .hole_end = DB_PROGRESS_OFFSET_NONE,
                                           .reason = ERR_INIT};
        consumer_measure_cursor(consumer, cursor);
    }
    consumer_cursors_sort(&consumer->cursors);
    return true;
}

/* Everything is assigned paused; what could be taken is started at its place, the rest is taken from the loop. */
static bool on_assigned(struct consumer *consumer, const struct kafka_consumer_event *event, struct err *err)
{
    assert(consumer->batch.count == 0);
    consumer_verify_cancel(consumer);
    if (!fill_cursors(consumer, event, err) ||
        !kafka_consumer_assign(consumer->kafka, event->places, event->place_count, err) ||
        !consumer_place_pause_all(consumer, err)) {
        return false;
    }
    consumer->is_assigned = true;
    consumer->is_unreachable = false;
    consumer->take_at_ms = 0;
    log_info("consumer.assigned", LOG_FIELDS(LOG_INT("partitions", event->place_count)), "%s",
             event->place_count == 0 ? "other members hold them all" : "taking them");
    return true;
}

static bool on_revoked(struct consumer *consumer, bool is_lost, struct err *err)
{
    if (is_lost) {
        consumer_batch_clear(&consumer->batch);
    } else if (!consumer_apply_now(consumer, err)) {
        return false;
    } else {
        consumer_place_hint(consumer);
    }
    log_info(is_lost ? "consumer.lost" : "consumer.revoked", LOG_FIELDS(LOG_INT("partitions", consumer->cursors.count)),
             "%s", is_lost ? "nothing of them is applied any more" : "what was read of them is applied");
    consumer_verify_cancel(consumer);
    consumer_measure_leave(consumer);
    consumer_cursors_done(&consumer->cursors);
    consumer->is_assigned = false;
    return kafka_consumer_unassign(consumer->kafka, err);
}

/* True the first time since the trouble began. What finds no room counts as told: so many codes are one trouble. */
static bool is_new_trouble(struct consumer *consumer, const char *code)
{
    for (size_t i = 0; i < consumer->trouble_code_count; i++) {
        if (strcmp(consumer->trouble_codes[i], code) == 0) {
            return false;
        }
    }
    return consumer->trouble_code_count < CONSUMER_TROUBLE_CODES_MAX &&
           text_copy(consumer->trouble_codes[consumer->trouble_code_count++], ERR_CODE_SIZE, code);
}

static void on_trouble(struct consumer *consumer, const struct err *trouble)
{
    consumer->is_unreachable = consumer->is_unreachable || strcmp(trouble->code, "_ALL_BROKERS_DOWN") == 0;
    consumer->trouble_at_ms = clock_monotonic_ms();
    consumer->trouble_count++;
    if (is_new_trouble(consumer, trouble->code)) {
        log_warning("consumer.kafka_trouble", LOG_FIELDS(LOG_ERR(trouble)), "%s; the library goes on trying",
                    trouble->text);
    }
}

void consumer_collect_tend(struct consumer *consumer, int64_t now_ms)
{
    if (consumer->trouble_count > 0 && now_ms - consumer->trouble_at_ms >= CONSUMER_TROUBLE_QUIET_MS &&
        !consumer->is_unreachable) {
        log_info("consumer.kafka_trouble_over", LOG_FIELDS(LOG_INT("reports", consumer->trouble_count)),
                 "the library has reported no trouble for %d s", CONSUMER_TROUBLE_QUIET_MS / 1000);
        consumer->trouble_count = 0;
        consumer->trouble_code_count = 0;
    }
}

static bool on_out_of_range(struct consumer *consumer, const struct kafka_place *place, struct err *err)
{
    size_t index = consumer_cursors_find(&consumer->cursors, place->topic, place->partition);
    if (index == consumer->cursors.count) {
        return true;
    }
    struct consumer_cursor *cursor = &consumer->cursors.items[index];
    cursor->is_spent = true;
    if (cursor->state != CONSUMER_CURSOR_CHECKING && cursor->state != CONSUMER_CURSOR_RUNNING) {
        return true;
    }
    struct err why = ERR_INIT;
    if (!consumer_verify_log(consumer, cursor, &why)) {
        /* Asked again in a moment: as a check that waits. */
        log_warning("consumer.log_unknown", LOG_FIELDS(LOG_ERR(&why)), "%s; asking again", why.text);
        return consumer_place_start(consumer, cursor, true, err);
    }
    bool is_held = cursor->state == CONSUMER_CURSOR_CHECKING || cursor->state == CONSUMER_CURSOR_RUNNING;
    bool must_compare = cursor->state == CONSUMER_CURSOR_CHECKING;
    return !is_held || consumer->is_suspended || consumer_place_start(consumer, cursor, must_compare, err);
}

static void on_message(struct consumer *consumer, struct kafka_message *message)
{
    const struct kafka_record *record = &message->record;
    size_t index = consumer_cursors_find(&consumer->cursors, record->topic, record->partition);
    bool is_wanted = false;
    if (index < consumer->cursors.count && !consumer->is_suspended && !consumer->is_halted) {
        struct consumer_cursor *cursor = &consumer->cursors.items[index];
        if (cursor->state == CONSUMER_CURSOR_CHECKING || cursor->state == CONSUMER_CURSOR_RUNNING) {
            consumer_verify_record(consumer, cursor, record, &is_wanted);
        }
        if (is_wanted) {
            cursor->read_offset = record->offset + 1;
            consumer_batch_add(&consumer->batch, message, index);
        }
    }
    kafka_message_done(message);
}

static bool on_event(struct consumer *consumer, struct kafka_consumer_event *event, struct err *err)
{
    switch (event->kind) {
    case KAFKA_CONSUMER_NOTHING: return true;
    case KAFKA_CONSUMER_MESSAGE: on_message(consumer, &event->message); return true;
    case KAFKA_CONSUMER_ASSIGNED: return on_assigned(consumer, event, err);
    case KAFKA_CONSUMER_REVOKED: return on_revoked(consumer, false, err);
    case KAFKA_CONSUMER_LOST: return on_revoked(consumer, true, err);
    case KAFKA_CONSUMER_OUT_OF_RANGE:
        return consumer_apply_now(consumer, err) && on_out_of_range(consumer, &event->places[0], err);
    case KAFKA_CONSUMER_TROUBLE: on_trouble(consumer, &event->err); return true;
    }
    assert(!"no such event");
    return false;
}

bool consumer_collect(struct consumer *consumer, int timeout_ms, struct err *err)
{
    while (!consumer_batch_is_full(&consumer->batch)) {
        struct kafka_consumer_event event;
        if (!kafka_consumer_poll(consumer->kafka, timeout_ms, &event, err)) {
            return false;
        }
        if (event.kind == KAFKA_CONSUMER_NOTHING) {
            return true;
        }
        timeout_ms = 0;
        if (!on_event(consumer, &event, err)) {
            return false;
        }
    }
    return true;
}
