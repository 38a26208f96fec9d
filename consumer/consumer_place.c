/* SPDX-License-Identifier: Apache-2.0
 *
 * Cursors between database, broker and memory. The invariant: a partition is
 * fetched only while its cursor's last row is ours and is the one that memory
 * knows.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/text.h"
#include "consumer_fence.h"
#include "consumer_private.h"
#include "http/health.h"

#define CURSOR_FIELDS(cursor) LOG_TEXT("topic", (cursor)->topic), LOG_INT("partition", (cursor)->partition)

/* Where the broker is to read a cursor from. */
static struct kafka_place place_of(const struct consumer_cursor *cursor)
{
    struct kafka_place place = {
        .topic = cursor->topic, .partition = cursor->partition, .offset = KAFKA_OFFSET_UNPLACED};
    if (cursor->state == CONSUMER_CURSOR_CHECKING) {
        place.offset = cursor->last_offset;
    } else if (cursor->state == CONSUMER_CURSOR_RUNNING) {
        place.offset = cursor->read_offset;
    }
    return place;
}

bool consumer_place_assign(struct consumer *consumer, struct err *err)
{
    size_t count = consumer->cursors.count;
    struct kafka_place *places = calloc(count, sizeof *places);
    if (places == NULL) {
        return err_set(err, ERR_FATAL, "out_of_memory", "%zu partitions", count);
    }
    for (size_t i = 0; i < count; i++) {
        places[i] = place_of(&consumer->cursors.items[i]);
        consumer->cursors.items[i].is_spent = false;
        consumer->cursors.items[i].is_contiguous = false;
    }
    bool is_good = kafka_consumer_assign(consumer->kafka, places, count, err);
    free(places);
    return is_good;
}

bool consumer_place_start(struct consumer *consumer, struct consumer_cursor *cursor, bool must_compare, struct err *err)
{
    bool compares = must_compare && cursor->last_offset != DB_PROGRESS_OFFSET_NONE;
    cursor->state = compares ? CONSUMER_CURSOR_CHECKING : CONSUMER_CURSOR_RUNNING;
    cursor->read_offset = cursor->next_offset;
    cursor->is_contiguous = false;
    cursor->hole_end = DB_PROGRESS_OFFSET_NONE;
    cursor->until_ms = clock_monotonic_ms() + CONSUMER_CHECK_MS;
    bool is_placed = cursor->is_spent ? consumer_place_assign(consumer, err)
                                      : kafka_consumer_seek(consumer->kafka, place_of(cursor), err);
    return is_placed && kafka_consumer_resume(consumer->kafka, cursor->topic, cursor->partition, err);
}

/* A pause that fails means that the partition is no longer assigned: its event is on the way. */
static void pause(struct consumer *consumer, const struct consumer_cursor *cursor)
{
    struct err ignored = ERR_INIT;
    if (!kafka_consumer_pause(consumer->kafka, cursor->topic, cursor->partition, &ignored)) {
        log_debug("consumer.pause_failed", LOG_FIELDS(CURSOR_FIELDS(cursor), LOG_ERR(&ignored)), "%s", ignored.text);
    }
}

void consumer_place_stop(struct consumer *consumer, struct consumer_cursor *cursor, const char *code,
                         const char *format, ...)
{
    char text[ERR_TEXT_SIZE];
    va_list args;
    va_start(args, format);
    text_vformat(text, sizeof text, format, args);
    va_end(args);
    cursor->state = CONSUMER_CURSOR_STOPPED;
    cursor->is_stop_told = false;
    err_clear(&cursor->reason);
    err_set(&cursor->reason, ERR_PERMANENT, code, "%s", text);
    pause(consumer, cursor);
    log_error("consumer.partition_stopped",
              LOG_FIELDS(CURSOR_FIELDS(cursor), LOG_INT("offset", cursor->next_offset), LOG_ERR(&cursor->reason)), "%s",
              cursor->reason.text);
}

bool consumer_place_pause_all(struct consumer *consumer, struct err *err)
{
    for (size_t i = 0; i < consumer->cursors.count; i++) {
        const struct consumer_cursor *cursor = &consumer->cursors.items[i];
        if (!kafka_consumer_pause(consumer->kafka, cursor->topic, cursor->partition, err)) {
            return false;
        }
    }
    return true;
}

/* ---- Registration -------------------------------------------------------------------------------------------- */

