/* SPDX-License-Identifier: Apache-2.0
 *
 * /requests: create, create with the caller's own id, one, a page of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "http/http_problem.h"
#include "http/http_query.h"
#include "http/http_server.h"
#include "producer.h"
#include "producer_answer.h"
#include "producer_body.h"
#include "producer_cursor.h"
#include "producer_problem.h"
#include "producer_routes.h"

static const char *const statuses[] = {"open", "submitted", NULL};

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void create(struct producer *producer, struct http_exchange *exchange, const struct uuid *own_id)
{
    if (!producer_routes_no_query(exchange)) {
        return;
    }
    struct producer_item *item = producer_routes_item(producer, exchange, PRODUCER_CREATE);
    if (item == NULL) {
        return;
    }
    item->is_id_minted = own_id == NULL;
    item->request_id = own_id == NULL ? uuid_v7_new(clock_realtime_ms()) : *own_id;
    producer_routes_write(producer, item, producer_body_create, "application/json");
}

void producer_requests_create(void *context, struct http_exchange *exchange)
{
    create(context, exchange, NULL);
}

void producer_requests_put(void *context, struct http_exchange *exchange)
{
    struct uuid id;
    const char *text = http_exchange_request(exchange)->params[0];
    if (!uuid_from_text(text, strlen(text), &id)) {
        http_respond_problem(exchange, producer_problem("request_id_invalid"), NULL,
                             "the id must be a UUID of 36 characters in lower case");
        return;
    }
    create(context, exchange, &id);
}

/* ---- one --------------------------------------------------------------------------------------------------------- */

static bool run_get(struct producer_read *read, struct db *db, enum producer_read_outcome *ret_outcome, struct err *err)
{
    struct db_request_page *page = NULL;
    *ret_outcome = PRODUCER_READ_DONE;
    if (!db_request_get(db, read->tenant, &read->id, &page, err)) {
        return false;
    }
    if (db_request_page_count(page) == 0) {
        http_respond_problem(read->exchange, producer_problem("request_not_found"), NULL, "no request has this id");
    } else {
        struct buf buf;
        buf_init(&buf, PRODUCER_ANSWER_SIZE_MAX);
        producer_answer_request(&buf, db_request_page_row(page, 0), read->public_url);
        http_respond_buf(read->exchange, 200, "application/json", &buf);
    }
    db_request_page_free(&page);
    return true;
}

void producer_requests_get(void *context, struct http_exchange *exchange)
{
    struct producer *producer = context;
    struct uuid id;
    if (!producer_routes_no_query(exchange) || !producer_routes_id(exchange, &id)) {
        return;
    }
    struct producer_read *read = producer_routes_read(producer, exchange, run_get);
    if (read == NULL) {
        return;
    }
    read->id = id;
    producer_reader_put(producer->reader, read);
}

/* ---- a page ------------------------------------------------------------------------------------------------------ */

static void write_cursor(struct wire_writer *writer, const struct db_request_row *last)
{
    char id[UUID_TEXT_SIZE];
    char inner[80];
    struct buf cursor;
    buf_init(&cursor, 400);
    uuid_to_text(&last->request_id, id);
    if (text_format(inner, sizeof inner, "%lld %s", (long long)last->created_us, id)) {
        producer_cursor_write(&cursor, "requests", inner);
    }
    wire_write_text(writer, "next_cursor", cursor.data);
    buf_inherit(writer->out, &cursor);
    buf_done(&cursor);
}

static bool read_cursor(const char *text, struct db_request_cursor *ret_cursor, struct err *err)
{
    char inner[80];
    if (!producer_cursor_read(text, "requests", inner, sizeof inner, err)) {
        return false;
    }
    char *blank = strchr(inner, ' ');
    if (blank != NULL) {
        *blank++ = '\0';
        if (text_to_int64(inner, &ret_cursor->created_us) &&
            uuid_from_text(blank, strlen(blank), &ret_cursor->request_id)) {
            return true;
        }
    }
    return err_set(err, ERR_PERMANENT, "query_invalid", "cursor is none that this list gave out");
}

static void answer_page(struct producer_read *read, const struct db_request_page *page)
{
    struct buf buf;
    buf_init(&buf, PRODUCER_ANSWER_SIZE_MAX);
    struct wire_writer writer = wire_write_begin(&buf);
    wire_write_object(&writer, NULL);
    wire_write_array(&writer, "requests");
    size_t count = db_request_page_count(page);
    for (size_t i = 0; i < count; i++) {
        producer_answer_request_item(&writer, db_request_page_row(page, i));
    }
    wire_write_array_end(&writer);
    if (count == (size_t)read->limit) {
        write_cursor(&writer, db_request_page_row(page, count - 1));
    } else {
        wire_write_null(&writer, "next_cursor");
    }
    wire_write_object_end(&writer);
    buf_char(&buf, '\n');
    http_respond_buf(read->exchange, 200, "application/json", &buf);
}

static bool run_list(struct producer_read *read, struct db *db, enum producer_read_outcome *ret_outcome,
                     struct err *err)
{
    struct db_request_page *page = NULL;
    *ret_outcome = PRODUCER_READ_DONE;
    if (!db_request_list(db, read->tenant, (enum db_request_status)read->filter,
                         read->has_cursor ? &read->request_cursor : NULL, read->limit, &page, err)) {
        return false;
    }
    answer_page(read, page);
    db_request_page_free(&page);
    return true;
}

static bool parse_list(const struct http_query *query, struct producer_read *read, struct err *err)
{
    const char *status = http_query_value(query, "status");
    const char *cursor = http_query_value(query, "cursor");
    int index = -1;
    if (status != NULL && !producer_routes_choice("status", status, statuses, &index, err)) {
        return false;
    }
    read->filter = index < 0 ? DB_REQUEST_ANY : index == 0 ? DB_REQUEST_OPEN : DB_REQUEST_SUBMITTED;
    read->has_cursor = cursor != NULL;
    return producer_routes_limit(http_query_value(query, "limit"), &read->limit, err) &&
           (cursor == NULL || read_cursor(cursor, &read->request_cursor, err));
}

void producer_requests_list(void *context, struct http_exchange *exchange)
{
    static const char *const allowed[] = {"status", "cursor", "limit", NULL};
    producer_routes_list(context, exchange, allowed, parse_list, run_list);
}
