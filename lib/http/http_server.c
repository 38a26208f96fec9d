/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop: accepts, takes answers from other threads, stops. Everything but
 * the list of answered exchanges belongs to the loop's thread.
 */
#include "http_private.h"

#include <assert.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

#define LISTEN_BACKLOG 1024
#define REFUSED_CONNECTION_COUNT_MAX 64 /* Beyond a limit so many are told so, the rest is just closed. */

const struct http_limits http_limits_default = {
    .connection_count_max = 4096,
    .head_size_max = 32768,
    .bodies_size_max = (size_t)256 * 1024 * 1024,
    .header_timeout_ms = 5000,
    .body_timeout_ms = 30000,
    .idle_timeout_ms = 60000,
    .write_timeout_ms = 60000,
};

/* ---- accounts ---- */

bool http_server_reserve(struct http_server *server, struct http_exchange *exchange, size_t size)
{
    if (size > server->options.limits.bodies_size_max - server->bodies_size) {
        return false;
    }
    server->bodies_size += size;
    exchange->reserved_size += size;
    if (server->bodies_gauge != NULL) {
        metric_set(server->bodies_gauge, (double)server->bodies_size);
    }
    return true;
}

void http_server_release(struct http_server *server, struct http_exchange *exchange)
{
    assert(exchange->reserved_size <= server->bodies_size);
    server->bodies_size -= exchange->reserved_size;
    exchange->reserved_size = 0;
    if (server->bodies_gauge != NULL) {
        metric_set(server->bodies_gauge, (double)server->bodies_size);
    }
}

const char *http_server_date(struct http_server *server)
{
    time_t now = time(NULL);
    if (now != (time_t)server->date_s) {
        struct tm parts;
        gmtime_r(&now, &parts);
        size_t size = strftime(server->date, sizeof server->date, "%a, %d %b %Y %H:%M:%S GMT", &parts);
        assert(size > 0);
        server->date_s = now;
    }
    return server->date;
}

void http_server_count(struct http_server *server, const struct http_exchange *exchange)
{
    if (server->options.metrics == NULL) {
        return;
    }
    size_t route = exchange->route == HTTP_ROUTE_NONE ? server->options.route_count : exchange->route;
    metric_add(server->request_counters[route][exchange->status / 100], 1);
    metric_observe(server->request_seconds[route], (double)(uv_hrtime() - exchange->started_ns) / 1e9);
}

static bool make_metrics(struct http_server *server)
{
    struct metrics *metrics = server->options.metrics;
    if (metrics == NULL) {
        return true;
    }
    size_t count = server->options.route_count;
    server->request_counters = calloc(count + 1, sizeof *server->request_counters);
    server->request_seconds = calloc(count + 1, sizeof(struct metric *));
    if (server->request_counters == NULL || server->request_seconds == NULL) {
        return false;
    }
    for (size_t i = 0; i <= count; i++) {
        const char *method = i == count ? "" : server->options.routes[i].method;
        const char *route = i == count ? "none" : server->options.routes[i].pattern;
        for (int class = 2; class < HTTP_STATUS_CLASS_COUNT; class ++) {
            static const char *const names[] = {"", "", "2xx", "3xx", "4xx", "5xx"};
            const char *const labels[] = {"method", method, "route", route, "status", names[class], NULL};
            server->request_counters[i][class] =
                metrics_counter(metrics, "onceward_http_requests_total", "Answers given, by route.", labels);
        }
        const char *const labels[] = {"method", method, "route", route, NULL};
        server->request_seconds[i] =
            metrics_histogram(metrics, "onceward_http_request_seconds",
                              "From the whole head to the last byte of the answer.", labels, NULL, 0);
    }
    server->connections_gauge = metrics_gauge(metrics, "onceward_http_connections", "Open connections.", NULL);
    server->bodies_gauge =
        metrics_gauge(metrics, "onceward_http_bodies_bytes", "Bodies and large answers in memory.", NULL);
    return true;
}

/* ---- connections that are too many ---- */

const char *http_server_over_limit(const struct http_server *server, const struct http_conn *conn, bool *ret_is_far)
{
    const struct http_limits *limits = &server->options.limits;
    size_t of_peer = limits->peer_connection_count_max == 0 || conn->peer == NULL ? 0 : conn->peer->conn_count;
    *ret_is_far = server->conn_count > limits->connection_count_max + REFUSED_CONNECTION_COUNT_MAX ||
                  of_peer > limits->peer_connection_count_max + REFUSED_CONNECTION_COUNT_MAX;
    return server->conn_count > limits->connection_count_max ? "the server has as many connections as it takes"
           : of_peer > limits->peer_connection_count_max ? "there are as many connections from this address as may be"
                                                         : NULL;
}

