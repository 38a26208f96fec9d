/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection: reads a request, hands it over, writes its answer, and only
 * then looks at the next, so that pipelined requests are answered in order.
 *
 *   IDLE -> HEAD -> BODY -> HANDLING -> WRITING -> IDLE | DRAINING -> CLOSING
 *
 * A refusal skips HANDLING and is the last answer of its connection: what
 * follows cannot be trusted. Before closing, the connection drains for a
 * moment, since closing with unread bytes would reset the answer away.
 */
#include "http_private.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* ---- llhttp's side: it decides the framing of a head ---- */

static int on_headers_complete(llhttp_t *parser)
{
    struct http_conn *conn = parser->data;
    conn->is_chunked = (parser->flags & F_CHUNKED) != 0;
    conn->length_left = conn->is_chunked ? 0 : parser->content_length;
    conn->is_last = !llhttp_should_keep_alive(parser);
    return HPE_PAUSED; /* The body is ours: http_chunk.c is stricter than llhttp. */
}

static const llhttp_settings_t parser_settings = {.on_headers_complete = on_headers_complete};

static bool head_is_accepted(struct http_conn *conn)
{
    llhttp_init(&conn->parser, HTTP_REQUEST, &parser_settings);
    conn->parser.data = conn;
    return llhttp_execute(&conn->parser, conn->head.data, conn->head.size) == HPE_PAUSED;
}

/* ---- timers ---- */

static void on_timeout(uv_timer_t *timer)
{
    struct http_conn *conn = timer->data;
    if (conn->state == HTTP_CONN_HEAD) {
        HTTP_CONN_REFUSE(conn, http_problem_request_timeout, "the headers took longer than %lld ms",
                         (long long)conn->server->options.limits.header_timeout_ms);
    } else if (conn->state == HTTP_CONN_BODY) {
        HTTP_CONN_REFUSE(conn, http_problem_request_timeout, "the body took longer than %lld ms",
                         (long long)conn->server->options.limits.body_timeout_ms);
    } else {
        http_conn_close(conn);
    }
}

static void set_deadline(struct http_conn *conn, int64_t timeout_ms)
{
    uv_timer_start(&conn->timer, on_timeout, (uint64_t)timeout_ms, 0);
}

/* ---- closing ---- */

static void on_closed(uv_handle_t *handle)
{
    struct http_conn *conn = handle->data;
    if (--conn->open_handle_count > 0) {
        return;
    }
    struct http_server *server = conn->server;
    http_peer_leave(&server->peers, conn->peer);
    buf_done(&conn->head);
    free(conn->rest);
    free(conn);
    http_server_conn_gone(server);
}

void http_conn_close(struct http_conn *conn)
{
    if (conn->state == HTTP_CONN_CLOSING) {
        return;
    }
    /* An exchange that a handler has, or that waits to be written, lives on without us; any other goes now. */
    struct http_exchange *exchange = conn->exchange;
    if (exchange != NULL) {
        exchange->conn = NULL;
        atomic_store(&exchange->has_left, true);
        if (conn->state != HTTP_CONN_HANDLING) {
            http_server_release(conn->server, exchange);
            http_exchange_free(exchange);
        }
        conn->exchange = NULL;
    }
    conn->state = HTTP_CONN_CLOSING;
    if (conn->previous != NULL) {
        conn->previous->next = conn->next;
    } else {
        conn->server->conns = conn->next;
    }
    if (conn->next != NULL) {
        conn->next->previous = conn->previous;
    }
    uv_close((uv_handle_t *)&conn->timer, on_closed);
    uv_close((uv_handle_t *)&conn->tcp, on_closed);
}

/* ---- from bytes to a request ---- */

/* Nothing is read until the exchange is answered. */
static void await_answer(struct http_conn *conn)
{
    conn->state = HTTP_CONN_HANDLING;
    uv_read_stop((uv_stream_t *)&conn->tcp);
    uv_timer_stop(&conn->timer);
}

