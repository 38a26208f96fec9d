/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of lib/http share. libuv and llhttp occur in this module only.
 */
#ifndef HTTP_PRIVATE_H
#define HTTP_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <llhttp.h>
#include <uv.h>

#include "base/buf.h"
#include "base/thread.h"
#include "http/http_problem.h"
#include "http/http_server.h"
#include "http/metrics.h"

#define HTTP_READ_SIZE 65536
#define HTTP_LINGER_MS 2000
#define HTTP_ROUTE_NONE SIZE_MAX
#define HTTP_STATUS_CLASS_COUNT 6
#define HTTP_BIG_ANSWER_SIZE 65536 /* From here on an answer counts against the budget of bodies. */

/* ---- http_head.c: our own strict reading of a request's head, beside llhttp's ---- */

enum http_scan { HTTP_SCAN_MORE, HTTP_SCAN_COMPLETE, HTTP_SCAN_BROKEN };

struct http_head {
    const char *method;
    const char *path;
    char *query;           /* NULL without "?". */
    const char *authority; /* Of a target in absolute form, authority_size bytes; else NULL. */
    size_t authority_size;
    int minor_version;
    struct http_header headers[HTTP_HEADER_COUNT_MAX];
    size_t header_count;
    bool has_body;
    bool expects_continue;
    bool has_other_expectation;
    bool has_too_many_headers; /* What is wrong with it. */
};

/* Looks for the empty line from *offset on and moves *offset; *ret_size is the head's size with it. */
enum http_scan http_head_scan(const char *bytes, size_t size, size_t *offset, size_t *ret_size);

/* Cuts a complete head into texts, in place. NULL, or a static text that says what is wrong with it. */
const char *http_head_parse(char *bytes, size_t size, struct http_head *ret_head);

/* Whether a route could take it, so that it is worth an Allow. CONNECT is none: tunnels there are not. */
bool http_head_method_is_known(const char *method);

/* ---- http_chunk.c ---- */

enum http_chunk_place {
    HTTP_CHUNK_SIZE,
    HTTP_CHUNK_EXTENSION,
    HTTP_CHUNK_SIZE_LF,
    HTTP_CHUNK_DATA,
    HTTP_CHUNK_DATA_CR,
    HTTP_CHUNK_DATA_LF,
    HTTP_CHUNK_END_CR,
    HTTP_CHUNK_END_LF,
    HTTP_CHUNK_DONE,
};

struct http_chunk {
    enum http_chunk_place place;
    uint64_t left_size;
    int digit_count;
    size_t extension_size;
};

enum http_chunk_step { HTTP_CHUNK_STEP_MORE, HTTP_CHUNK_STEP_DONE, HTTP_CHUNK_STEP_BROKEN };

/* Goes on from where it was: *ret_taken bytes of framing, then *ret_data_size bytes of data behind them. */
enum http_chunk_step http_chunk_next(struct http_chunk *chunk, const char *bytes, size_t size, size_t *ret_taken,
                                     size_t *ret_data_size);

/* ---- http_route.c ---- */

enum http_match { HTTP_MATCH_FOUND, HTTP_MATCH_NO_PATH, HTTP_MATCH_NO_METHOD };

#define HTTP_ALLOW_SIZE 64

/* Finds the route. Writes the parameters into the path itself (it is cut at their ends) only when it is found; *allow
 * is filled when the path exists for other methods. */
enum http_match http_route_find(const struct http_route *routes, size_t route_count, const char *method, char *path,
                                size_t *ret_index, const char **ret_params, char allow[HTTP_ALLOW_SIZE]);

/* ---- exchanges ---- */

struct http_exchange {
    struct http_server *server;
    struct http_conn *conn; /* Loop thread only. NULL once the client has gone. */
    size_t route;           /* Index, or HTTP_ROUTE_NONE. */
    uint64_t started_ns;
    const void *note;      /* The handlers'. */
    _Atomic bool has_left; /* The client, while a handler had this. */
    struct http_request request;
    struct http_head head;
    char *head_bytes;
    char *path_bytes; /* What params point into. */
    char *body;
    size_t body_size;
    size_t body_capacity;
    size_t body_size_max;
    size_t reserved_size; /* Of the server's budget. */
    bool is_head_method;
    struct http_peer_address peer;
    int status;
    char *answer_head; /* Without Date, Connection and the empty line. */
    size_t answer_head_size;
    char *answer_body;
    size_t answer_body_size;
    struct http_exchange *next; /* In the list of the answered. */
};

struct http_exchange *http_exchange_new(struct http_server *server, struct http_conn *conn);
void http_exchange_free(struct http_exchange *exchange);

/* So that it can be answered anew. */
void http_exchange_forget_answer(struct http_exchange *exchange);

/* ---- http_peer.c ---- */

