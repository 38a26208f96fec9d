/* SPDX-License-Identifier: Apache-2.0
 *
 * /events and /deliveries: where events are, and the call that waits until
 * what is pending has been claimed. Waiting holds no thread and no connection.
 */
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "db/db_event_query.h"
#include "http/http_problem.h"
#include "http/http_query.h"
#include "http/http_server.h"
#include "producer.h"
#include "producer_answer.h"
#include "producer_body.h"
#include "producer_cursor.h"
#include "producer_problem.h"
#include "producer_routes.h"

#define RUN_PATIENCE_MS 5000
#define RUN_AGAIN_FIRST_MS 10
#define RUN_AGAIN_MAX_MS 160
#define CONSUMER_SIZE_MAX 255 /* As in inbox_scopes. */

static void respond(struct producer_read *read, struct buf *buf)
{
    buf_char(buf, '\n');
    http_respond_buf(read->exchange, 200, "application/json", buf);
}

/* ---- POST /events/run -------------------------------------------------------------------------------------------- */

static void answer_claimed(struct producer_read *read, int64_t count)
{
    struct buf buf;
    buf_init(&buf, 100);
    struct wire_writer writer = wire_write_begin(&buf);
    wire_write_object(&writer, NULL);
    wire_write_int(&writer, "claimed", count);
    wire_write_object_end(&writer);
    respond(read, &buf);
}

static bool run_first_look(struct producer_read *read, struct db *db, struct err *err)
{
    struct db_event_backlog *first = calloc(1, sizeof *first);
    if (first == NULL) {
        return err_set(err, ERR_TRANSIENT, "too_busy", "no memory for the call");
    }
    if (!db_event_query_backlog(db, NULL, first, err)) {
        free(first); /* Tried again, this must be the first look again. */
        return false;
    }
    read->backlog = first;
    read->again_ms = RUN_AGAIN_FIRST_MS;
    return true;
}

/* Counts what was pending at the first look and is not any more. */
static bool run_run(struct producer_read *read, struct db *db, enum producer_read_outcome *ret_outcome, struct err *err)
{
    struct db_event_backlog *first = read->backlog;
    int64_t left = 0;
    *ret_outcome = PRODUCER_READ_DONE;
    if (first == NULL) {
        if (!run_first_look(read, db, err)) {
            return false;
        }
        first = read->backlog;
        left = first->pending_count;
        producer_hint_send(read->hint);
    } else {
        struct db_event_backlog *now = calloc(1, sizeof *now);
        bool is_good = now != NULL && db_event_query_backlog(db, first->snapshot, now, err);
        left = is_good ? now->pending_count : 0;
        free(now);
        if (!is_good) {
            return err->kind != ERR_NONE ? false : err_set(err, ERR_TRANSIENT, "too_busy", "no memory for the call");
        }
    }
    if (first->relay_count == 0) {
        http_respond_problem(read->exchange, producer_problem("no_relay"), NULL,
                             "no relay holds a lease; %lld events are pending", (long long)left);
        return true;
    }
    if (left > 0 && first->snapshot[0] != '\0' && clock_monotonic_ms() - read->started_ms < RUN_PATIENCE_MS) {
        read->again_ms = read->again_ms * 2 < RUN_AGAIN_MAX_MS ? read->again_ms * 2 : RUN_AGAIN_MAX_MS;
        *ret_outcome = PRODUCER_READ_AGAIN;
        return true;
    }
    answer_claimed(read, first->pending_count > left ? first->pending_count - left : 0);
    return true;
}

void producer_events_run(void *context, struct http_exchange *exchange)
{
    struct producer *producer = context;
    struct err err = ERR_INIT;
    if (!producer_routes_no_key(exchange) || !producer_routes_no_query(exchange)) {
        return;
    }
    if (!producer_body_is_empty(http_exchange_request(exchange), &err)) {
        producer_problem_refuse(exchange, &err, "application/json");
        return;
    }
    struct producer_read *read = producer_routes_read(producer, exchange, run_run);
    if (read != NULL) {
        producer_reader_put(producer->reader, read);
    }
}

/* ---- GET /events ------------------------------------------------------------------------------------------------- */

