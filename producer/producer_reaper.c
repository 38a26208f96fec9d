/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread that wakes, deletes what has expired in bites, and sleeps.
 */
#include "producer_reaper.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "db/db_idempotency.h"
#include "db/db_retention.h"
#include "http/metrics.h"
#include "producer_connection.h"
#include "producer_flight.h"

#define BITE_COUNT 1000

struct producer_reaper {
    const struct producer_settings *settings;
    struct producer_flights *flights;
    struct producer_connection connection;
    struct metric *expired;
    struct metric *removed[DB_RETENTION_COUNT];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_closing;
    struct thread thread;
};

/* True when it is time to end. */
static bool sleep_until(struct producer_reaper *reaper, int64_t until_ms)
{
    thread_lock(&reaper->lock);
    while (!reaper->is_closing && clock_monotonic_ms() < until_ms) {
        (void)thread_cond_wait_until(&reaper->changed, &reaper->lock, until_ms);
    }
    bool is_closing = reaper->is_closing;
    thread_unlock(&reaper->lock);
    return is_closing;
}

/* One bite. True when there may be more. */
static bool reap_kept(struct producer_reaper *reaper, enum db_retention what, int64_t kept_days)
{
    struct err err = ERR_INIT;
    struct db *db = kept_days == 0 ? NULL : producer_connection_get(&reaper->connection, &err);
    int64_t count = 0;
    if (db == NULL) {
        return false;
    }
    if (!db_retention_reap(db, what, kept_days, BITE_COUNT, &count, &err)) {
        log_warning("producer.reap_failed", LOG_FIELDS(LOG_ERR(&err)), "%s; what expires stays until the next turn",
                    err.text);
        return false;
    }
    metric_add(reaper->removed[what], (uint64_t)count);
    return count == BITE_COUNT;
}

/* The same for keys. */
static bool reap_keys(struct producer_reaper *reaper)
{
    struct err err = ERR_INIT;
    struct db *db = producer_connection_get(&reaper->connection, &err);
    if (db == NULL) {
        return false; /* Others say that the database is away. */
    }
    int64_t count = 0;
    int64_t kept_s =
        reaper->settings->expired_keys == PRODUCER_EXPIRED_REFUSE ? reaper->settings->expired_keys_kept_s : 0;
    if (!db_idempotency_reap(db, kept_s, BITE_COUNT, &count, &err)) {
        log_warning("producer.reap_failed", LOG_FIELDS(LOG_ERR(&err)), "%s; expired keys stay until the next turn",
                    err.text);
        return false;
    }
    metric_add(reaper->expired, (uint64_t)count);
    return count == BITE_COUNT;
}

static void note_full(void *context, const char *tenant)
{
    producer_flight_note_full(context, tenant);
}

/* Which tenants have as many keys as they may. */
static void count_keys(struct producer_reaper *reaper)
{
    struct err err = ERR_INIT;
    int64_t count_max = reaper->settings->tenant_keys_max;
    struct db *db = count_max == 0 ? NULL : producer_connection_get(&reaper->connection, &err);
    if (db == NULL) {
        return;
    }
    if (!db_idempotency_find_full(db, count_max, note_full, reaper->flights, &err)) {
        log_warning("producer.reap_failed", LOG_FIELDS(LOG_ERR(&err)), "%s; who has too many keys stays as it was",
                    err.text);
        return;
    }
    producer_flight_end_look(reaper->flights);
}

static void run(void *context)
{
    struct producer_reaper *reaper = context;
    int64_t interval_ms = reaper->settings->reap_interval_s * 1000;
    const int64_t kept_days[DB_RETENTION_COUNT] = {
        [DB_RETENTION_REQUESTS] = reaper->settings->request_kept_days,
        [DB_RETENTION_DOCUMENTS] = reaper->settings->document_kept_days,
        [DB_RETENTION_OPEN] = reaper->settings->open_request_kept_days,
        [DB_RETENTION_SUBMISSIONS] = reaper->settings->submission_kept_days,
    };
    count_keys(reaper);
    while (!sleep_until(reaper, clock_monotonic_ms() + interval_ms)) {
        while (reap_keys(reaper) && !sleep_until(reaper, 0)) {
        }
        for (int what = 0; what < DB_RETENTION_COUNT; what++) {
            while (reap_kept(reaper, (enum db_retention)what, kept_days[what]) && !sleep_until(reaper, 0)) {
            }
        }
        count_keys(reaper);
    }
    producer_connection_done(&reaper->connection);
}

struct producer_reaper *producer_reaper_open(const struct producer_settings *settings, struct producer_flights *flights,
                                             struct health *health, struct metrics *metrics, struct err *err)
{
    struct producer_reaper *reaper = calloc(1, sizeof *reaper);
    if (reaper == NULL) {
        err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for the reaper");
        return NULL;
    }
    reaper->settings = settings;
    reaper->flights = flights;
    producer_connection_init(&reaper->connection, settings, health, "onceward-producer reaper", false);
    reaper->expired = metrics_counter(metrics, "onceward_producer_keys_reaped_total",
                                      "Expired idempotency keys that were deleted.", NULL);
    static const char *const names[DB_RETENTION_COUNT] = {"request", "document", "open_request", "submission"};
    for (int what = 0; what < DB_RETENTION_COUNT; what++) {
        const char *const labels[] = {"what", names[what], NULL};
        reaper->removed[what] = metrics_counter(metrics, "onceward_producer_retention_removed_total",
                                                "What was removed because it had been kept long enough.", labels);
    }
    pthread_mutex_init(&reaper->lock, NULL);
    thread_cond_init(&reaper->changed);
    if (!thread_start(&reaper->thread, "reaper", run, reaper, err)) {
        producer_reaper_close(&reaper);
    }
    return reaper;
}

void producer_reaper_close(struct producer_reaper **reaperp)
{
    struct producer_reaper *reaper = *reaperp;
    *reaperp = NULL;
    if (reaper == NULL) {
        return;
    }
    thread_lock(&reaper->lock);
    reaper->is_closing = true;
    pthread_cond_signal(&reaper->changed);
    thread_unlock(&reaper->lock);
    thread_join(&reaper->thread);
    pthread_cond_destroy(&reaper->changed);
    pthread_mutex_destroy(&reaper->lock);
    free(reaper);
}
