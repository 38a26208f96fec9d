/* SPDX-License-Identifier: Apache-2.0
 *
 * The state behind `/livez` and `/readyz`, and the small server that shows it.
 * The state is a handful of values under one lock; nothing here waits.
 */
#include "http/health.h"

#include <assert.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"
#include "http/http_server.h"
#include "http/metrics.h"

#define CONDITION_NAME_SIZE 40
#define CONDITION_REASON_SIZE 768
#define HEALTH_BODY_SIZE_MAX 32768
#define HEALTH_STOP_MS 1000

struct condition {
    char name[CONDITION_NAME_SIZE];
    char reason[CONDITION_REASON_SIZE]; /* "" while it holds. */
};

struct health {
    const char *prog;
    struct metrics *metrics;
    struct metric *ready_gauge;
    int64_t heartbeat_limit_ms;
    _Atomic int64_t heartbeat_ms;
    pthread_mutex_t lock;
    struct condition conditions[HEALTH_CONDITION_COUNT_MAX];
    size_t condition_count;
    struct http_server *server;
};

static struct condition *find_or_make(struct health *health, const char *name)
{
    for (size_t i = 0; i < health->condition_count; i++) {
        if (strcmp(health->conditions[i].name, name) == 0) {
            return &health->conditions[i];
        }
    }
    assert(health->condition_count < HEALTH_CONDITION_COUNT_MAX);
    struct condition *condition = &health->conditions[health->condition_count++];
    bool is_whole = text_copy(condition->name, sizeof condition->name, name);
    assert(is_whole);
    return condition;
}

static bool all_hold(const struct health *health)
{
    for (size_t i = 0; i < health->condition_count; i++) {
        if (health->conditions[i].reason[0] != '\0') {
            return false;
        }
    }
    return true;
}

/* Reasons quote errors, so they are written as JSON strings with what is special replaced or escaped. */
static void write_text(struct buf *buf, const char *text)
{
    bool is_utf8 = text_is_utf8(text, strlen(text), NULL);
    buf_char(buf, '"');
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            buf_char(buf, '\\');
        }
        buf_char(buf, c < 0x20 || c == 0x7f || (c >= 0x80 && !is_utf8) ? '?' : (char)c);
    }
    buf_char(buf, '"');
}

static void respond(struct http_exchange *exchange, int status, struct buf *buf)
{
    struct http_response response = {.status = status, .content_type = "application/json"};
    response.headers[0] = (struct http_header){"Cache-Control", "no-store"};
    response.body = buf_take(buf, &response.body_size);
    buf_done(buf);
    http_respond(exchange, &response);
}

struct health *health_new(const char *prog, struct metrics *metrics, int64_t heartbeat_limit_ms, struct err *err)
{
    struct health *health = calloc(1, sizeof *health);
    if (health == NULL) {
        (void)err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for the state of health");
        return NULL;
    }
    pthread_mutex_init(&health->lock, NULL);
    health->prog = prog;
    health->metrics = metrics;
    health->heartbeat_limit_ms = heartbeat_limit_ms;
    const char *const labels[] = {"version", ONCEWARD_VERSION, "prog", prog, NULL};
    metric_set(metrics_gauge(metrics, "onceward_build_info", "1; the labels say what runs.", labels), 1);
    health->ready_gauge = metrics_gauge(metrics, "onceward_ready", "1 while every condition of readiness holds.", NULL);
    health_heartbeat(health);
    return health;
}

void health_free(struct health **healthp)
{
    struct health *health = *healthp;
    *healthp = NULL;
    if (health != NULL) {
        health_stop(health);
        pthread_mutex_destroy(&health->lock);
        free(health);
    }
}

void health_heartbeat(struct health *health)
{
    atomic_store(&health->heartbeat_ms, clock_monotonic_ms());
}

void health_set_ready(struct health *health, const char *condition)
{
    thread_lock(&health->lock);
    find_or_make(health, condition)->reason[0] = '\0';
    metric_set(health->ready_gauge, all_hold(health) ? 1 : 0);
    thread_unlock(&health->lock);
}

