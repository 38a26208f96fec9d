/* SPDX-License-Identifier: Apache-2.0
 *
 * Is the topic still the one that was read? The last applied record is read
 * again on assignment, and every few seconds by a second handle. A topic that
 * was deleted, made anew and refilled past the cursor shows no error of its
 * own. The invariant: a partition goes on only if what was read again is the
 * same, or if retention can have taken it.
 */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "consumer_fence.h"
#include "consumer_hash.h"
#include "consumer_private.h"

/* Up to where the log is known to be the old one. Whoever has just taken the partition has verified nothing yet, and
 * knows only what the cursor says. */
static const char *known_word(const struct consumer_cursor *cursor)
{
    return cursor->verified_offset == DB_PROGRESS_OFFSET_NONE ? "applied" : "verified";
}

static long long known_offset(const struct consumer_cursor *cursor)
{
    return cursor->verified_offset == DB_PROGRESS_OFFSET_NONE ? cursor->last_offset : cursor->verified_offset;
}

static void stop_differing(struct consumer *consumer, struct consumer_cursor *cursor, int64_t offset)
{
    consumer_place_stop(consumer, cursor, "record_differs",
                        "the record at offset %lld is not the one that was applied: the topic was made anew; last %s "
                        "offset: %lld; rewind the consumer to go on",
                        (long long)offset, known_word(cursor), known_offset(cursor));
}

/* Once is how the library goes on after a pause or a seek; only what does not help is worth a line. */
static void assign_again(struct consumer *consumer, struct consumer_cursor *cursor, const char *why)
{
    struct err err = ERR_INIT;
    const struct log_field *fields =
        LOG_FIELDS(LOG_TEXT("topic", cursor->topic), LOG_INT("partition", cursor->partition),
                   LOG_INT("offset", cursor->read_offset), LOG_INT("attempt", cursor->restart_count + 1));
    if (cursor->restart_count++ == 0) {
        log_debug("consumer.fetch_restarted", fields, "%s; fetching from here again", why);
    } else {
        log_warning("consumer.fetch_restarted", fields, "%s; fetching from here again", why);
    }
    if (!consumer_place_assign(consumer, &err)) {
        log_warning("consumer.check_failed", LOG_FIELDS(LOG_ERR(&err)), "%s; checking again", err.text);
    }
}

/* The first record since fetching began must be the one that was asked for. One behind it is believed only when a
 * second fetch from the same place gives it again: then compaction or transactions left a hole. Else the library
 * jumped, and what lies between would be skipped without a word. */
static bool is_at_its_place(struct consumer *consumer, struct consumer_cursor *cursor, int64_t offset)
{
    int64_t expected = cursor->state == CONSUMER_CURSOR_CHECKING ? cursor->last_offset : cursor->read_offset;
    if (cursor->is_contiguous || offset < expected) {
        return true;
    }
    if (offset > expected && offset != cursor->hole_end) {
        cursor->hole_end = offset;
        assign_again(consumer, cursor, "the first record is not the one that was asked for");
        return false;
    }
    cursor->is_contiguous = true;
    cursor->restart_count = 0;
    return true;
}

void consumer_verify_record(struct consumer *consumer, struct consumer_cursor *cursor,
                            const struct kafka_record *record, bool *ret_is_wanted)
{
    assert(cursor->state == CONSUMER_CURSOR_CHECKING || cursor->state == CONSUMER_CURSOR_RUNNING);
    *ret_is_wanted = false;
    if (!is_at_its_place(consumer, cursor, record->offset)) {
        return;
    }
    if (cursor->state == CONSUMER_CURSOR_CHECKING && record->offset == cursor->last_offset) {
        unsigned char hash[CONSUMER_HASH_SIZE];
        consumer_hash_record(record, hash);
        if (memcmp(hash, cursor->last_hash, sizeof hash) != 0) {
            stop_differing(consumer, cursor, record->offset);
            return;
        }
        cursor->verified_offset = record->offset;
        consumer_cursor_anchor(cursor, record->offset, hash);
        cursor->state = CONSUMER_CURSOR_RUNNING;
        return;
    }
    if (cursor->state == CONSUMER_CURSOR_CHECKING && record->offset > cursor->last_offset) {
        log_warning("consumer.checkpoint_gone",
                    LOG_FIELDS(LOG_TEXT("topic", cursor->topic), LOG_INT("partition", cursor->partition),
                               LOG_INT("offset", cursor->last_offset)),
                    "compaction took the last applied record; going on without comparing it");
        cursor->state = CONSUMER_CURSOR_RUNNING;
    }
    *ret_is_wanted = cursor->state == CONSUMER_CURSOR_RUNNING && record->offset >= cursor->read_offset;
}

