/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread walks the list of those who wait, asks the database for all whose
 * turn it is with one statement, and hands on who is done. How long one waits
 * between two looks grows with how long it has waited: so what is quick is
 * answered quickly, and what is slow costs little.
 */
#include "producer_wait.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "db/db_event_wait.h"
#include "http/http_problem.h"
#include "http/http_server.h"
#include "http/metrics.h"
#include "producer_connection.h"
#include "producer_problem.h"

#define IDLE_WAIT_MS 60000
#define LOOK_AGAIN_MIN_MS 20
#define LOOK_AGAIN_MAX_MS 500
#define LOOK_AGE_SHARE 8 /* Of its age one waits until the next look. */
#define LOOK_REST_SHARE                                                                                                \
    4 /* The thread rests so many times as long as a look took: looks keep a fifth of a core at most. */
#define LOOK_COUNT_MAX 1000

struct producer_wait {
    const struct producer_settings *settings;
    struct producer_reader *reader;
    struct producer_connection connection;
    struct metric *waiters;
    struct metric *looks;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct producer_entry *first; /* Any thread adds at the front; this one's thread alone takes out. Under the lock. */
    int64_t count;
    bool is_stopping;
    bool is_closing;
    struct producer_read *looked[LOOK_COUNT_MAX]; /* The thread's own, as the next. */
    struct db_event_wait waits[LOOK_COUNT_MAX];
    int64_t rested_ms; /* No look before this moment. */
    struct thread thread;
};

static struct producer_read *read_of(struct producer_entry *entry)
{
    return (struct producer_read *)entry;
}

/* ---- the list: under the lock ------------------------------------------------------------------------------------ */

static bool is_full(const struct producer_wait *wait, const char *tenant)
{
    int64_t of_tenant = 0;
    for (struct producer_entry *entry = wait->first; entry != NULL; entry = entry->next) {
        of_tenant += strcmp(read_of(entry)->tenant, tenant) == 0;
    }
    return wait->count >= wait->settings->event_waiters_max || of_tenant >= wait->settings->tenant_waiters_max;
}

static void take_out(struct producer_wait *wait, struct producer_entry **place)
{
    *place = (*place)->next;
    wait->count--;
    metric_set(wait->waiters, (double)wait->count);
}

/* Drops who has left, and gathers whose turn it is. Returns their number; *ret_next_ms is when the next one's turn is.
 */
static size_t gather(struct producer_wait *wait, int64_t now_ms, int64_t *ret_next_ms)
{
    size_t count = 0;
    *ret_next_ms = now_ms + IDLE_WAIT_MS;
    struct producer_entry **place = &wait->first;
    while (*place != NULL) {
        struct producer_read *read = read_of(*place);
        if (http_exchange_has_left(read->exchange)) {
            take_out(wait, place);
            http_respond_problem(read->exchange, &http_problem_request_timeout, NULL, "the client has left");
            producer_read_free(&read);
            continue;
        }
        if ((wait->is_stopping || read->entry.due_ms <= now_ms) && count < LOOK_COUNT_MAX) {
            wait->looked[count++] = read;
        } else if (read->entry.due_ms < *ret_next_ms) {
            *ret_next_ms = read->entry.due_ms;
        }
        place = &read->entry.next;
    }
    return count;
}

static void remove_read(struct producer_wait *wait, const struct producer_read *read)
{
    struct producer_entry **place = &wait->first;
    while (*place != &read->entry) {
        assert(*place != NULL);
        place = &(*place)->next;
    }
    take_out(wait, place);
}

/* ---- a look ------------------------------------------------------------------------------------------------------ */

static bool look(struct producer_wait *wait, size_t count)
{
    struct err err = ERR_INIT;
    for (size_t i = 0; i < count; i++) {
        struct producer_read *read = wait->looked[i];
        wait->waits[i] = (struct db_event_wait){.event_id = read->id,
                                                .tenant = read->tenant,
                                                .consumer = read->text[0] == '\0' ? NULL : read->text,
                                                .outbox_id = read->outbox_id};
    }
    struct db *db = producer_connection_get(&wait->connection, &err);
    if (db == NULL) {
        return false; /* Others say that the database is away. */
    }
    metric_add(wait->looks, 1);
    if (db_event_wait_look(db, wait->waits, count, &err)) {
        return true;
    }
    if (err.kind != ERR_TRANSIENT) {
        log_error("producer.read_failed", LOG_FIELDS(LOG_ERR(&err)), "%s", err.text);
    }
    return false;
}

/* Without a look (the database is away) all wait on until their time is up; the reader then says what is wrong. */
static enum producer_wait_outcome outcome_of(const struct producer_wait *wait, size_t i, bool has_looked,
                                             int64_t now_ms)
{
    static const enum producer_wait_outcome outcomes[] = {
        [DB_EVENT_WAIT_OPEN] = PRODUCER_WAIT_OPEN,       [DB_EVENT_WAIT_UNKNOWN] = PRODUCER_WAIT_TIME_IS_UP,
        [DB_EVENT_WAIT_APPLIED] = PRODUCER_WAIT_APPLIED, [DB_EVENT_WAIT_PUBLISHED] = PRODUCER_WAIT_PUBLISHED,
        [DB_EVENT_WAIT_FAILED] = PRODUCER_WAIT_FAILED,
    };
    enum producer_wait_outcome outcome = has_looked ? outcomes[wait->waits[i].outcome] : PRODUCER_WAIT_OPEN;
    if (outcome != PRODUCER_WAIT_OPEN) {
        return outcome;
    }
    return wait->looked[i]->until_ms <= now_ms ? PRODUCER_WAIT_TIME_IS_UP
           : wait->is_stopping                 ? PRODUCER_WAIT_STOPPING
                                               : PRODUCER_WAIT_OPEN;
}

