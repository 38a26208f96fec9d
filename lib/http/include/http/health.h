/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a process lives and is ready, and a small server on a thread of its
 * own that says so: `/livez`, `/readyz` and `/metrics`.
 *
 * `/livez` depends on this process alone: it fails when the main loop has not
 * reported a heartbeat for longer than its limit. `/readyz` lists named
 * conditions, each with a reason while it does not hold.
 */
#ifndef HTTP_HEALTH_H
#define HTTP_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct health;
struct http_exchange;
struct metrics;

#define HEALTH_CONDITION_COUNT_MAX 16

/* `heartbeat_limit_ms`: 0 when there is no loop to watch. The registry is borrowed until health_free().
 * NULL, with a transient error, only when memory is out. */
struct health *health_new(const char *prog, struct metrics *metrics, int64_t heartbeat_limit_ms,
                          struct err *err) MUST_CHECK;
void health_free(struct health **healthp); /* Stops the server first, when one was started. */

/* The main loop is alive: call it once a turn, from any thread. */
void health_heartbeat(struct health *health);

/* Sets a named condition of readiness ("database", "kafka", "leases" …); the first call makes it. A reason is
 * given while it does not hold, and ignored while it does. From any thread; cheap enough for every turn. */
void health_set_ready(struct health *health, const char *condition);
void health_set_unready(struct health *health, const char *condition, const char *format, ...) PRINTF_LIKE(3, 4);

/* Opens `listen` ("host:port", "[v6]:port"; port 0 takes a free one) and serves until health_stop().
 * Permanent error when the address is wrong or taken. */
bool health_start(struct health *health, const char *listen, struct err *err) MUST_CHECK;
void health_stop(struct health *health);
int health_port(const struct health *health); /* The port that was bound, 0 when not started. */

/* For a program with a server of its own: answers one exchange of http_server.h. */
void health_answer_livez(struct health *health, struct http_exchange *exchange);
void health_answer_readyz(struct health *health, struct http_exchange *exchange);
void health_answer_metrics(struct health *health, struct http_exchange *exchange);

#endif
