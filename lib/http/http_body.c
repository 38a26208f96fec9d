/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a request's body, with a length or in chunks. Memory for them
 * is counted before it is taken: against the route's limit and the server's.
 */
#include "http_private.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 4096

bool http_body_has_room(struct http_exchange *exchange, size_t size)
{
    size_t wanted = exchange->body_size + size;
    if (exchange->body != NULL && wanted <= exchange->body_capacity) {
        return true;
    }
    size_t capacity = exchange->body_capacity;
    if (exchange->body == NULL) {
        capacity = size > 0 ? size : FIRST_CAPACITY; /* An announced size is taken at its word. */
    }
    while (capacity < wanted) {
        capacity *= 2;
    }
    capacity = capacity > exchange->body_size_max ? exchange->body_size_max : capacity;
    if (!http_server_reserve(exchange->server, exchange, capacity - exchange->body_capacity)) {
        return false;
    }
    char *bigger = realloc(exchange->body, capacity + 1);
    if (bigger == NULL) {
        return false;
    }
    exchange->body = bigger;
    exchange->body_capacity = capacity;
    return true;
}

/* Keeps a piece of the body, or refuses. */
static bool keep_body(struct http_conn *conn, const char *bytes, size_t size)
{
    struct http_exchange *exchange = conn->exchange;
    if (size > exchange->body_size_max - exchange->body_size) {
        HTTP_CONN_REFUSE(conn, http_problem_body_too_large, "the limit here is %zu bytes", exchange->body_size_max);
        return false;
    }
    if (!http_body_has_room(exchange, size)) {
        HTTP_CONN_REFUSE(conn, http_problem_busy, "the bodies in flight are at their limit");
        return false;
    }
    memcpy(exchange->body + exchange->body_size, bytes, size);
    exchange->body_size += size;
    return true;
}

/* Takes what belongs to the body and returns how much that was. */
static size_t take_length(struct http_conn *conn, const char *bytes, size_t size)
{
    size_t taken = size < conn->length_left ? size : (size_t)conn->length_left;
    conn->length_left -= taken;
    if (keep_body(conn, bytes, taken) && conn->length_left == 0) {
        http_conn_hand_over(conn);
    }
    return taken;
}

/* What a chunk announces is judged before its bytes come; data_size of them have. */
static bool chunk_fits(struct http_conn *conn, size_t data_size)
{
    size_t size_max = conn->exchange->body_size_max;
    size_t room = size_max - conn->exchange->body_size;
    bool fits = data_size <= room && conn->chunk.left_size <= room - data_size;
    if (!fits) {
        HTTP_CONN_REFUSE(conn, http_problem_body_too_large, "the limit here is %zu bytes", size_max);
    }
    return fits;
}

static size_t take_chunks(struct http_conn *conn, const char *bytes, size_t size)
{
    size_t taken = 0;
    size_t data_size = 0;
    switch (http_chunk_next(&conn->chunk, bytes, size, &taken, &data_size)) {
    case HTTP_CHUNK_STEP_BROKEN:
        HTTP_CONN_REFUSE(conn, http_problem_request_malformed,
                         "the body is not chunked as it should be, or has a trailer");
        break;
    case HTTP_CHUNK_STEP_DONE: http_conn_hand_over(conn); break;
    case HTTP_CHUNK_STEP_MORE:
        if (conn->chunk.place == HTTP_CHUNK_DATA && !chunk_fits(conn, data_size)) {
            return size;
        }
        if (data_size > 0 && !keep_body(conn, bytes + taken, data_size)) {
            return size;
        }
        break;
    }
    return taken + data_size;
}

size_t http_body_take(struct http_conn *conn, const char *bytes, size_t size)
{
    return conn->is_chunked ? take_chunks(conn, bytes, size) : take_length(conn, bytes, size);
}