/* ---- stopping ---- */

static void close_unless_closing(uv_handle_t *handle)
{
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

static void end_when_empty(struct http_server *server)
{
    if (server->is_stopping && server->conn_count == 0) {
        close_unless_closing((uv_handle_t *)&server->wake);
        close_unless_closing((uv_handle_t *)&server->drain_timer);
    }
}

void http_server_conn_gone(struct http_server *server)
{
    server->conn_count--;
    if (server->connections_gauge != NULL) {
        metric_set(server->connections_gauge, (double)server->conn_count);
    }
    end_when_empty(server);
}

static void on_drain_timeout(uv_timer_t *timer)
{
    struct http_server *server = timer->data;
    while (server->conns != NULL) {
        http_conn_close(server->conns);
    }
}

static void begin_stop(struct http_server *server, int64_t drain_ms)
{
    server->is_stopping = true;
    close_unless_closing((uv_handle_t *)&server->listener);
    uv_timer_start(&server->drain_timer, on_drain_timeout, (uint64_t)drain_ms, 0);
    struct http_conn *next = NULL;
    for (struct http_conn *conn = server->conns; conn != NULL; conn = next) {
        next = conn->next;
        http_conn_stop(conn);
    }
    end_when_empty(server);
}

/* ---- the loop ---- */

static void answer(struct http_server *server, struct http_exchange *exchange)
{
    if (exchange->conn == NULL) {
        http_server_count(server, exchange);
        http_server_release(server, exchange);
        http_exchange_free(exchange);
        return;
    }
    /* A large answer counts until its client has taken it. What was only read can be read again; the answer to a call
     * that wrote is given in any case, and its body has been counted already. */
    if (exchange->answer_body_size >= HTTP_BIG_ANSWER_SIZE &&
        !http_server_reserve(server, exchange, exchange->answer_body_size) &&
        strcmp(exchange->request.method, "GET") == 0) {
        http_exchange_forget_answer(exchange);
        http_respond_problem(exchange, &http_problem_busy, NULL, "too many large answers are in flight");
        return;
    }
    http_conn_answer(exchange->conn);
}

static void on_wake(uv_async_t *wake)
{
    struct http_server *server = wake->data;
    thread_lock(&server->lock);
    struct http_exchange *exchange = server->answered_first;
    server->answered_first = NULL;
    server->answered_last = &server->answered_first;
    bool must_stop = server->must_stop;
    int64_t drain_ms = server->drain_ms;
    thread_unlock(&server->lock);
    while (exchange != NULL) {
        struct http_exchange *next = exchange->next;
        exchange->next = NULL;
        answer(server, exchange);
        exchange = next;
    }
    if (must_stop && !server->is_stopping) {
        begin_stop(server, drain_ms);
    }
}

static void on_turned_away(uv_handle_t *handle)
{
    struct http_server *server = handle->data;
    server->is_turning_away = false;
    if (server->has_another && !server->is_stopping) {
        server->has_another = false;
        http_conn_accept(server);
    }
}

void http_server_turn_away(struct http_server *server)
{
    if (server->is_turning_away) {
        server->has_another = true;
        return;
    }
    int failed = uv_tcp_init(&server->loop, &server->turned_away);
    assert(failed == 0);
    server->turned_away.data = server;
    server->is_turning_away = true;
    (void)uv_accept((uv_stream_t *)&server->listener, (uv_stream_t *)&server->turned_away);
    uv_close((uv_handle_t *)&server->turned_away, on_turned_away);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct http_server *server = listener->data;
    if (status == 0) {
        http_conn_accept(server);
        if (server->connections_gauge != NULL) {
            metric_set(server->connections_gauge, (double)server->conn_count);
        }
    }
}

static void run(void *context)
{
    struct http_server *server = context;
    uv_run(&server->loop, UV_RUN_DEFAULT);
    /* Whoever answers from here on finds the server over; what was answered before is let go. */
    thread_lock(&server->lock);
    server->is_over = true;
    struct http_exchange *exchange = server->answered_first;
    server->answered_first = NULL;
    thread_unlock(&server->lock);
    while (exchange != NULL) {
        struct http_exchange *next = exchange->next;
        http_exchange_free(exchange);
        exchange = next;
    }
}

/* ---- opening ---- */

static bool split_address(const char *listen, char *host, size_t host_size, const char **ret_port, struct err *err)
{
    const char *colon = strrchr(listen, ':');
    if (colon == NULL || colon[1] == '\0') {
        return err_set(err, ERR_PERMANENT, "listen_invalid", "listen address \"%s\" is not host:port", listen);
    }
    size_t size = (size_t)(colon - listen);
    if (size >= 2 && listen[0] == '[' && listen[size - 1] == ']') {
        listen++;
        size -= 2;
    }
    if (!text_format(host, host_size, "%.*s", (int)size, listen)) {
        return err_set(err, ERR_PERMANENT, "listen_invalid", "the host in the listen address is too long");
    }
    *ret_port = colon + 1;
    return true;
}

static bool bind_address(struct http_server *server, const struct addrinfo *address, struct err *err)
{
    int result = uv_tcp_bind(&server->listener, address->ai_addr, 0);
    if (result == 0) {
        result = uv_listen((uv_stream_t *)&server->listener, LISTEN_BACKLOG, on_connection);
    }
    if (result != 0) {
        return err_set(err, ERR_PERMANENT, "listen_failed", "cannot listen on %s: %s", server->options.listen,
                       uv_strerror(result));
    }
    struct sockaddr_storage bound;
    int size = sizeof bound;
    result = uv_tcp_getsockname(&server->listener, (struct sockaddr *)&bound, &size);
    assert(result == 0);
    server->port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                     : ((struct sockaddr_in *)&bound)->sin_port);
    return true;
}