static const char *const event_statuses[] = {"pending", "claimed", "completed", "failed", NULL};

static void write_event_cursor(struct wire_writer *writer, int64_t outbox_id)
{
    char inner[24];
    struct buf cursor;
    buf_init(&cursor, 200);
    if (text_format(inner, sizeof inner, "%lld", (long long)outbox_id)) {
        producer_cursor_write(&cursor, "events", inner);
    }
    wire_write_text(writer, "next_cursor", cursor.data);
    buf_inherit(writer->out, &cursor);
    buf_done(&cursor);
}

static bool run_list(struct producer_read *read, struct db *db, enum producer_read_outcome *ret_outcome,
                     struct err *err)
{
    struct db_event_page *page = NULL;
    *ret_outcome = PRODUCER_READ_DONE;
    if (!db_event_query_list(db, read->tenant, (enum db_event_status)read->filter, read->before, read->limit, &page,
                             err)) {
        return false;
    }
    struct buf buf;
    buf_init(&buf, PRODUCER_ANSWER_SIZE_MAX);
    struct wire_writer writer = wire_write_begin(&buf);
    size_t count = db_event_page_count(page);
    wire_write_object(&writer, NULL);
    wire_write_array(&writer, "events");
    for (size_t i = 0; i < count; i++) {
        producer_answer_event(&writer, NULL, db_event_page_row(page, i));
    }
    wire_write_array_end(&writer);
    if (count == (size_t)read->limit) {
        write_event_cursor(&writer, db_event_page_row(page, count - 1)->outbox_id);
    } else {
        wire_write_null(&writer, "next_cursor");
    }
    wire_write_object_end(&writer);
    db_event_page_free(&page);
    respond(read, &buf);
    return true;
}

static bool parse_list(const struct http_query *query, struct producer_read *read, struct err *err)
{
    const char *status = http_query_value(query, "status");
    const char *cursor = http_query_value(query, "cursor");
    char inner[24];
    int index = -1;
    if (status != NULL && !producer_routes_choice("status", status, event_statuses, &index, err)) {
        return false;
    }
    read->filter = index + 1; /* The table is in the order of enum db_event_status. */
    read->before = INT64_MAX;
    if (cursor != NULL) {
        if (!producer_cursor_read(cursor, "events", inner, sizeof inner, err)) {
            return false;
        }
        if (!text_to_int64(inner, &read->before)) {
            return err_set(err, ERR_PERMANENT, "query_invalid", "cursor is none that this list gave out");
        }
    }
    return producer_routes_limit(http_query_value(query, "limit"), &read->limit, err);
}

void producer_events_list(void *context, struct http_exchange *exchange)
{
    static const char *const allowed[] = {"status", "cursor", "limit", NULL};
    producer_routes_list(context, exchange, allowed, parse_list, run_list);
}

/* ---- GET /events/{event_id} -------------------------------------------------------------------------------------- */

static void write_deliveries(struct wire_writer *writer, const struct db_delivery_page *deliveries,
                             const char *consumer)
{
    wire_write_array(writer, "deliveries");
    for (size_t i = 0; i < db_delivery_page_count(deliveries); i++) {
        const struct db_delivery_row *row = db_delivery_page_row(deliveries, i);
        if (consumer[0] == '\0' || strcmp(row->consumer, consumer) == 0) {
            producer_answer_delivery(writer, NULL, row);
        }
    }
    wire_write_array_end(writer);
}

static void write_wait(struct wire_writer *writer, enum producer_wait_outcome outcome)
{
    static const char *const names[] = {
        [PRODUCER_WAIT_APPLIED] = "applied",   [PRODUCER_WAIT_PUBLISHED] = "published",
        [PRODUCER_WAIT_FAILED] = "failed",     [PRODUCER_WAIT_TIME_IS_UP] = "time_is_up",
        [PRODUCER_WAIT_STOPPING] = "stopping",
    };
    if (outcome != PRODUCER_WAIT_NONE) {
        assert(outcome != PRODUCER_WAIT_OPEN);
        wire_write_object(writer, "wait");
        wire_write_text(writer, "outcome", names[outcome]);
        wire_write_object_end(writer);
    }
}