void http_conn_refuse(struct http_conn *conn, const struct http_problem *problem, const struct http_header *header,
                      const char *format, ...)
{
    char detail[HTTP_PROBLEM_DETAIL_SIZE];
    va_list args;
    va_start(args, format);
    struct buf text;
    buf_init(&text, sizeof detail);
    buf_vformat(&text, format, args);
    va_end(args);
    text_copy(detail, sizeof detail, text.data);
    buf_done(&text);

    conn->is_last = true;
    if (conn->exchange == NULL) {
        conn->exchange = http_exchange_new(conn->server, conn);
    }
    if (conn->exchange == NULL) {
        http_conn_close(conn);
        return;
    }
    await_answer(conn);
    http_respond_problem(conn->exchange, problem, header, "%s", detail);
}

void http_conn_hand_over(struct http_conn *conn)
{
    struct http_exchange *exchange = conn->exchange;
    struct http_request *request = &exchange->request;
    if (exchange->body == NULL && !http_body_has_room(exchange, 0)) {
        HTTP_CONN_REFUSE(conn, http_problem_busy, "no memory for the request");
        return;
    }
    exchange->body[exchange->body_size] = '\0';
    request->body = exchange->body;
    request->body_size = exchange->body_size;
    await_answer(conn);
    conn->server->options.routes[exchange->route].handle(conn->server->options.context, exchange);
}

static void on_continue_written(uv_write_t *write, int status)
{
    (void)status;
    free(write);
}

static void send_continue(struct http_conn *conn)
{
    static char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    uv_write_t *write = malloc(sizeof *write);
    uv_buf_t buf = uv_buf_init(text, sizeof text - 1);
    if (write == NULL || uv_write(write, (uv_stream_t *)&conn->tcp, &buf, 1, on_continue_written) != 0) {
        free(write);
        http_conn_close(conn);
    }
}

/* The head is known and routed: is the body welcome? Announced sizes are judged before a byte of the body is taken. */
static void begin_body(struct http_conn *conn)
{
    struct http_exchange *exchange = conn->exchange;
    size_t size_max = exchange->body_size_max;
    conn->chunk = (struct http_chunk){.place = HTTP_CHUNK_SIZE};
    if (size_max == 0) {
        HTTP_CONN_REFUSE(conn, http_problem_body_not_expected, "send this request without a body");
    } else if (conn->length_left > size_max) {
        HTTP_CONN_REFUSE(conn, http_problem_body_too_large, "Content-Length is %llu, the limit here is %zu bytes",
                         (unsigned long long)conn->length_left, size_max);
    } else if (!http_body_has_room(exchange, (size_t)conn->length_left)) {
        HTTP_CONN_REFUSE(conn, http_problem_busy, "the bodies in flight are at their limit");
    } else {
        conn->state = HTTP_CONN_BODY;
        set_deadline(conn, conn->server->options.limits.body_timeout_ms);
        if (exchange->head.expects_continue) {
            send_continue(conn);
        }
    }
}

/* Finds the route, or refuses. */
static bool find_route(struct http_conn *conn)
{
    struct http_exchange *exchange = conn->exchange;
    const struct http_options *options = &conn->server->options;
    const char *method = exchange->head.method;
    exchange->is_head_method = strcmp(method, "HEAD") == 0;
    exchange->request.method = exchange->is_head_method ? "GET" : method;
    exchange->request.path = exchange->head.path;
    exchange->request.query = exchange->head.query;
    exchange->request.headers = exchange->head.headers;
    exchange->request.header_count = exchange->head.header_count;
    exchange->path_bytes = strdup(exchange->head.path);
    if (exchange->path_bytes == NULL) {
        HTTP_CONN_REFUSE(conn, http_problem_busy, "no memory for the request");
        return false;
    }
    char allow[HTTP_ALLOW_SIZE];
    enum http_match match = http_route_find(options->routes, options->route_count, exchange->request.method,
                                            exchange->path_bytes, &exchange->route, exchange->request.params, allow);
    if (match == HTTP_MATCH_FOUND) {
        exchange->body_size_max = options->routes[exchange->route].body_size_max;
        return true;
    }
    bool was_last = conn->is_last;
    if (match == HTTP_MATCH_NO_METHOD) {
        const struct http_header header = {"Allow", allow};
        http_conn_refuse(conn, &http_problem_method_not_allowed, &header, "allowed here: %s", allow);
    } else {
        HTTP_CONN_REFUSE(conn, http_problem_not_found, "no route for this path");
    }
    conn->is_last = was_last || exchange->head.has_body; /* The framing is sound: go on if nothing is left unread. */
    return false;
}

