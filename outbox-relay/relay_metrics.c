/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters follow the relay's own counts by difference, so each is written in
 * one place only.
 */
#include "relay_metrics.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "db/db_outbox.h"

#define READ_MS 5000
#define DEAD_LOOP_MS 60000
#define BACKLOG_AGE_UNREADY_SECONDS 60

enum { PUBLISHED, ACKNOWLEDGED, REFUSED, FAILED, FENCED, DEFERRED, SETTLED, COUNTER_COUNT };

static const struct {
    const char *name;
    const char *help;
} counter_texts[COUNTER_COUNT] = {
    [PUBLISHED] = {"onceward_relay_published_total", "Events handed to the broker's client."},
    [ACKNOWLEDGED] = {"onceward_relay_acknowledged_total", "Events that the broker has acknowledged."},
    [REFUSED] = {"onceward_relay_refused_total", "Events that the broker refused for good."},
    [FAILED] = {"onceward_relay_failed_total", "Reports that were neither, after which an event is published again."},
    [FENCED] = {"onceward_relay_fenced_total", "Lanes found to have been moved by another relay."},
    [DEFERRED] = {"onceward_relay_deferred_total", "Events that were deferred."},
    [SETTLED] = {"onceward_relay_settled_total", "Acknowledged events behind which a cursor was moved."},
};

struct relay_metrics {
    struct metric *counters[COUNTER_COUNT];
    uint64_t seen[COUNTER_COUNT];
    struct metric *lanes_held;
    struct metric *unsettled;
    struct metric *oldest;
    struct health *health;
    _Atomic int64_t beat_ms;
    struct thread thread;
    struct db_settings database;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_stopping;
};

struct relay_metrics *relay_metrics_new(struct metrics *registry, struct err *err)
{
    struct relay_metrics *metrics = calloc(1, sizeof *metrics);
    if (metrics == NULL) {
        err_set(err, ERR_FATAL, "memory", "no memory for metrics");
        return NULL;
    }
    for (int i = 0; i < COUNTER_COUNT; i++) {
        metrics->counters[i] = metrics_counter(registry, counter_texts[i].name, counter_texts[i].help, NULL);
    }
    metrics->lanes_held = metrics_gauge(registry, "onceward_relay_lanes_held", "Lanes that this relay holds.", NULL);
    metrics->unsettled =
        metrics_gauge(registry, "onceward_relay_unsettled_events", "Events that are read and not settled.", NULL);
    metrics->oldest = metrics_gauge(registry, "onceward_outbox_oldest_unpublished_seconds",
                                    "Age of the oldest event that no lane's cursor has passed.", NULL);
    pthread_mutex_init(&metrics->mutex, NULL);
    thread_cond_init(&metrics->changed);
    relay_metrics_beat(metrics);
    return metrics;
}

void relay_metrics_free(struct relay_metrics **metricsp)
{
    struct relay_metrics *metrics = *metricsp;
    *metricsp = NULL;
    if (metrics == NULL) {
        return;
    }
    thread_lock(&metrics->mutex);
    metrics->is_stopping = true;
    pthread_cond_signal(&metrics->changed);
    thread_unlock(&metrics->mutex);
    thread_join(&metrics->thread);
    pthread_cond_destroy(&metrics->changed);
    pthread_mutex_destroy(&metrics->mutex);
    free(metrics);
}

void relay_metrics_beat(struct relay_metrics *metrics)
{
    atomic_store(&metrics->beat_ms, clock_monotonic_ms());
}

void relay_metrics_update(struct relay_metrics *metrics, const struct relay *relay)
{
    const struct relay_pump_counts *counts = relay_pump_counts(relay->pump);
    const uint64_t now[COUNTER_COUNT] = {
        [PUBLISHED] = counts->published,  [ACKNOWLEDGED] = counts->acknowledged, [REFUSED] = counts->refused,
        [FAILED] = counts->failed,        [FENCED] = relay->fenced_count,        [DEFERRED] = relay->deferred_count,
        [SETTLED] = relay->settled_count,
    };
    for (int i = 0; i < COUNTER_COUNT; i++) {
        if (now[i] != metrics->seen[i]) {
            metric_add(metrics->counters[i], now[i] - metrics->seen[i]);
            metrics->seen[i] = now[i];
        }
    }
    metric_set(metrics->lanes_held, __builtin_popcount(relay_claim_held(relay)));
    metric_set(metrics->unsettled, (double)relay_step_unsettled(relay));
    relay_metrics_beat(metrics);
}

/* A process whose loop stands still holds its lanes for nobody: it ends, and others take them. */
static void check_loop(struct relay_metrics *metrics)
{
    int64_t silent_ms = clock_monotonic_ms() - atomic_load(&metrics->beat_ms);
    if (silent_ms > DEAD_LOOP_MS) {
        log_error("relay.loop_dead", LOG_FIELDS(LOG_INT("silent_ms", silent_ms)), "the main loop stands still; we end");
        _exit(1);
    }
}

/* Whoever's lane it is: rows wait, and nobody publishes them. */
static void tell_readiness(struct health *health, double age_seconds)
{
    if (age_seconds > BACKLOG_AGE_UNREADY_SECONDS) {
        health_set_unready(health, "backlog", "the oldest event has waited for %.0f s", age_seconds);
    } else {
        health_set_ready(health, "backlog");
    }
}

static void read_oldest(struct relay_metrics *metrics, struct db **dbp)
{
    struct err err = ERR_INIT;
    double age_seconds = 0;
    if (*dbp == NULL) {
        *dbp = db_open(&metrics->database, &err);
    } else if (!db_is_usable(*dbp) && !db_reset(*dbp, &err)) {
        return;
    }
    if (*dbp != NULL && db_outbox_oldest_unpublished(*dbp, &age_seconds, &err)) {
        metric_set(metrics->oldest, age_seconds);
        tell_readiness(metrics->health, age_seconds);
    } else {
        log_debug("relay.age_unknown", LOG_FIELDS(LOG_ERR(&err)), "%s", err.text);
    }
}

static void run(void *context)
{
    struct relay_metrics *metrics = context;
    struct db *db = NULL;
    thread_lock(&metrics->mutex);
    while (!metrics->is_stopping) {
        thread_unlock(&metrics->mutex);
        check_loop(metrics);
        read_oldest(metrics, &db);
        thread_lock(&metrics->mutex);
        int64_t until_ms = clock_monotonic_ms() + READ_MS;
        while (!metrics->is_stopping && thread_cond_wait_until(&metrics->changed, &metrics->mutex, until_ms)) {
        }
    }
    thread_unlock(&metrics->mutex);
    db_close(&db);
}

bool relay_metrics_start(struct relay_metrics *metrics, const struct db_settings *database, struct health *health,
                         struct err *err)
{
    metrics->health = health;
    metrics->database = *database;
    return thread_start(&metrics->thread, "age", run, metrics, err);
}