static bool run_get(struct producer_read *read, struct db *db, enum producer_read_outcome *ret_outcome, struct err *err)
{
    struct db_event_page *page = NULL;
    struct db_delivery_page *deliveries = NULL;
    *ret_outcome = PRODUCER_READ_DONE;
    if (!db_event_query_get(db, read->tenant, &read->id, &page, &deliveries, err)) {
        return false;
    }
    if (db_event_page_count(page) == 0) {
        http_respond_problem(read->exchange, producer_problem("event_not_found"), NULL, "no event has this id");
    } else {
        struct buf buf;
        buf_init(&buf, PRODUCER_ANSWER_SIZE_MAX);
        struct wire_writer writer = wire_write_begin(&buf);
        wire_write_object(&writer, NULL);
        producer_answer_event(&writer, "event", db_event_page_row(page, 0));
        write_deliveries(&writer, deliveries, read->text);
        write_wait(&writer, read->wait_outcome);
        wire_write_object_end(&writer);
        respond(read, &buf);
    }
    db_event_page_free(&page);
    db_delivery_page_free(&deliveries);
    return true;
}

static bool parse_get(const struct http_query *query, struct producer_read *read, struct err *err)
{
    const char *wait = http_query_value(query, "wait");
    const char *consumer = http_query_value(query, "consumer");
    int64_t wait_max_s = read->settings->event_wait_max_s;
    int64_t wait_s = 0;
    if (wait != NULL && (!text_to_int64(wait, &wait_s) || wait_s < 0 || wait_s > wait_max_s)) {
        return err_set(err, ERR_PERMANENT, "query_invalid",
                       "wait must be a number of seconds from 0 to %lld (event_wait_max_s)", (long long)wait_max_s);
    }
    if (consumer != NULL && (consumer[0] == '\0' || strlen(consumer) > CONSUMER_SIZE_MAX ||
                             !text_copy(read->text, sizeof read->text, consumer))) {
        return err_set(err, ERR_PERMANENT, "query_invalid", "consumer must be the name of one, of at most %d bytes",
                       CONSUMER_SIZE_MAX);
    }
    read->wait_outcome = wait == NULL ? PRODUCER_WAIT_NONE : PRODUCER_WAIT_OPEN;
    read->until_ms = read->started_ms + wait_s * 1000;
    return true;
}

void producer_events_get(void *context, struct http_exchange *exchange)
{
    static const char *const allowed[] = {"wait", "consumer", NULL};
    struct producer *producer = context;
    const struct http_request *request = http_exchange_request(exchange);
    struct http_query query;
    struct err err = ERR_INIT;
    struct producer_read *read = producer_routes_read(producer, exchange, run_get);
    if (read == NULL) {
        return;
    }
    if (!http_query_parse(request->query, allowed, &query, &err) || !parse_get(&query, read, &err)) {
        producer_problem_refuse(exchange, &err, NULL);
        producer_read_free(&read);
    } else if (!uuid_from_text(request->params[0], strlen(request->params[0]), &read->id)) {
        http_respond_problem(exchange, producer_problem("event_not_found"), NULL, "no event has this id");
        producer_read_free(&read);
    } else if (read->wait_outcome == PRODUCER_WAIT_OPEN) {
        http_exchange_watch(exchange);
        producer_wait_put(producer->wait, read);
    } else {
        producer_reader_put(producer->reader, read);
    }
}

/* ---- GET /deliveries --------------------------------------------------------------------------------------------- */

static const char *const delivery_statuses[] = {"claimed", "completed", "failed", NULL};

static void write_delivery_cursor(struct wire_writer *writer, const struct db_delivery_row *last)
{
    struct buf inner;
    struct buf cursor;
    buf_init(&inner, 1000);
    buf_init(&cursor, 4000);
    buf_format(&inner, "%d\n%s\n%s", last->scope_id, last->source == NULL ? "" : last->source, last->event_id);
    producer_cursor_write(&cursor, last->source == NULL ? "deliveries" : "foreign", inner.data);
    wire_write_text(writer, "next_cursor", cursor.data);
    buf_inherit(writer->out, &inner);
    buf_inherit(writer->out, &cursor);
    buf_done(&inner);
    buf_done(&cursor);
}