/* False: answered by whoever looks at heads. What comes of the body is not read, so it is the last answer. */
static bool is_body_wanted(struct http_conn *conn)
{
    const struct http_options *options = &conn->server->options;
    if (options->wants_body == NULL || options->wants_body(options->context, conn->exchange)) {
        return true;
    }
    conn->is_last = true;
    await_answer(conn);
    return false;
}

/* llhttp and our own reading must both accept the head, and agree on whether there is a body. */
static void take_whole_head(struct http_conn *conn)
{
    struct http_exchange *exchange = conn->exchange = http_exchange_new(conn->server, conn);
    if (exchange == NULL) {
        http_conn_close(conn);
        return;
    }
    bool is_accepted = head_is_accepted(conn);
    size_t size = 0;
    exchange->head_bytes = buf_take(&conn->head, &size);
    const char *wrong = http_head_parse(exchange->head_bytes, size, &exchange->head);
    if (wrong == NULL && !http_head_method_is_known(exchange->head.method)) {
        HTTP_CONN_REFUSE(conn, http_problem_method_unknown,
                         "no path here takes this method; methods are written in upper case");
        return;
    }
    if (wrong == NULL && !is_accepted) {
        const char *reason = llhttp_get_error_reason(&conn->parser);
        wrong = reason != NULL ? reason : "the head does not end where it seems to";
    }
    bool has_body = is_accepted && (conn->is_chunked || conn->length_left > 0);
    if (wrong == NULL && exchange->head.has_body != has_body) {
        wrong = "the size of the body is in doubt";
    }
    if (exchange->head.has_too_many_headers) {
        HTTP_CONN_REFUSE(conn, http_problem_head_too_large, "the limit is %d header lines", HTTP_HEADER_COUNT_MAX);
    } else if (wrong != NULL) {
        HTTP_CONN_REFUSE(conn, http_problem_request_malformed, "%s", wrong);
    } else if (!find_route(conn)) {
        return;
    } else if (exchange->head.has_other_expectation) {
        HTTP_CONN_REFUSE(conn, http_problem_expectation_failed, "the Expect header names something else");
    } else if (!has_body) {
        http_conn_hand_over(conn);
    } else if (is_body_wanted(conn)) {
        begin_body(conn);
    }
}

/* Takes what belongs to the head and returns how much that was. */
static size_t take_head(struct http_conn *conn, const char *bytes, size_t size)
{
    size_t size_max = conn->server->options.limits.head_size_max;
    if (conn->state == HTTP_CONN_IDLE) {
        conn->state = HTTP_CONN_HEAD;
        conn->head_offset = 0;
        set_deadline(conn, conn->server->options.limits.header_timeout_ms);
    }
    size_t room = size_max - conn->head.size;
    size_t taken = size < room ? size : room;
    buf_append(&conn->head, bytes, taken);
    if (conn->head.has_overflowed) {
        HTTP_CONN_REFUSE(conn, http_problem_busy, "no memory for the request");
        return taken;
    }
    while (conn->head_offset <= 1 && conn->head.size >= 2 && memcmp(conn->head.data, "\r\n", 2) == 0) {
        buf_consume(&conn->head, 2); /* Empty lines before a request are allowed (RFC 9112, 2.2). */
        conn->head_offset = 0;
    }
    size_t head_size = 0;
    switch (http_head_scan(conn->head.data, conn->head.size, &conn->head_offset, &head_size)) {
    case HTTP_SCAN_COMPLETE:
        taken -= conn->head.size - head_size;
        buf_truncate(&conn->head, head_size);
        take_whole_head(conn);
        break;
    case HTTP_SCAN_BROKEN:
        HTTP_CONN_REFUSE(conn, http_problem_request_malformed,
                         "a byte that no head holds, or a line that does not end in CR LF");
        break;
    case HTTP_SCAN_MORE:
        if (conn->head.size == size_max && memchr(conn->head.data, '\n', size_max) == NULL) {
            HTTP_CONN_REFUSE(conn, http_problem_target_too_long, "the limit is %zu bytes for request line and headers",
                             size_max);
        } else if (conn->head.size == size_max) {
            HTTP_CONN_REFUSE(conn, http_problem_head_too_large, "the limit is %zu bytes for request line and headers",
                             size_max);
        }
        break;
    }
    return taken;
}