bool consumer_verify_log(struct consumer *consumer, struct consumer_cursor *cursor, struct err *err)
{
    int64_t first = 0;
    int64_t end = 0;
    if (!kafka_reader_log_ends(consumer->reader, cursor->topic, cursor->partition, CONSUMER_ASK_MS, &first, &end,
                               err)) {
        consumer->is_unreachable = true;
        return false;
    }
    int64_t gone_count = 0;
    cursor->until_ms = clock_monotonic_ms() + CONSUMER_CHECK_MS;
    switch (consumer_gap_decide(cursor->last_offset, cursor->next_offset, first, end, &gone_count)) {
    case CONSUMER_GAP_NONE: return true;
    case CONSUMER_GAP_CHECKPOINT_GONE:
        return cursor->state != CONSUMER_CURSOR_CHECKING || consumer_place_start(consumer, cursor, false, err);
    case CONSUMER_GAP_RECORDS_GONE:
        consumer_place_stop(consumer, cursor, "records_gone",
                            "%lld records were deleted before they were applied: the log begins at %lld, the cursor is "
                            "at %lld; rewind the consumer to go on",
                            (long long)gone_count, (long long)first, (long long)cursor->next_offset);
        return true;
    case CONSUMER_GAP_LOG_SHORTER:
        consumer_place_stop(consumer, cursor, "log_shorter",
                            "the log ends at %lld, before the cursor at %lld: the topic was made anew or cut; last %s "
                            "offset: %lld; rewind the consumer to go on",
                            (long long)end, (long long)cursor->next_offset, known_word(cursor), known_offset(cursor));
        return true;
    }
    assert(!"no such gap");
    return false;
}

void consumer_verify_cancel(struct consumer *consumer)
{
    if (consumer->checkpoint.is_active) {
        consumer->checkpoint.is_active = false;
        kafka_reader_stop(consumer->reader);
    }
}

/* The next anchor is taken before the present one is read: if the topic is made anew in between, one of the two
 * readings sees it. */
static bool begin_reading(struct consumer *consumer, size_t index, int64_t now_ms, struct err *err)
{
    const struct consumer_cursor *cursor = &consumer->cursors.items[index];
    struct consumer_checkpoint *checkpoint = &consumer->checkpoint;
    *checkpoint = (struct consumer_checkpoint){.is_active = true,
                                               .cursor = index,
                                               .offset = cursor->anchor_offset,
                                               .next_offset = cursor->last_offset,
                                               .deadline_ms = now_ms + CONSUMER_CHECK_MS};
    memcpy(checkpoint->next_hash, cursor->last_hash, sizeof checkpoint->next_hash);
    struct kafka_place place = {.topic = cursor->topic, .partition = cursor->partition, .offset = checkpoint->offset};
    return kafka_reader_start(consumer->reader, place, err);
}

/* The next running cursor that has an anchor. */
static bool begin_checkpoint(struct consumer *consumer, int64_t now_ms, struct err *err)
{
    while (consumer->checkpoint_next < consumer->cursors.count) {
        size_t index = consumer->checkpoint_next++;
        const struct consumer_cursor *cursor = &consumer->cursors.items[index];
        if (cursor->state == CONSUMER_CURSOR_RUNNING && cursor->anchor_offset != DB_PROGRESS_OFFSET_NONE) {
            return begin_reading(consumer, index, now_ms, err);
        }
    }
    consumer->checkpoint_next = 0;
    consumer->checkpoint_at_ms = now_ms + consumer->settings->checkpoint_ms;
    return true;
}

static void compare(struct consumer *consumer, struct consumer_cursor *cursor, const struct kafka_record *record)
{
    const struct consumer_checkpoint *checkpoint = &consumer->checkpoint;
    unsigned char hash[CONSUMER_HASH_SIZE];
    consumer_hash_record(record, hash);
    bool is_there = record->offset == checkpoint->offset; /* Else compaction took it. */
    if (is_there && memcmp(hash, cursor->anchor_hash, sizeof hash) != 0) {
        stop_differing(consumer, cursor, record->offset);
        return;
    }
    consumer->is_unreachable = false;
    cursor->verified_offset = is_there ? record->offset : cursor->verified_offset;
    consumer_cursor_anchor(cursor, checkpoint->next_offset, checkpoint->next_hash);
}

