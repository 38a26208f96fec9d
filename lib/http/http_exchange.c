/* SPDX-License-Identifier: Apache-2.0
 *
 * One request and its answer. It belongs to its connection while it is being
 * received, to a handler from then until http_respond(), and to the loop again
 * while it is written. If the client goes, the handler keeps it.
 */
#include "http_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct status_text {
    int status;
    const char *text;
};

static const struct status_text status_texts[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
};

static const char *status_text(int status)
{
    for (size_t i = 0; i < sizeof status_texts / sizeof *status_texts; i++) {
        if (status_texts[i].status == status) {
            return status_texts[i].text;
        }
    }
    assert(!"a status without a text");
    return "";
}

static void write_head(struct buf *buf, const struct http_response *response)
{
    buf_format(buf, "HTTP/1.1 %d %s\r\nContent-Length: %zu\r\n", response->status, status_text(response->status),
               response->body_size);
    if (response->content_type != NULL) {
        assert(!text_has_control(response->content_type));
        buf_format(buf, "Content-Type: %s\r\n", response->content_type);
    }
    for (size_t i = 0; i < HTTP_RESPONSE_HEADER_COUNT_MAX && response->headers[i].name != NULL; i++) {
        assert(!text_has_control(response->headers[i].value));
        buf_format(buf, "%s: %s\r\n", response->headers[i].name, response->headers[i].value);
    }
}

struct http_exchange *http_exchange_new(struct http_server *server, struct http_conn *conn)
{
    struct http_exchange *exchange = calloc(1, sizeof *exchange);
    if (exchange != NULL) {
        exchange->server = server;
        exchange->conn = conn;
        exchange->route = HTTP_ROUTE_NONE;
        if (conn->peer != NULL) {
            exchange->peer = conn->peer->address;
        }
        exchange->started_ns = uv_hrtime();
        atomic_fetch_add(&server->exchange_count, 1);
    }
    return exchange;
}

void http_exchange_free(struct http_exchange *exchange)
{
    if (exchange == NULL) {
        return;
    }
    atomic_fetch_sub(&exchange->server->exchange_count, 1);
    free(exchange->head_bytes);
    free(exchange->path_bytes);
    free(exchange->body);
    free(exchange->answer_head);
    free(exchange->answer_body);
    free(exchange);
}

void http_exchange_forget_answer(struct http_exchange *exchange)
{
    free(exchange->answer_head);
    free(exchange->answer_body);
    exchange->answer_head = NULL;
    exchange->answer_body = NULL;
    exchange->answer_body_size = 0;
    exchange->status = 0;
}

const struct http_request *http_exchange_request(const struct http_exchange *exchange)
{
    return &exchange->request;
}

size_t http_exchange_route(const struct http_exchange *exchange)
{
    assert(exchange->route != HTTP_ROUTE_NONE);
    return exchange->route;
}

void http_exchange_watch(struct http_exchange *exchange)
{
    if (exchange->conn != NULL) {
        http_conn_watch(exchange->conn);
    }
}

bool http_exchange_has_left(const struct http_exchange *exchange)
{
    return atomic_load(&exchange->has_left);
}

const struct http_peer_address *http_exchange_peer(const struct http_exchange *exchange)
{
    return &exchange->peer;
}

void http_exchange_set_note(struct http_exchange *exchange, const void *note)
{
    exchange->note = note;
}

const void *http_exchange_note(const struct http_exchange *exchange)
{
    return exchange->note;
}

const char *http_request_header(const struct http_request *request, const char *name, size_t *ret_count)
{
    const char *value = NULL;
    size_t count = 0;
    for (size_t i = 0; i < request->header_count; i++) {
        if (strcmp(request->headers[i].name, name) == 0) {
            value = value == NULL ? request->headers[i].value : value;
            count++;
        }
    }
    if (ret_count != NULL) {
        *ret_count = count;
    }
    return value;
}

void http_respond(struct http_exchange *exchange, const struct http_response *response)
{
    assert(exchange != NULL && exchange->status == 0 && response->status >= 200);
    struct http_server *server = exchange->server;
    struct buf head;
    buf_init(&head, 16384);
    write_head(&head, response);
    exchange->answer_body = response->body;
    exchange->answer_body_size = response->body_size;
    exchange->status = response->status;
    /* A body that found no memory must not look like an empty one: without a head the connection is closed, and the
     * client asks again. */
    if (response->content_type == NULL || response->body != NULL) {
        exchange->answer_head = buf_take(&head, &exchange->answer_head_size);
    }
    buf_done(&head);

    thread_lock(&server->lock);
    bool is_over = server->is_over;
    if (!is_over) {
        *server->answered_last = exchange;
        server->answered_last = &exchange->next;
        uv_async_send(&server->wake);
    }
    thread_unlock(&server->lock);
    if (is_over) {
        http_exchange_free(exchange);
    }
}

void http_respond_buf(struct http_exchange *exchange, int status, const char *content_type, struct buf *buf)
{
    struct http_response response = {.status = status, .content_type = content_type};
    response.body = buf_take(buf, &response.body_size);
    buf_done(buf);
    http_respond(exchange, &response);
}

void http_respond_text(struct http_exchange *exchange, int status, const char *content_type, const char *text)
{
    struct http_response response = {.status = status, .content_type = content_type, .body = strdup(text)};
    response.body_size = response.body == NULL ? 0 : strlen(text);
    http_respond(exchange, &response);
}
