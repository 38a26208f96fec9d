/* SPDX-License-Identifier: Apache-2.0
 *
 * A strict HTTP/1.1 server: one loop on a thread of its own, a table of
 * routes, complete requests handed to handlers, answers taken from any thread.
 *
 * Whatever leaves the framing of a request in doubt gets exactly one answer,
 * 400, and the connection is closed. Header and body have absolute deadlines;
 * heads, bodies, connections and the sum of all bodies in flight have limits.
 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct buf;
struct http_exchange; /* One request and its answer to be. */
struct http_server;
struct metrics;

#define HTTP_PARAM_COUNT_MAX 4
#define HTTP_HEADER_COUNT_MAX 64
#define HTTP_RESPONSE_HEADER_COUNT_MAX 8

struct http_header {
    const char *name; /* In a request: in lower case. */
    const char *value;
};

/* Borrowed from the exchange until http_respond(). All texts are visible ASCII, header values may carry 8-bit bytes. */
struct http_request {
    const char *method;                       /* "GET" also for HEAD. */
    const char *path;                         /* As sent, without the query. Never decoded. */
    const char *query;                        /* NULL without "?". */
    const char *params[HTTP_PARAM_COUNT_MAX]; /* What stands where the route's pattern has {…}, in order. */
    const struct http_header *headers;
    size_t header_count;
    const char *body; /* Never NULL; ends in a NUL that body_size does not count. */
    size_t body_size;
};

/* Who is at the other end of a connection: an IPv4 address (as IPv6 writes it), or the upper half of an IPv6 one. */
struct http_peer_address {
    unsigned char bytes[16];
};

/* A handler runs on the loop's thread and must not block: it answers at once, or hands the exchange to another thread
 * that does. Every exchange is answered exactly once; a client that has gone changes nothing about that. */
struct http_route {
    const char *method;   /* "GET" serves HEAD too. */
    const char *pattern;  /* "/requests/{id}/documents": a piece in braces takes any piece that is not empty. */
    size_t body_size_max; /* 0: the route takes no body. */
    void (*handle)(void *context, struct http_exchange *exchange);
};

struct http_limits {
    size_t connection_count_max;
    size_t peer_connection_count_max; /* Of one peer; 0: as many as of all. */
    size_t head_size_max;             /* Request line and headers of one request. */
    size_t bodies_size_max;           /* All bodies in flight, and all large answers. */
    int64_t header_timeout_ms;        /* From the first byte of a request to the end of its headers. */
    int64_t body_timeout_ms;          /* From there to the end of its body. */
    int64_t idle_timeout_ms;          /* Between two requests of a connection. */
    int64_t write_timeout_ms;         /* For a client to take its answer. */
};

/* 5 s and 30 s, 60 s, 60 s; 4 096 connections, of one peer too, 32 KiB, 256 MiB. */
extern const struct http_limits http_limits_default;

/* Everything is borrowed until http_server_free(). */
struct http_options {
    const char *listen; /* "host:port" or "[v6]:port"; port 0 takes a free one. */
    const struct http_route *routes;
    size_t route_count;
    void *context; /* Given to every handler. */
    /* Asked when the head of a request with a body is there and its route is found, on the loop's thread: false when it
     * has answered instead, before a byte of the body is taken. The request has no body yet. May be NULL. */
    bool (*wants_body)(void *context, struct http_exchange *exchange);
    struct http_limits limits;
    struct metrics *metrics; /* May be NULL. */
};

/* Binds, listens and serves on a thread of its own. Permanent error when the address is wrong or taken. */
struct http_server *http_server_open(const struct http_options *options, struct err *err) MUST_CHECK;
int http_server_port(const struct http_server *server);

/* Stops accepting, closes what is idle, lets requests that have begun finish for up to drain_ms, then cuts the rest.
 * Blocks until the thread has ended. Exchanges may still be answered afterwards; the answers go nowhere. */
void http_server_stop(struct http_server *server, int64_t drain_ms);

/* Stops if need be. Precondition: every exchange has been answered. */
void http_server_free(struct http_server **serverp);

/* What the client sent. Lives until http_respond(). */
const struct http_request *http_exchange_request(const struct http_exchange *exchange);

/* For an answer that takes long: reads on meanwhile, so that a client that leaves is noticed. One that closes its
 * sending side counts as gone. On the loop's thread, by the handler itself, before it gives the exchange away. */
void http_exchange_watch(struct http_exchange *exchange);

/* Of a watched exchange, from any thread: nobody waits for the answer any more. It has to be answered all the same. */
bool http_exchange_has_left(const struct http_exchange *exchange);

/* The route that was found: an index into the table that the server was given. */
size_t http_exchange_route(const struct http_exchange *exchange);

/* Whose request this is. As long as the exchange. */
const struct http_peer_address *http_exchange_peer(const struct http_exchange *exchange);

/* A pointer of the handlers' own that stays with the exchange: who calls, for one. NULL until it is set. */
void http_exchange_set_note(struct http_exchange *exchange, const void *note);
const void *http_exchange_note(const struct http_exchange *exchange);

/* The value of a header (name in lower case), NULL when it is absent. *ret_count (may be NULL): how often it came. */
const char *http_request_header(const struct http_request *request, const char *name, size_t *ret_count);

struct http_response {
    int status;
    const char *content_type;                                   /* NULL without a body. */
    struct http_header headers[HTTP_RESPONSE_HEADER_COUNT_MAX]; /* Ends at the first without a name. */
    char *body;                                                 /* From malloc; the exchange takes it. NULL for none. */
    size_t body_size;
};

/* Answers, from any thread; the exchange and its request are gone for the caller. Header values must not hold control
 * bytes (asserted). */
void http_respond(struct http_exchange *exchange, const struct http_response *response);

/* The same with what buf holds as the body. Takes the bytes and is done with buf. */
void http_respond_buf(struct http_exchange *exchange, int status, const char *content_type, struct buf *buf);

/* The same with a copy of a text as the body. */
void http_respond_text(struct http_exchange *exchange, int status, const char *content_type, const char *text);

#endif