/* Those who are connected. Loop thread only. */
struct http_peer {
    struct http_peer_address address;
    size_t conn_count;
};

/* One more connection of whoever is at the other end: an IPv4 address, or the /64 of an IPv6 one, since who has one of
 * its addresses has them all. NULL when memory is out. */
struct http_peer *http_peer_join(void **peers, const uv_tcp_t *tcp);

/* One less; the last takes the peer with it. */
void http_peer_leave(void **peers, struct http_peer *peer);

/* ---- connections ---- */

enum http_conn_state {
    HTTP_CONN_IDLE, /* Between requests. */
    HTTP_CONN_HEAD,
    HTTP_CONN_BODY,
    HTTP_CONN_HANDLING, /* With a handler; nothing is read. */
    HTTP_CONN_WRITING,
    HTTP_CONN_DRAINING, /* Answered for the last time: reads and forgets until the peer closes or time is up. */
    HTTP_CONN_CLOSING,
};

struct http_conn {
    uv_tcp_t tcp;
    uv_timer_t timer;
    uv_write_t write;
    uv_shutdown_t shutdown;
    struct http_server *server;
    struct http_conn *next;
    struct http_conn *previous;
    struct http_peer *peer; /* NULL without memory for it. */
    enum http_conn_state state;
    int open_handle_count;
    llhttp_t parser;
    struct buf head;
    size_t head_offset;
    char *rest; /* Bytes behind the request that is being answered. */
    size_t rest_size;
    struct http_exchange *exchange; /* The one being received or answered. */
    bool is_chunked;
    struct http_chunk chunk;
    uint64_t length_left;  /* Of a body with Content-Length. */
    bool is_last;          /* Close after this answer. */
    char continuation[96]; /* Date, Connection and the empty line of the answer being written. */
};

void http_conn_accept(struct http_server *server);
void http_conn_answer(struct http_conn *conn); /* Its exchange has its answer. */
void http_conn_watch(struct http_conn *conn);  /* Reads while a handler works. */
void http_conn_close(struct http_conn *conn);

/* The connection's last answer, given by the server itself. header may be NULL. */
void http_conn_refuse(struct http_conn *conn, const struct http_problem *problem, const struct http_header *header,
                      const char *format, ...) PRINTF_LIKE(4, 5);
#define HTTP_CONN_REFUSE(conn, problem, ...) http_conn_refuse(conn, &(problem), NULL, __VA_ARGS__)

/* The request is whole: its handler has it from here on. */
void http_conn_hand_over(struct http_conn *conn);
void http_conn_stop(struct http_conn *conn); /* The server stops: close if idle, else after this answer. */

/* ---- http_body.c ---- */

/* Makes room for size more bytes, within the limit of the route (the caller has looked) and the server's budget. */
bool http_body_has_room(struct http_exchange *exchange, size_t size);

/* Takes what belongs to the body and returns how much that was; a whole body is handed over, a wrong one refused. */
size_t http_body_take(struct http_conn *conn, const char *bytes, size_t size);

/* ---- the server ---- */

struct http_server {
    struct http_options options;
    uv_loop_t loop;
    uv_tcp_t listener;
    uv_async_t wake;
    uv_timer_t drain_timer;
    uv_tcp_t turned_away; /* A connection that there is no memory for. */
    bool is_turning_away;
    bool has_another; /* It waits until turned_away is closed; the listener stays silent meanwhile. */
    struct thread thread;
    int port;
    struct http_conn *conns;
    size_t conn_count;
    void *peers;        /* tsearch's. */
    size_t bodies_size; /* Loop thread only. */
    bool is_stopping;   /* Loop thread only. */
    char read_buffer[HTTP_READ_SIZE];
    int64_t date_s;
    char date[40];
    _Atomic size_t exchange_count;
    pthread_mutex_t lock; /* Over the four below. */
    struct http_exchange *answered_first;
    struct http_exchange **answered_last;
    bool must_stop;
    bool is_over;
    int64_t drain_ms;
    struct metric *(*request_counters)[HTTP_STATUS_CLASS_COUNT]; /* By route; the last row is for no route. */
    struct metric **request_seconds;
    struct metric *connections_gauge;
    struct metric *bodies_gauge;
};

bool http_server_reserve(struct http_server *server, struct http_exchange *exchange, size_t size);
void http_server_release(struct http_server *server, struct http_exchange *exchange);
const char *http_server_date(struct http_server *server);
void http_server_count(struct http_server *server, const struct http_exchange *exchange);

/* Why this new connection is one too many; NULL: it is not. *ret_is_far: it is not even told so. */
const char *http_server_over_limit(const struct http_server *server, const struct http_conn *conn, bool *ret_is_far);
void http_server_conn_gone(struct http_server *server);

/* libuv offers no further connection until this one has been taken: it is, and closed. */
void http_server_turn_away(struct http_server *server);

#endif