static bool start_offset(struct consumer *consumer, const char *topic, int32_t partition, int64_t *ret_offset,
                         struct err *err)
{
    enum consumer_start start = CONSUMER_START_EARLIEST;
    int64_t unix_ms = 0;
    bool is_known = consumer_settings_start(consumer->settings->start, &start, &unix_ms);
    assert(is_known); /* The settings were checked. */
    if (start == CONSUMER_START_TIME) {
        return kafka_reader_offset_at(consumer->reader, topic, partition, unix_ms, CONSUMER_ASK_MS, ret_offset, err);
    }
    int64_t first = 0;
    int64_t end = 0;
    if (!kafka_reader_log_ends(consumer->reader, topic, partition, CONSUMER_ASK_MS, &first, &end, err)) {
        return false;
    }
    *ret_offset = start == CONSUMER_START_EARLIEST ? first : end;
    return true;
}

/* The first time that this consumer sees the topic: `start` holds for every partition that is there now. */
static bool register_topic(struct consumer *consumer, const char *topic, struct err *err)
{
    int32_t count = 0;
    if (!kafka_reader_partition_count(consumer->reader, topic, CONSUMER_ASK_MS, &count, err)) {
        return false;
    }
    if (count == 0) {
        return err_set(err, ERR_TRANSIENT, "topic_unknown", "topic %s is not there", topic);
    }
    struct db_progress_place *places = calloc((size_t)count, sizeof *places);
    int64_t *offsets = calloc((size_t)count, sizeof *offsets);
    bool is_good = places != NULL && offsets != NULL;
    if (!is_good) {
        err_set(err, ERR_FATAL, "out_of_memory", "%d partitions", count);
    }
    for (int32_t i = 0; is_good && i < count; i++) {
        places[i] = (struct db_progress_place){.topic = topic, .partition = i};
        is_good = start_offset(consumer, topic, i, &offsets[i], err);
    }
    is_good = is_good && db_progress_register(consumer->db, &consumer->self, places, offsets, (size_t)count,
                                              consumer->cluster_id, err);
    free(places);
    free(offsets);
    if (is_good) {
        log_info("consumer.registered", LOG_FIELDS(LOG_TEXT("topic", topic), LOG_INT("partitions", count)),
                 "starting at %s", consumer->settings->start);
    }
    return is_good;
}

/* A cursor without any row: the topic is new to us, or the partition is new to the topic. */
static bool register_cursor(struct consumer *consumer, const struct consumer_cursor *cursor, struct err *err)
{
    bool is_registered = false;
    if (!db_progress_is_registered(consumer->db, &consumer->self, cursor->topic, &is_registered, err)) {
        return false;
    }
    if (!is_registered) {
        return register_topic(consumer, cursor->topic, err);
    }
    struct db_progress_place place = {.topic = cursor->topic, .partition = cursor->partition};
    const int64_t first_offset = 0;
    return db_progress_register(consumer->db, &consumer->self, &place, &first_offset, 1, consumer->cluster_id, err);
}

/* ---- Taking --------------------------------------------------------------------------------------------------- */

static bool is_due(const struct consumer_cursor *cursor, int64_t now_ms)
{
    return cursor->state == CONSUMER_CURSOR_UNTAKEN ||
           (cursor->state == CONSUMER_CURSOR_FENCED && now_ms >= cursor->until_ms);
}

static bool follow_take(struct consumer *consumer, struct consumer_cursor *cursor, const struct db_progress_row *row,
                        struct err *err)
{
    consumer_cursor_follow(cursor, row);
    cursor->verified_offset = DB_PROGRESS_OFFSET_NONE;
    cursor->anchor_offset = DB_PROGRESS_OFFSET_NONE;
    cursor->hinted_offset = DB_PROGRESS_OFFSET_NONE;
    if (strcmp(cursor->cluster_id, consumer->cluster_id) != 0) {
        consumer_place_stop(consumer, cursor, "cluster_changed",
                            "the cursor is of cluster %s, this is cluster %s; rewind the consumer to go on here",
                            cursor->cluster_id, consumer->cluster_id);
        return true;
    }
    log_info("consumer.taken", LOG_FIELDS(CURSOR_FIELDS(cursor), LOG_INT("offset", cursor->next_offset)), "seq %lld",
             (long long)cursor->seq);
    return consumer_place_start(consumer, cursor, true, err);
}

/* Takes cursors[indexes]; those that have no row yet are registered, to be taken at the next call. */
static bool take(struct consumer *consumer, const size_t *indexes, const struct db_progress_place *places, size_t count,
                 struct err *err)
{
    assert(count > 0);
    struct db_progress_row *rows = calloc(count, sizeof *rows);
    bool *is_taken = calloc(count, sizeof *is_taken);
    bool is_good = rows != NULL && is_taken != NULL;
    if (!is_good) {
        err_set(err, ERR_FATAL, "out_of_memory", "%zu partitions", count);
    }
    is_good = is_good && db_progress_take(consumer->db, &consumer->self, places, count, rows, is_taken, err);
    FAILPOINT("consumer.after_take");
    for (size_t i = 0; is_good && i < count; i++) {
        struct consumer_cursor *cursor = &consumer->cursors.items[indexes[i]];
        is_good = is_taken[i] ? follow_take(consumer, cursor, &rows[i], err) : register_cursor(consumer, cursor, err);
    }
    free(rows);
    free(is_taken);
    return is_good;
}