void health_set_unready(struct health *health, const char *condition, const char *format, ...)
{
    char reason[CONDITION_REASON_SIZE];
    va_list args;
    va_start(args, format);
    text_vformat(reason, sizeof reason, format, args);
    va_end(args);
    if (reason[0] == '\0') {
        text_copy(reason, sizeof reason, "no reason given");
    }
    thread_lock(&health->lock);
    struct condition *found = find_or_make(health, condition);
    memcpy(found->reason, reason, sizeof reason);
    metric_set(health->ready_gauge, 0);
    thread_unlock(&health->lock);
}

void health_answer_livez(struct health *health, struct http_exchange *exchange)
{
    int64_t age_ms = clock_monotonic_ms() - atomic_load(&health->heartbeat_ms);
    bool is_alive = health->heartbeat_limit_ms == 0 || age_ms <= health->heartbeat_limit_ms;
    struct buf buf;
    buf_init(&buf, HEALTH_BODY_SIZE_MAX);
    buf_format(&buf, "{\"status\":\"%s\",\"prog\":\"%s\"", is_alive ? "alive" : "stalled", health->prog);
    if (health->heartbeat_limit_ms > 0) {
        buf_format(&buf, ",\"heartbeat_age_ms\":%lld,\"heartbeat_limit_ms\":%lld", (long long)age_ms,
                   (long long)health->heartbeat_limit_ms);
    }
    buf_text(&buf, "}\n");
    respond(exchange, is_alive ? 200 : 503, &buf);
}

void health_answer_readyz(struct health *health, struct http_exchange *exchange)
{
    struct buf buf;
    buf_init(&buf, HEALTH_BODY_SIZE_MAX);
    thread_lock(&health->lock);
    bool is_ready = all_hold(health);
    buf_format(&buf, "{\"status\":\"%s\",\"prog\":\"%s\",\"conditions\":[", is_ready ? "ready" : "unready",
               health->prog);
    for (size_t i = 0; i < health->condition_count; i++) {
        const struct condition *condition = &health->conditions[i];
        buf_format(&buf, "%s{\"name\":\"%s\",\"ready\":%s", i == 0 ? "" : ",", condition->name,
                   condition->reason[0] == '\0' ? "true" : "false");
        if (condition->reason[0] != '\0') {
            buf_text(&buf, ",\"reason\":");
            write_text(&buf, condition->reason);
        }
        buf_char(&buf, '}');
    }
    thread_unlock(&health->lock);
    buf_text(&buf, "]}\n");
    respond(exchange, is_ready ? 200 : 503, &buf);
}

void health_answer_metrics(struct health *health, struct http_exchange *exchange)
{
    struct http_response response = {.status = 200, .content_type = "text/plain; version=0.0.4; charset=utf-8"};
    response.body = metrics_text(health->metrics, &response.body_size);
    http_respond(exchange, &response);
}

/* ---- the small server ---- */

static void handle_livez(void *context, struct http_exchange *exchange)
{
    health_answer_livez(context, exchange);
}

static void handle_readyz(void *context, struct http_exchange *exchange)
{
    health_answer_readyz(context, exchange);
}

static void handle_metrics(void *context, struct http_exchange *exchange)
{
    health_answer_metrics(context, exchange);
}

bool health_start(struct health *health, const char *listen, struct err *err)
{
    static const struct http_route routes[] = {
        {"GET", "/livez", 0, handle_livez},
        {"GET", "/readyz", 0, handle_readyz},
        {"GET", "/metrics", 0, handle_metrics},
    };
    struct http_options options = {
        .listen = listen,
        .routes = routes,
        .route_count = sizeof routes / sizeof *routes,
        .context = health,
        .limits = http_limits_default,
    };
    assert(health->server == NULL);
    options.limits.connection_count_max = 64;
    health->server = http_server_open(&options, err);
    return health->server != NULL;
}

void health_stop(struct health *health)
{
    if (health->server != NULL) {
        http_server_stop(health->server, HEALTH_STOP_MS);
        http_server_free(&health->server);
    }
}

int health_port(const struct health *health)
{
    return health->server == NULL ? 0 : http_server_port(health->server);
}
