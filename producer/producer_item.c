/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a call that writes.
 */
#include "producer_item.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/text.h"
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
    free(item->key);
    free(item->type);
    free(item);
}

bool producer_item_parsed(struct producer_item **itemp, const struct producer_settings *settings)
{
    struct producer_item *item = *itemp;
    producer_item_parse *parse = item->parse;
    struct err err = ERR_INIT;
    item->parse = NULL;
    if (parse == NULL) {
        return true;
    }
    const struct http_request *request = http_exchange_request(item->exchange);
    const struct wire_value *body = &item->body;
    if (parse(request, settings, item, &err) &&
        (item->key == NULL ||
         producer_key_fingerprint(item->key, request, body->kind == WIRE_ABSENT ? NULL : body, &err))) {
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

/* ---- under a key ---------------------------------------------------------------------------------------------------
 */

/* What is kept of an answer's headers, and sent again. */
static bool is_kept_header(const char *name)
{
    static const char *const names[] = {"Content-Type", "Location", "ETag"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcasecmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Splits lines in place. Whatever stands in a row, nothing but a clean header is sent. */
static size_t read_headers(char *lines, struct http_response *response, size_t count_max)
{
    size_t count = 0;
    char *rest = NULL;
    for (char *line = strtok_r(lines, "\r\n", &rest); line != NULL; line = strtok_r(NULL, "\r\n", &rest)) {
        char *colon = strstr(line, ": ");
        if (colon == NULL || count == count_max) {
            continue;
        }
        *colon = '\0';
        const char *value = colon + 2;
        if (!is_kept_header(line) || text_has_control(value)) {
            continue;
        }
        if (strcasecmp(line, "Content-Type") == 0) {
            response->content_type = value;
        } else {
            response->headers[count++] = (struct http_header){line, value};
        }
    }
    return count;
}

void producer_item_reply(struct producer_item **itemp, const struct producer_reply *reply)
{
    char expires[CLOCK_TEXT_SIZE];
    struct http_response response = {.status = reply->status};
    char *lines = strdup(reply->headers);
    response.body = malloc(reply->body.size + 1);
    if (lines == NULL || response.body == NULL) {
        free(lines);
        free(response.body);
        producer_item_refuse(itemp, producer_problem("too_busy"), "no memory for the answer; it is kept under the key");
        return;
    }
    clock_to_text(reply->expires_us, expires);
    memcpy(response.body, reply->body.data, reply->body.size);
    response.body_size = reply->body.size;
    size_t count = read_headers(lines, &response, HTTP_RESPONSE_HEADER_COUNT_MAX - 3);
    response.headers[count++] = (struct http_header){"Idempotent-Replayed", reply->is_replayed ? "true" : "false"};
    response.headers[count++] = (struct http_header){"Idempotency-Expires", expires};
    http_respond((*itemp)->exchange, &response);
    free(lines);
    producer_item_free(itemp);
}

void producer_item_refuse_reused(struct producer_item **itemp, const char *components, const char *resource)
{
    struct buf members;
    buf_init(&members, 4096);
    producer_key_write_differences(&members, (*itemp)->key->components, components);
    buf_text(&members, ",\"resource\":");
    if (resource == NULL) {
        buf_text(&members, "null");
    } else {
        buf_json_string(&members, resource, strlen(resource));
    }
    http_respond_problem_with((*itemp)->exchange, producer_problem("idempotency_key_reused"),
                              members.has_overflowed ? NULL : members.data,
                              "the key stands for another call; differs and members say in what, resource what that "
                              "one made");
    buf_done(&members);
    producer_item_free(itemp);
}