bool consumer_place_take(struct consumer *consumer, struct err *err)
{
    int64_t now_ms = clock_monotonic_ms();
    size_t count = 0;
    for (size_t i = 0; i < consumer->cursors.count; i++) {
        count += is_due(&consumer->cursors.items[i], now_ms) ? 1 : 0;
    }
    if (count == 0 || kafka_consumer_is_lost(consumer->kafka)) {
        return true;
    }
    if (consumer->cluster_id[0] == '\0' &&
        !kafka_reader_cluster_id(consumer->reader, CONSUMER_ASK_MS, consumer->cluster_id, err)) {
        return false;
    }
    size_t *indexes = calloc(count, sizeof *indexes);
    struct db_progress_place *places = calloc(count, sizeof *places);
    bool is_good = indexes != NULL && places != NULL;
    if (!is_good) {
        err_set(err, ERR_FATAL, "out_of_memory", "%zu partitions", count);
    }
    count = 0;
    for (size_t i = 0; is_good && i < consumer->cursors.count; i++) {
        const struct consumer_cursor *cursor = &consumer->cursors.items[i];
        if (is_due(cursor, now_ms)) {
            indexes[count] = i;
            places[count++] = (struct db_progress_place){.topic = cursor->topic, .partition = cursor->partition};
        }
    }
    is_good = is_good && take(consumer, indexes, places, count, err);
    free(indexes);
    free(places);
    return is_good;
}

/* ---- Looking -------------------------------------------------------------------------------------------------- */

static bool is_held(const struct consumer_cursor *cursor)
{
    return cursor->state == CONSUMER_CURSOR_CHECKING || cursor->state == CONSUMER_CURSOR_RUNNING ||
           cursor->state == CONSUMER_CURSOR_STOPPED ||
           (cursor->state == CONSUMER_CURSOR_FENCED && cursor->until_ms == 0);
}

/* Back to the row that the database has: whatever was read beyond it is read again. */
static bool go_back(struct consumer *consumer, struct consumer_cursor *cursor, struct err *err)
{
    bool was_compared = cursor->state != CONSUMER_CURSOR_CHECKING;
    return consumer_place_start(consumer, cursor, !was_compared, err);
}

static bool obey(struct consumer *consumer, struct consumer_cursor *cursor, const struct db_progress_look *look,
                 struct err *err)
{
    enum consumer_fence fence = consumer_fence_decide(look, cursor->seq, &cursor->attempt, &consumer->self.incarnation);
    switch (fence) {
    case CONSUMER_FENCE_SAME:
        if (cursor->state == CONSUMER_CURSOR_STOPPED ||
            (cursor->state != CONSUMER_CURSOR_FENCED && !consumer->is_suspended)) {
            return true;
        }
        return go_back(consumer, cursor, err);
    case CONSUMER_FENCE_ADOPT:
        log_warning("consumer.adopted", LOG_FIELDS(CURSOR_FIELDS(cursor), LOG_INT("offset", look->last.next_offset)),
                    "a row of ours that we did not know to be there; going on from it");
        consumer_cursor_follow(cursor, &look->last);
        return cursor->state == CONSUMER_CURSOR_STOPPED || go_back(consumer, cursor, err);
    case CONSUMER_FENCE_REWOUND:
        log_info("consumer.rewound", LOG_FIELDS(CURSOR_FIELDS(cursor), LOG_INT("offset", look->last.next_offset)),
                 "an operator moved the cursor; taking it from there");
        cursor->state = CONSUMER_CURSOR_UNTAKEN;
        break;
    case CONSUMER_FENCE_MISSING:
        log_warning("consumer.cursor_missing", LOG_FIELDS(CURSOR_FIELDS(cursor)), "its log is empty; registering anew");
        cursor->state = CONSUMER_CURSOR_UNTAKEN;
        break;
    case CONSUMER_FENCE_FENCED:
        log_warning("consumer.fenced", LOG_FIELDS(CURSOR_FIELDS(cursor)),
                    "somebody else took it; waiting %d ms before taking it again", CONSUMER_SESSION_TIMEOUT_MS);
        cursor->state = CONSUMER_CURSOR_FENCED;
        cursor->until_ms = clock_monotonic_ms() + CONSUMER_SESSION_TIMEOUT_MS;
        break;
    }
    pause(consumer, cursor);
    return true;
}