static bool read_delivery_cursor(const char *text, struct producer_read *read, struct err *err)
{
    char inner[700];
    struct err ignored = ERR_INIT;
    int64_t scope_id = 0;
    bool is_foreign = producer_cursor_read(text, "foreign", inner, sizeof inner, &ignored);
    if (!is_foreign && !producer_cursor_read(text, "deliveries", inner, sizeof inner, err)) {
        return false;
    }
    char *source = strchr(inner, '\n');
    char *event_id = source == NULL ? NULL : strchr(source + 1, '\n');
    if (event_id == NULL) {
        return err_set(err, ERR_PERMANENT, "query_invalid", "cursor is none that this list gave out");
    }
    *source++ = '\0';
    *event_id++ = '\0';
    struct uuid id;
    bool is_good = text_to_int64(inner, &scope_id) && scope_id >= 0 && scope_id <= INT32_MAX &&
                   text_copy(read->cursor_text[0], PRODUCER_TEXT_SIZE, source) &&
                   text_copy(read->cursor_text[1], PRODUCER_TEXT_SIZE, event_id) &&
                   (is_foreign || uuid_from_text(event_id, strlen(event_id), &id));
    if (!is_good) {
        return err_set(err, ERR_PERMANENT, "query_invalid", "cursor is none that this list gave out");
    }
    read->delivery_cursor = (struct db_delivery_cursor){.is_foreign = is_foreign,
                                                        .scope_id = (int32_t)scope_id,
                                                        .source = read->cursor_text[0],
                                                        .event_id = read->cursor_text[1]};
    return true;
}

static bool run_deliveries(struct producer_read *read, struct db *db, enum producer_read_outcome *ret_outcome,
                           struct err *err)
{
    struct db_delivery_page *page = NULL;
    *ret_outcome = PRODUCER_READ_DONE;
    const struct db_delivery_filter filter = {
        .tenant = read->tenant,
        .consumer = read->text[0] == '\0' ? NULL : read->text,
        .status = read->filter < 0 ? NULL : delivery_statuses[read->filter],
        .after = read->has_cursor ? &read->delivery_cursor : NULL,
        .limit = read->limit,
    };
    if (!db_event_query_deliveries(db, &filter, &page, err)) {
        return false;
    }
    struct buf buf;
    buf_init(&buf, PRODUCER_ANSWER_SIZE_MAX);
    struct wire_writer writer = wire_write_begin(&buf);
    size_t count = db_delivery_page_count(page);
    wire_write_object(&writer, NULL);
    wire_write_array(&writer, "deliveries");
    for (size_t i = 0; i < count; i++) {
        producer_answer_delivery(&writer, NULL, db_delivery_page_row(page, i));
    }
    wire_write_array_end(&writer);
    if (count == (size_t)read->limit) {
        write_delivery_cursor(&writer, db_delivery_page_row(page, count - 1));
    } else {
        wire_write_null(&writer, "next_cursor");
    }
    wire_write_object_end(&writer);
    db_delivery_page_free(&page);
    respond(read, &buf);
    return true;
}

static bool parse_deliveries(const struct http_query *query, struct producer_read *read, struct err *err)
{
    const char *status = http_query_value(query, "status");
    const char *cursor = http_query_value(query, "cursor");
    const char *consumer = http_query_value(query, "consumer");
    read->filter = -1;
    if (status != NULL && !producer_routes_choice("status", status, delivery_statuses, &read->filter, err)) {
        return false;
    }
    if (!text_copy(read->text, sizeof read->text, consumer == NULL ? "" : consumer)) {
        return err_set(err, ERR_PERMANENT, "query_invalid", "consumer is too long");
    }
    read->has_cursor = cursor != NULL;
    return producer_routes_limit(http_query_value(query, "limit"), &read->limit, err) &&
           (cursor == NULL || read_delivery_cursor(cursor, read, err));
}

void producer_events_deliveries(void *context, struct http_exchange *exchange)
{
    static const char *const allowed[] = {"consumer", "status", "cursor", "limit", NULL};
    producer_routes_list(context, exchange, allowed, parse_deliveries, run_deliveries);
}