/* Hands on who is done, and gives the others their next turn. Under the lock. */
static void settle(struct producer_wait *wait, size_t count, bool has_looked)
{
    int64_t now_ms = clock_monotonic_ms();
    for (size_t i = 0; i < count; i++) {
        struct producer_read *read = wait->looked[i];
        read->wait_outcome = outcome_of(wait, i, has_looked, now_ms);
        if (read->wait_outcome != PRODUCER_WAIT_OPEN) {
            remove_read(wait, read);
            producer_reader_put_back(wait->reader, read);
            continue;
        }
        read->outbox_id = has_looked ? wait->waits[i].outbox_id : read->outbox_id;
        int64_t again_ms = (now_ms - read->started_ms) / LOOK_AGE_SHARE;
        again_ms = again_ms < LOOK_AGAIN_MIN_MS   ? LOOK_AGAIN_MIN_MS
                   : again_ms > LOOK_AGAIN_MAX_MS ? LOOK_AGAIN_MAX_MS
                                                  : again_ms;
        read->entry.due_ms = now_ms + again_ms < read->until_ms ? now_ms + again_ms : read->until_ms;
    }
}

static void run(void *context)
{
    struct producer_wait *wait = context;
    thread_lock(&wait->lock);
    while (!wait->is_closing || wait->first != NULL) {
        int64_t now_ms = clock_monotonic_ms();
        int64_t next_ms = wait->rested_ms;
        size_t count = now_ms >= wait->rested_ms || wait->is_stopping ? gather(wait, now_ms, &next_ms) : 0;
        if (count == 0) {
            (void)thread_cond_wait_until(&wait->changed, &wait->lock, next_ms);
            continue;
        }
        thread_unlock(&wait->lock);
        bool has_looked = look(wait, count);
        thread_lock(&wait->lock);
        settle(wait, count, has_looked);
        int64_t ended_ms = clock_monotonic_ms();
        int64_t rest_ms = (ended_ms - now_ms) * LOOK_REST_SHARE;
        wait->rested_ms = ended_ms + (rest_ms < LOOK_AGAIN_MAX_MS ? rest_ms : LOOK_AGAIN_MAX_MS);
    }
    thread_unlock(&wait->lock);
    producer_connection_done(&wait->connection);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

struct producer_wait *producer_wait_open(const struct producer_settings *settings, struct producer_reader *reader,
                                         struct health *health, struct metrics *metrics, struct err *err)
{
    struct producer_wait *wait = calloc(1, sizeof *wait);
    if (wait == NULL) {
        err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for those who wait");
        return NULL;
    }
    wait->settings = settings;
    wait->reader = reader;
    producer_connection_init(&wait->connection, settings, health, "onceward-producer waiter", false);
    wait->waiters =
        metrics_gauge(metrics, "onceward_producer_event_waiters", "Calls that wait for an event to be applied.", NULL);
    wait->looks = metrics_counter(metrics, "onceward_producer_event_looks_total",
                                  "Queries that looked whether events have been applied.", NULL);
    pthread_mutex_init(&wait->lock, NULL);
    thread_cond_init(&wait->changed);
    if (!thread_start(&wait->thread, "waiter", run, wait, err)) {
        producer_wait_close(&wait);
    }
    return wait;
}

void producer_wait_put(struct producer_wait *wait, struct producer_read *read)
{
    read->entry.due_ms = 0;
    thread_lock(&wait->lock);
    bool is_taken = !is_full(wait, read->tenant);
    if (is_taken) {
        read->entry.next = wait->first;
        wait->first = &read->entry;
        wait->count++;
        metric_set(wait->waiters, (double)wait->count);
        pthread_cond_signal(&wait->changed);
    }
    thread_unlock(&wait->lock);
    if (!is_taken) {
        http_respond_problem(read->exchange, producer_problem("too_many_waiting"), NULL,
                             "too many calls wait for events here or for this tenant");
        producer_read_free(&read);
    }
}

void producer_wait_stop(struct producer_wait *wait)
{
    thread_lock(&wait->lock);
    wait->is_stopping = true;
    pthread_cond_signal(&wait->changed);
    thread_unlock(&wait->lock);
}

void producer_wait_close(struct producer_wait **waitp)
{
    struct producer_wait *wait = *waitp;
    *waitp = NULL;
    if (wait == NULL) {
        return;
    }
    thread_lock(&wait->lock);
    wait->is_stopping = true;
    wait->is_closing = true;
    pthread_cond_signal(&wait->changed);
    thread_unlock(&wait->lock);
    thread_join(&wait->thread);
    pthread_cond_destroy(&wait->changed);
    pthread_mutex_destroy(&wait->lock);
    free(wait);
}
