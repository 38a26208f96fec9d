/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of routes, and what all handlers share.
 */
#include "producer_routes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "http/health.h"
#include "http/http_problem.h"
#include "http/http_query.h"
#include "http/http_server.h"
#include "producer.h"
#include "producer_auth.h"
#include "producer_openapi.h"
#include "producer_problem.h"
#include "wire/wire_write.h"

#define BODY_SMALL 256      /* Of a call that takes no body or an empty object. */
#define BODY_ENVELOPE 65536 /* What stands around data or a document. */

static void handle_livez(void *context, struct http_exchange *exchange)
{
    health_answer_livez(((struct producer *)context)->health, exchange);
}

static void handle_readyz(void *context, struct http_exchange *exchange)
{
    health_answer_readyz(((struct producer *)context)->health, exchange);
}

static void handle_metrics(void *context, struct http_exchange *exchange)
{
    health_answer_metrics(((struct producer *)context)->health, exchange);
}

static void handle_openapi(void *context, struct http_exchange *exchange)
{
    (void)context;
    if (producer_routes_no_query(exchange)) {
        http_respond_text(exchange, 200, "application/yaml", producer_openapi); /* RFC 9512. */
    }
}

static void handle_root(void *context, struct http_exchange *exchange);

static struct http_route routes[] = {
    {"GET", "/", 0, handle_root},
    {"GET", "/openapi.yaml", 0, handle_openapi},
    {"GET", "/livez", 0, handle_livez},
    {"GET", "/readyz", 0, handle_readyz},
    {"GET", "/metrics", 0, handle_metrics},
    {"POST", "/requests", 0, producer_requests_create},
    {"GET", "/requests", 0, producer_requests_list},
    {"PUT", "/requests/{id}", 0, producer_requests_put},
    {"GET", "/requests/{id}", 0, producer_requests_get},
    {"POST", "/requests/{id}/documents", 0, producer_documents_add},
    {"GET", "/requests/{id}/documents/{document_id}", 0, producer_documents_get},
    {"POST", "/requests/{id}/submit", BODY_SMALL, producer_submissions_submit},
    {"POST", "/submissions", 0, producer_submissions_create},
    {"POST", "/events/run", BODY_SMALL, producer_events_run},
    {"GET", "/events", 0, producer_events_list},
    {"GET", "/events/{event_id}", 0, producer_events_get},
    {"GET", "/deliveries", 0, producer_events_deliveries},
    {"GET", "/idempotency-keys/{key}", 0, producer_keys_get},
};

#define ROUTE_COUNT (sizeof routes / sizeof *routes)

static size_t body_size_max(const struct http_route *route, const struct producer_settings *settings)
{
    if (route->handle == producer_requests_create || route->handle == producer_requests_put) {
        return settings->data_bytes_max + BODY_ENVELOPE;
    }
    if (route->handle == producer_documents_add) {
        return settings->document_bytes_max / 3 * 4 + BODY_ENVELOPE;
    }
    return route->handle == producer_submissions_create ? settings->submission_bytes_max : route->body_size_max;
}

const struct http_route *producer_routes(const struct producer_settings *settings, size_t *ret_count)
{
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        routes[i].body_size_max = body_size_max(&routes[i], settings);
    }
    *ret_count = ROUTE_COUNT;
    return routes;
}

/* What this is, and every limit by its name. */
static void handle_root(void *context, struct http_exchange *exchange)
{
    const struct producer_settings *settings = ((struct producer *)context)->settings;
    struct buf buf;
    if (!producer_routes_no_query(exchange)) {
        return;
    }
    buf_init(&buf, 16384);
    struct wire_writer writer = wire_write_begin(&buf);
    wire_write_object(&writer, NULL);
    wire_write_text(&writer, "name", "onceward-producer");
    wire_write_text(&writer, "version", ONCEWARD_VERSION);
    wire_write_object(&writer, "limits");
    wire_write_int(&writer, "data_bytes_max", (int64_t)settings->data_bytes_max);
    wire_write_int(&writer, "document_bytes_max", (int64_t)settings->document_bytes_max);
    wire_write_int(&writer, "document_count_max", settings->document_count_max);
    wire_write_int(&writer, "request_bytes_max", (int64_t)settings->request_bytes_max);
    wire_write_int(&writer, "submission_bytes_max", (int64_t)settings->submission_bytes_max);
    wire_write_int(&writer, "bodies_bytes_max", (int64_t)settings->bodies_bytes_max);
    wire_write_int(&writer, "head_bytes_max", (int64_t)settings->head_bytes_max);
    wire_write_int(&writer, "header_timeout_ms", http_limits_default.header_timeout_ms);
    wire_write_int(&writer, "body_timeout_ms", http_limits_default.body_timeout_ms);
    wire_write_int(&writer, "page_count_max", PRODUCER_PAGE_MAX);
    wire_write_int(&writer, "event_wait_max_s", settings->event_wait_max_s);
    wire_write_object_end(&writer);
    wire_write_array(&writer, "routes");
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        char text[100];
        bool is_whole = text_format(text, sizeof text, "%s %s", routes[i].method, routes[i].pattern);
        wire_write_text(&writer, NULL, is_whole ? text : routes[i].pattern);
    }
    wire_write_array_end(&writer);
    wire_write_object_end(&writer);
    buf_char(&buf, '\n');
    http_respond_buf(exchange, 200, "application/json", &buf);
}

