/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the server with raw bytes: one with a few small routes and small limits, and a client that says what
 * it is told to.
 */
#ifndef FLOW_HTTP_FIXTURE_H
#define FLOW_HTTP_FIXTURE_H

#include "cmocka_all.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "http/health.h"
#include "http/http_problem.h"
#include "http/http_query.h"
#include "http/http_server.h"
#include "http/metrics.h"

#define ANSWER_SIZE 65536
#define FIRST_BYTE_MS 5000 /* Until something is said at all, on a busy machine too. */
#define HOST "Host: test\r\n"
#define BODY_MAX 1000
#define PEER_CONNECTIONS_MAX 20

/* ---- a server with three small routes ---- */

static void handle_echo(void *context, struct http_exchange *exchange)
{
    (void)context;
    const struct http_request *request = http_exchange_request(exchange);
    char text[BODY_MAX + 200];
    snprintf(text, sizeof text, "%s|%s|%.*s", request->method, request->params[0] == NULL ? "" : request->params[0],
             (int)request->body_size, request->body);
    http_respond_text(exchange, 200, "text/plain", text);
}

static void answer_late(void *context)
{
    struct timespec wait = {.tv_nsec = 400 * 1000 * 1000};
    nanosleep(&wait, NULL);
    http_respond_text(context, 200, "text/plain", "late");
}

static struct thread late_threads[64];
static size_t late_count;

static void handle_late(void *context, struct http_exchange *exchange)
{
    (void)context;
    struct err err = ERR_INIT;
    assert_true(late_count < 64);
    assert_true(thread_start(&late_threads[late_count++], "late", answer_late, exchange, &err));
}

static const struct http_route routes[] = {
    {"POST", "/echo", BODY_MAX, handle_echo},
    {"PUT", "/echo/{id}", BODY_MAX, handle_echo},
    {"GET", "/echo/{id}", 0, handle_echo},
    {"GET", "/late", 0, handle_late},
};

static struct http_server *server;
static struct metrics *metrics;

static int start(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    metrics = metrics_new(&err);
    struct http_options options = {.listen = "127.0.0.1:0",
                                   .routes = routes,
                                   .route_count = sizeof routes / sizeof *routes,
                                   .limits = http_limits_default,
                                   .metrics = metrics};
    options.limits.header_timeout_ms = 300;
    options.limits.body_timeout_ms = 300;
    options.limits.head_size_max = 4096;
    options.limits.connection_count_max = 40;
    options.limits.bodies_size_max = 4000;
    options.limits.peer_connection_count_max = PEER_CONNECTIONS_MAX;
    server = http_server_open(&options, &err);
    return server == NULL ? -1 : 0;
}

static int stop(void **state)
{
    (void)state;
    for (size_t i = 0; i < late_count; i++) {
        thread_join(&late_threads[i]);
    }
    http_server_free(&server);
    metrics_free(&metrics);
    return 0;
}

/* ---- a client ---- */

static int dial_from(const char *source)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in own = {.sin_family = AF_INET};
    assert_int_equal(inet_pton(AF_INET, source, &own.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)http_server_port(server))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static int dial(void)
{
    return dial_from("127.0.0.1");
}

static void put(int fd, const char *bytes, size_t size)
{
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* Reads until the peer closes (*ret_closed) or is silent for wait_ms behind what it said. */
static size_t collect(int fd, char *answer, int wait_ms, bool *ret_closed)
{
    size_t size = 0;
    *ret_closed = false;
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    while (size < ANSWER_SIZE - 1 && poll(&poller, 1, size == 0 ? FIRST_BYTE_MS : wait_ms) > 0) {
        ssize_t got = recv(fd, answer + size, ANSWER_SIZE - 1 - size, 0);
        if (got <= 0) {
            *ret_closed = true;
            break;
        }
        size += (size_t)got;
    }
    answer[size] = '\0';
    return size;
}

static int status_of(const char *answer)
{
    int status = 0;
    return sscanf(answer, "HTTP/1.1 %d", &status) == 1 ? status : 0;
}

#endif