static void keep_rest(struct http_conn *conn, const char *bytes, size_t size)
{
    char *copy = conn->is_last || size == 0 ? NULL : malloc(size);
    if (copy != NULL) {
        memcpy(copy, bytes, size);
    } else if (size > 0 && !conn->is_last) {
        conn->is_last = true; /* Without memory for what follows, this answer is the last. */
    }
    free(conn->rest);
    conn->rest = copy;
    conn->rest_size = copy == NULL ? 0 : size;
}

static void feed(struct http_conn *conn, const char *bytes, size_t size)
{
    while (size > 0 && conn->state <= HTTP_CONN_BODY) {
        size_t taken = conn->state != HTTP_CONN_BODY ? take_head(conn, bytes, size) : http_body_take(conn, bytes, size);
        assert(taken <= size);
        bytes += taken;
        size -= taken;
    }
    if (conn->state == HTTP_CONN_HANDLING) {
        keep_rest(conn, bytes, size);
    }
}

/* ---- reading ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested_size, uv_buf_t *buf)
{
    (void)suggested_size;
    struct http_conn *conn = handle->data;
    *buf = uv_buf_init(conn->server->read_buffer, HTTP_READ_SIZE);
}

/* While a handler works: what comes is the next request's, and so much of it is kept. */
static void keep_more(struct http_conn *conn, const char *bytes, size_t size)
{
    char *more = conn->is_last ? NULL : realloc(conn->rest, conn->rest_size + size);
    if (more == NULL) {
        conn->is_last = true;
    } else {
        memcpy(more + conn->rest_size, bytes, size);
        conn->rest = more;
        conn->rest_size += size;
    }
    if (conn->is_last || conn->rest_size >= HTTP_READ_SIZE) {
        uv_read_stop((uv_stream_t *)&conn->tcp); /* A client that leaves is noticed when it is answered. */
    }
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct http_conn *conn = stream->data;
    if (size < 0) {
        http_conn_close(conn);
    } else if (size > 0 && conn->state == HTTP_CONN_HANDLING) {
        keep_more(conn, buf->base, (size_t)size);
    } else if (size > 0 && conn->state != HTTP_CONN_DRAINING) {
        feed(conn, buf->base, (size_t)size);
    }
}

static void start_reading(struct http_conn *conn)
{
    if (uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read) != 0) {
        http_conn_close(conn);
    }
}

void http_conn_watch(struct http_conn *conn)
{
    assert(conn->state == HTTP_CONN_HANDLING);
    start_reading(conn);
}

/* ---- writing ---- */

static void on_shutdown(uv_shutdown_t *shutdown, int status)
{
    (void)shutdown;
    (void)status;
}

static void drain(struct http_conn *conn)
{
    conn->state = HTTP_CONN_DRAINING;
    set_deadline(conn, HTTP_LINGER_MS);
    if (uv_shutdown(&conn->shutdown, (uv_stream_t *)&conn->tcp, on_shutdown) != 0) {
        http_conn_close(conn);
        return;
    }
    start_reading(conn);
}

static void next_request(struct http_conn *conn)
{
    conn->state = HTTP_CONN_IDLE;
    set_deadline(conn, conn->server->options.limits.idle_timeout_ms);
    char *rest = conn->rest;
    size_t rest_size = conn->rest_size;
    conn->rest = NULL;
    conn->rest_size = 0;
    start_reading(conn);
    if (rest != NULL && conn->state == HTTP_CONN_IDLE) {
        feed(conn, rest, rest_size);
    }
    free(rest);
}