static bool open_listener(struct http_server *server, struct err *err)
{
    char host[256] = "";
    const char *port = NULL;
    if (!split_address(server->options.listen, host, sizeof host, &port, err)) {
        return false;
    }
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *addresses = NULL;
    int result = getaddrinfo(host[0] == '\0' ? NULL : host, port, &hints, &addresses);
    if (result != 0) {
        return err_set(err, ERR_PERMANENT, "listen_invalid", "listen address \"%s\": %s", server->options.listen,
                       gai_strerror(result));
    }
    bool is_bound = bind_address(server, addresses, err);
    freeaddrinfo(addresses);
    return is_bound;
}

static void close_loop(struct http_server *server)
{
    close_unless_closing((uv_handle_t *)&server->listener);
    close_unless_closing((uv_handle_t *)&server->wake);
    close_unless_closing((uv_handle_t *)&server->drain_timer);
    uv_run(&server->loop, UV_RUN_DEFAULT);
    int result = uv_loop_close(&server->loop);
    assert(result == 0);
}

static void release(struct http_server *server)
{
    pthread_mutex_destroy(&server->lock);
    free(server->request_counters);
    free(server->request_seconds);
    free(server);
}

struct http_server *http_server_open(const struct http_options *options, struct err *err)
{
    struct http_server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for the HTTP server");
        return NULL;
    }
    server->options = *options;
    server->answered_last = &server->answered_first;
    pthread_mutex_init(&server->lock, NULL);
    if (!make_metrics(server) || uv_loop_init(&server->loop) != 0) {
        release(server);
        err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for the HTTP server");
        return NULL;
    }
    int failed = uv_tcp_init(&server->loop, &server->listener) + uv_timer_init(&server->loop, &server->drain_timer) +
                 uv_async_init(&server->loop, &server->wake, on_wake);
    assert(failed == 0);
    server->listener.data = server->wake.data = server->drain_timer.data = server;
    if (!open_listener(server, err) || !thread_start(&server->thread, "http", run, server, err)) {
        close_loop(server);
        release(server);
        return NULL;
    }
    return server;
}

int http_server_port(const struct http_server *server)
{
    return server->port;
}

void http_server_stop(struct http_server *server, int64_t drain_ms)
{
    if (!server->thread.is_running) {
        return;
    }
    thread_lock(&server->lock);
    server->must_stop = true;
    server->drain_ms = drain_ms;
    uv_async_send(&server->wake);
    thread_unlock(&server->lock);
    thread_join(&server->thread);
}

void http_server_free(struct http_server **serverp)
{
    struct http_server *server = *serverp;
    *serverp = NULL;
    if (server == NULL) {
        return;
    }
    http_server_stop(server, 0);
    assert(atomic_load(&server->exchange_count) == 0);
    close_loop(server);
    release(server);
}