bool consumer_place_look(struct consumer *consumer, struct err *err)
{
    size_t count = consumer->cursors.count;
    if (count == 0) {
        return true;
    }
    struct db_progress_place *places = calloc(count, sizeof *places);
    int64_t *seqs = calloc(count, sizeof *seqs);
    struct db_progress_look *looks = calloc(count, sizeof *looks);
    bool is_good = places != NULL && seqs != NULL && looks != NULL;
    if (!is_good) {
        err_set(err, ERR_FATAL, "out_of_memory", "%zu partitions", count);
    }
    for (size_t i = 0; is_good && i < count; i++) {
        const struct consumer_cursor *cursor = &consumer->cursors.items[i];
        places[i] = (struct db_progress_place){.topic = cursor->topic, .partition = cursor->partition};
        seqs[i] = cursor->seq;
    }
    is_good = is_good && db_progress_look(consumer->db, &consumer->self, places, seqs, count, looks, err);
    FAILPOINT("consumer.after_look");
    for (size_t i = 0; is_good && i < count; i++) {
        struct consumer_cursor *cursor = &consumer->cursors.items[i];
        is_good = !is_held(cursor) || obey(consumer, cursor, &looks[i], err);
    }
    free(places);
    free(seqs);
    free(looks);
    return is_good;
}

/* ---- Upkeep --------------------------------------------------------------------------------------------------- */

void consumer_place_hint(struct consumer *consumer)
{
    struct kafka_place *places = calloc(consumer->cursors.count + 1, sizeof *places);
    size_t count = 0;
    for (size_t i = 0; places != NULL && i < consumer->cursors.count; i++) {
        struct consumer_cursor *cursor = &consumer->cursors.items[i];
        bool is_ours = cursor->state == CONSUMER_CURSOR_CHECKING || cursor->state == CONSUMER_CURSOR_RUNNING;
        if (is_ours && cursor->hinted_offset != cursor->next_offset) {
            cursor->hinted_offset = cursor->next_offset;
            places[count++] = (struct kafka_place){
                .topic = cursor->topic, .partition = cursor->partition, .offset = cursor->next_offset};
        }
    }
    struct err ignored = ERR_INIT;
    if (count > 0 && !kafka_consumer_commit(consumer->kafka, places, count, &ignored)) {
        log_debug("consumer.hint_failed", LOG_FIELDS(LOG_ERR(&ignored)), "%s", ignored.text);
    }
    free(places);
}

/* Why the cursor stands still until a person acts; NULL while it does not. */
static const struct err *stop_of(const struct consumer *consumer, const struct consumer_cursor *cursor)
{
    static const struct err halted = {
        .kind = ERR_PERMANENT,
        .code = "halted",
        .text = "too many dead letters: nothing is applied until the consumer is started again",
    };
    if (cursor->state == CONSUMER_CURSOR_STOPPED) {
        return &cursor->reason;
    }
    bool is_ours = cursor->state == CONSUMER_CURSOR_CHECKING || cursor->state == CONSUMER_CURSOR_RUNNING;
    return consumer->is_halted && is_ours ? &halted : NULL;
}

bool consumer_place_tell_stops(struct consumer *consumer, struct err *err)
{
    for (size_t i = 0; i < consumer->cursors.count; i++) {
        struct consumer_cursor *cursor = &consumer->cursors.items[i];
        const struct err *why = stop_of(consumer, cursor);
        struct db_progress_place place = {.topic = cursor->topic, .partition = cursor->partition};
        if (why == NULL || cursor->is_stop_told) {
            continue;
        }
        if (!db_progress_stop(consumer->db, &consumer->self, place, cursor->seq, &cursor->attempt, why, err)) {
            return false;
        }
        cursor->is_stop_told = true;
    }
    return true;
}

bool consumer_place_prune(struct consumer *consumer, struct err *err)
{
    for (size_t i = 0; i < consumer->cursors.count; i++) {
        struct consumer_cursor *cursor = &consumer->cursors.items[i];
        cursor->hinted_offset = DB_PROGRESS_OFFSET_NONE; /* A hint that was lost is given again. */
        struct db_progress_place place = {.topic = cursor->topic, .partition = cursor->partition};
        bool is_ours = cursor->state == CONSUMER_CURSOR_RUNNING;
        if (is_ours && !db_progress_prune(consumer->db, &consumer->self, place, cursor->seq, err)) {
            return false;
        }
    }
    return true;
}
