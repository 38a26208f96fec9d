/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of routes, and the handlers it names. Each handler runs on the
 * server's loop and hands its exchange over, or answers at once.
 */
#ifndef PRODUCER_ROUTES_H
#define PRODUCER_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/uuid.h"
#include "producer_item.h"
#include "producer_reader.h"
#include "producer_settings.h"

struct http_exchange;
struct http_request;
struct http_query;
struct http_route;
struct producer;

/* The table with the limits of these settings. Static; one producer per process. */
const struct http_route *producer_routes(const struct producer_settings *settings, size_t *ret_count);

/* producer_requests.c */
void producer_requests_create(void *context, struct http_exchange *exchange);
void producer_requests_put(void *context, struct http_exchange *exchange);
void producer_requests_get(void *context, struct http_exchange *exchange);
void producer_requests_list(void *context, struct http_exchange *exchange);

/* producer_documents.c */
void producer_documents_add(void *context, struct http_exchange *exchange);
void producer_documents_get(void *context, struct http_exchange *exchange);

/* producer_submissions.c */
void producer_submissions_submit(void *context, struct http_exchange *exchange);
void producer_submissions_create(void *context, struct http_exchange *exchange);

/* producer_events.c */
void producer_events_run(void *context, struct http_exchange *exchange);
void producer_events_list(void *context, struct http_exchange *exchange);
void producer_events_get(void *context, struct http_exchange *exchange);
void producer_events_deliveries(void *context, struct http_exchange *exchange);

/* producer_keys.c */
void producer_keys_get(void *context, struct http_exchange *exchange);

/* ---- for the handlers: producer_routes.c ---- */

/* An item with its key, or a read, for this exchange. NULL when it has been answered: memory is out, or the key is no
 * good. */
struct producer_item *producer_routes_item(struct producer *producer, struct http_exchange *exchange,
                                           enum producer_item_kind kind);
struct producer_read *producer_routes_read(struct producer *producer, struct http_exchange *exchange,
                                           producer_read_run *run);

/* Parses a list's query into the read. Permanent error with what is wrong. */
typedef bool producer_query_parse(const struct http_query *query, struct producer_read *read, struct err *err);

/* A list: reads the query, of which these parameters are allowed (ends in NULL), and puts the read; or answers with
 * what is wrong. */
void producer_routes_list(struct producer *producer, struct http_exchange *exchange, const char *const *allowed,
                          producer_query_parse *parse, producer_read_run *run);

/* Takes the item over. A small body is parsed at once, a large one by the thread that writes it, so that nobody else's
 * call waits for that. */
void producer_routes_write(struct producer *producer, struct producer_item *item, producer_item_parse *parse,
                           const char *accept);

/* The id in the path. False when it has been answered with 404. */
bool producer_routes_id(struct http_exchange *exchange, struct uuid *ret_id);

/* False when it has been answered: the route takes no query. */
bool producer_routes_no_query(struct http_exchange *exchange);

/* For a route that does not honour keys: nobody must believe himself protected. False: answered. */
bool producer_routes_no_key(struct http_exchange *exchange);

#define PRODUCER_PAGE_DEFAULT 100
#define PRODUCER_PAGE_MAX 1000

/* "limit" of a page. NULL is the default. */
bool producer_routes_limit(const char *text, int *ret_limit, struct err *err);

/* The place of text in names (which ends in NULL); the error names them all. */
bool producer_routes_choice(const char *name, const char *text, const char *const *names, int *ret_index,
                            struct err *err);

#endif
