/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a call that writes.
 */
#include "producer_item.h"

#include <stdlib.h>

#include "base/clock.h"
#include "http/http_problem.h"
#include "http/http_server.h"
#include "producer_problem.h"

struct producer_item *producer_item_new(struct http_exchange *exchange, enum producer_item_kind kind,
                                        const char *tenant)
{
    struct producer_item *item = calloc(1, sizeof *item);
    if (item != NULL) {
        item->exchange = exchange;
        item->kind = kind;
        item->tenant = tenant;
        item->started_ms = clock_monotonic_ms();
    }
    return item;
}

void producer_item_free(struct producer_item **itemp)
{
    struct producer_item *item = *itemp;
    *itemp = NULL;
    if (item == NULL) {
        return;
    }
    for (size_t i = 0; i < item->document_count; i++) {
        buf_done(&item->documents[i].decoded);
    }
    free(item->documents);
    free(item->type);
    free(item);
}

bool producer_item_parsed(struct producer_item **itemp, const struct producer_settings *settings)
{
    struct producer_item *item = *itemp;
    producer_item_parse *parse = item->parse;
    struct err err = ERR_INIT;
    item->parse = NULL;
    if (parse == NULL || parse(http_exchange_request(item->exchange), settings, item, &err)) {
        return true;
    }
    producer_problem_refuse(item->exchange, &err, item->accept);
    producer_item_free(itemp);
    return false;
}

size_t producer_item_size(const struct producer_item *item)
{
    size_t size = item->data.size;
    for (size_t i = 0; i < item->document_count; i++) {
        size += item->documents[i].content.size;
    }
    return size;
}

bool producer_item_wants_submit(const struct producer_item *item)
{
    return item->kind == PRODUCER_SUBMIT || item->kind == PRODUCER_SUBMISSION;
}

void producer_item_answer(struct producer_item **itemp, int status, struct buf *body, const char *location)
{
    struct http_response response = {.status = status, .content_type = "application/json"};
    response.body = buf_take(body, &response.body_size);
    buf_done(body);
    if (location != NULL) {
        response.headers[0] = (struct http_header){"Location", location};
    }
    http_respond((*itemp)->exchange, &response);
    producer_item_free(itemp);
}

void producer_item_refuse(struct producer_item **itemp, const struct http_problem *problem, const char *detail)
{
    http_respond_problem((*itemp)->exchange, problem, NULL, "%s", detail);
    producer_item_free(itemp);
}