static bool poll_checkpoint(struct consumer *consumer, int64_t now_ms, struct err *err)
{
    struct consumer_checkpoint *checkpoint = &consumer->checkpoint;
    struct consumer_cursor *cursor = &consumer->cursors.items[checkpoint->cursor];
    enum kafka_reader_outcome outcome = KAFKA_READER_PENDING;
    struct kafka_message message = {.handle = NULL};
    if (cursor->state != CONSUMER_CURSOR_RUNNING) {
        consumer_verify_cancel(consumer);
        return true;
    }
    if (!kafka_reader_poll(consumer->reader, 0, &outcome, &message, err)) {
        return false;
    }
    if (outcome == KAFKA_READER_MESSAGE) {
        checkpoint->is_active = false;
        compare(consumer, cursor, &message.record);
        kafka_message_done(&message);
        return true;
    }
    if (outcome == KAFKA_READER_PENDING && now_ms < checkpoint->deadline_ms) {
        return true;
    }
    /* Not in the log, or a silent broker: fetching exactly at the end of a shorter log is silent too. */
    consumer_verify_cancel(consumer);
    if (!consumer_verify_log(consumer, cursor, err)) {
        return false;
    }
    if (outcome == KAFKA_READER_OUT_OF_RANGE && cursor->state == CONSUMER_CURSOR_RUNNING) {
        consumer_cursor_anchor(cursor, checkpoint->next_offset, checkpoint->next_hash); /* Retention took it. */
    }
    return true;
}

static bool check_waiting(struct consumer *consumer, int64_t now_ms, struct err *err)
{
    for (size_t i = 0; i < consumer->cursors.count; i++) {
        struct consumer_cursor *cursor = &consumer->cursors.items[i];
        bool is_late = cursor->state == CONSUMER_CURSOR_CHECKING && now_ms >= cursor->until_ms;
        if (is_late && !consumer_verify_log(consumer, cursor, err)) {
            cursor->until_ms = clock_monotonic_ms() + CONSUMER_CHECK_MS;
            return false;
        }
        if (is_late && cursor->state == CONSUMER_CURSOR_CHECKING) {
            assign_again(consumer, cursor, "the record at the cursor is on the log and did not come");
            return true;
        }
    }
    return true;
}

/* Nothing comes although the log goes on: whatever the library waits for, it is told again what to fetch. */
static bool is_stalled(struct consumer *consumer, struct consumer_cursor *cursor, int64_t now_ms)
{
    bool has_more = kafka_consumer_end_known(consumer->kafka, cursor->topic, cursor->partition) > cursor->read_offset;
    if (cursor->state != CONSUMER_CURSOR_RUNNING || !has_more || cursor->stall_offset != cursor->read_offset ||
        cursor->stall_at_ms == 0) {
        cursor->stall_offset = cursor->read_offset;
        cursor->stall_wait_ms = CONSUMER_STALL_MS;
        cursor->stall_at_ms = now_ms + cursor->stall_wait_ms;
        return false;
    }
    return now_ms >= cursor->stall_at_ms;
}

static void mend_stalls(struct consumer *consumer, int64_t now_ms)
{
    for (size_t i = 0; i < consumer->cursors.count; i++) {
        struct consumer_cursor *cursor = &consumer->cursors.items[i];
        if (is_stalled(consumer, cursor, now_ms)) {
            cursor->stall_wait_ms *= cursor->stall_wait_ms < CONSUMER_STALL_MAX_MS ? 2 : 1;
            cursor->stall_at_ms = now_ms + cursor->stall_wait_ms;
            assign_again(consumer, cursor, "there is more on the log and nothing comes");
            return;
        }
    }
}

bool consumer_verify_step(struct consumer *consumer, int64_t now_ms, struct err *err)
{
    if (consumer->is_unreachable) {
        /* To wait for an answer now would keep the group's callbacks waiting: a static member that leaves a lost
         * assignment unanswered until the broker is back is fenced by it for good. */
        consumer_verify_cancel(consumer);
        return true;
    }
    if (!check_waiting(consumer, now_ms, err)) {
        return false;
    }
    mend_stalls(consumer, now_ms);
    if (consumer->checkpoint.is_active) {
        return poll_checkpoint(consumer, now_ms, err);
    }
    if (now_ms >= consumer->checkpoint_at_ms) {
        return begin_checkpoint(consumer, now_ms, err);
    }
    return true;
}