static void on_written(uv_write_t *write, int status)
{
    struct http_conn *conn = write->data;
    if (conn->state == HTTP_CONN_CLOSING) {
        return; /* http_conn_close() has let the exchange go. */
    }
    http_server_count(conn->server, conn->exchange);
    http_server_release(conn->server, conn->exchange);
    http_exchange_free(conn->exchange);
    conn->exchange = NULL;
    if (status != 0) {
        http_conn_close(conn);
    } else if (conn->is_last) {
        drain(conn);
    } else {
        next_request(conn);
    }
}

void http_conn_answer(struct http_conn *conn)
{
    struct http_exchange *exchange = conn->exchange;
    assert(exchange != NULL && conn->state == HTTP_CONN_HANDLING);
    uv_read_stop((uv_stream_t *)&conn->tcp); /* It may be watched. */
    if (exchange->answer_head == NULL) {
        conn->state = HTTP_CONN_WRITING;
        http_conn_close(conn);
        return;
    }
    conn->is_last = conn->is_last || conn->server->is_stopping;
    const char *keep = conn->is_last                       ? "Connection: close\r\n"
                       : exchange->head.minor_version == 0 ? "Connection: keep-alive\r\n"
                                                           : "";
    bool is_whole = text_format(conn->continuation, sizeof conn->continuation, "Date: %s\r\n%s\r\n",
                                http_server_date(conn->server), keep);
    assert(is_whole);
    conn->state = HTTP_CONN_WRITING;
    set_deadline(conn, conn->server->options.limits.write_timeout_ms);
    uv_buf_t bufs[3] = {
        uv_buf_init(exchange->answer_head, (unsigned)exchange->answer_head_size),
        uv_buf_init(conn->continuation, (unsigned)strlen(conn->continuation)),
        uv_buf_init(exchange->answer_body, (unsigned)exchange->answer_body_size),
    };
    bool has_body = exchange->answer_body != NULL && exchange->answer_body_size > 0 && !exchange->is_head_method;
    conn->write.data = conn;
    if (uv_write(&conn->write, (uv_stream_t *)&conn->tcp, bufs, has_body ? 3 : 2, on_written) != 0) {
        http_conn_close(conn);
    }
}

/* ---- accepting and stopping ---- */

void http_conn_accept(struct http_server *server)
{
    struct http_conn *conn = calloc(1, sizeof *conn);
    if (conn == NULL) {
        http_server_turn_away(server);
        return;
    }
    conn->server = server;
    conn->tcp.data = conn->timer.data = conn;
    buf_init(&conn->head, server->options.limits.head_size_max);
    int failed = uv_tcp_init(&server->loop, &conn->tcp) + uv_timer_init(&server->loop, &conn->timer);
    assert(failed == 0);
    conn->open_handle_count = 2;
    conn->next = server->conns;
    if (conn->next != NULL) {
        conn->next->previous = conn;
    }
    server->conns = conn;
    server->conn_count++;
    if (uv_accept((uv_stream_t *)&server->listener, (uv_stream_t *)&conn->tcp) != 0) {
        http_conn_close(conn);
        return;
    }
    uv_tcp_nodelay(&conn->tcp, 1);
    conn->peer = http_peer_join(&server->peers, &conn->tcp);
    bool is_far = false;
    const char *wrong = http_server_over_limit(server, conn, &is_far);
    if (is_far) {
        http_conn_close(conn);
    } else if (wrong != NULL) {
        HTTP_CONN_REFUSE(conn, http_problem_busy, "%s", wrong);
    } else {
        set_deadline(conn, server->options.limits.header_timeout_ms);
        start_reading(conn);
    }
}

void http_conn_stop(struct http_conn *conn)
{
    if (conn->state == HTTP_CONN_IDLE || conn->state == HTTP_CONN_DRAINING) {
        http_conn_close(conn);
    }
}