/* The key of the call into *ret_key, NULL where it has none. */
static bool read_key(const struct http_request *request, bool is_required, struct producer_key **ret_key,
                     struct err *err)
{
    size_t count = 0;
    const char *value = http_request_header(request, "idempotency-key", &count);
    *ret_key = NULL;
    if (value == NULL) {
        return !is_required || err_set(err, ERR_PERMANENT, "idempotency_key_missing",
                                       "send a header Idempotency-Key that is new for each operation, and the same for "
                                       "every repetition of it");
    }
    if (count > 1) {
        return err_set(err, ERR_PERMANENT, "idempotency_key_invalid", "the header stands on more than one line");
    }
    struct producer_key *key = calloc(1, sizeof *key);
    if (key == NULL) {
        return err_set(err, ERR_TRANSIENT, "too_busy", "no memory for the call");
    }
    if (!producer_key_parse(value, key->text, err)) {
        free(key);
        return false;
    }
    *ret_key = key;
    return true;
}

struct producer_item *producer_routes_item(struct producer *producer, struct http_exchange *exchange,
                                           enum producer_item_kind kind)
{
    assert(producer != NULL);
    struct producer_key *key = NULL;
    struct err err = ERR_INIT;
    if (!read_key(http_exchange_request(exchange), producer->settings->key_is_required, &key, &err)) {
        producer_problem_refuse(exchange, &err, NULL);
        return NULL;
    }
    struct producer_item *item = producer_item_new(exchange, kind, producer_auth_tenant(exchange));
    if (item == NULL) {
        free(key);
        http_respond_problem(exchange, producer_problem("too_busy"), NULL, "no memory for the call");
        return NULL;
    }
    item->key = key;
    if (key != NULL) {
        key->item = item;
    }
    return item;
}

struct producer_read *producer_routes_read(struct producer *producer, struct http_exchange *exchange,
                                           producer_read_run *run)
{
    struct producer_read *read = producer_read_new(producer->reader, exchange, run);
    if (read == NULL) {
        http_respond_problem(exchange, producer_problem("too_busy"), NULL, "no memory for the call");
        return NULL;
    }
    read->tenant = producer_auth_tenant(exchange);
    return read;
}

void producer_routes_list(struct producer *producer, struct http_exchange *exchange, const char *const *allowed,
                          producer_query_parse *parse, producer_read_run *run)
{
    struct http_query query;
    struct err err = ERR_INIT;
    struct producer_read *read = producer_routes_read(producer, exchange, run);
    if (read == NULL) {
        return;
    }
    if (!http_query_parse(http_exchange_request(exchange)->query, allowed, &query, &err) ||
        !parse(&query, read, &err)) {
        producer_read_free(&read);
        producer_problem_refuse(exchange, &err, NULL);
        return;
    }
    producer_reader_put(producer->reader, read);
}

void producer_routes_write(struct producer *producer, struct producer_item *item, producer_item_parse *parse,
                           const char *accept)
{
    const struct http_request *request = http_exchange_request(item->exchange);
    item->parse = parse;
    item->accept = accept;
    if (request->body_size > PRODUCER_LARGE_SIZE || producer_item_parsed(&item, producer->settings)) {
        producer_batch_put(producer->batch, item);
    }
}

bool producer_routes_id(struct http_exchange *exchange, struct uuid *ret_id)
{
    const char *text = http_exchange_request(exchange)->params[0];
    if (uuid_from_text(text, strlen(text), ret_id)) {
        return true;
    }
    http_respond_problem(exchange, producer_problem("request_not_found"), NULL, "no request has this id");
    return false;
}

bool producer_routes_no_query(struct http_exchange *exchange)
{
    static const char *const allowed[] = {NULL};
    struct http_query query;
    struct err err = ERR_INIT;
    if (http_query_parse(http_exchange_request(exchange)->query, allowed, &query, &err)) {
        return true;
    }
    producer_problem_refuse(exchange, &err, NULL);
    return false;
}

bool producer_routes_no_key(struct http_exchange *exchange)
{
    if (http_request_header(http_exchange_request(exchange), "idempotency-key", NULL) == NULL) {
        return true;
    }
    http_respond_problem(exchange, producer_problem("idempotency_key_unsupported"), NULL,
                         "nothing was done, since the key would protect nothing; send the call without it");
    return false;
}

bool producer_routes_limit(const char *text, int *ret_limit, struct err *err)
{
    int64_t limit = PRODUCER_PAGE_DEFAULT;
    if (text != NULL && (!text_to_int64(text, &limit) || limit < 1 || limit > PRODUCER_PAGE_MAX)) {
        return err_set(err, ERR_PERMANENT, "query_invalid", "limit must be a number from 1 to %d", PRODUCER_PAGE_MAX);
    }
    *ret_limit = (int)limit;
    return true;
}

bool producer_routes_choice(const char *name, const char *text, const char *const *names, int *ret_index,
                            struct err *err)
{
    struct buf all;
    buf_init(&all, 256);
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], text) == 0) {
            buf_done(&all);
            *ret_index = i;
            return true;
        }
        buf_format(&all, "%s%s", i == 0 ? "" : ", ", names[i]);
    }
    err_set(err, ERR_PERMANENT, "query_invalid", "%s is unknown; allowed are: %s", name, all.data);
    buf_done(&all);
    return false;
}
