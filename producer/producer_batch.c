/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs batches. Protects: an item is answered only with what is committed;
 * when a batch fails its items run one by one, so that none suffers for
 * another; while a commit's outcome is unknown the item keeps its event id,
 * by which the next attempt tells whether it was this call that queued it.
 */
#include "producer_batch.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/thread.h"
#include "db/db_submit.h"
#include "http/http_problem.h"
#include "http/metrics.h"
#include "producer_connection.h"
#include "producer_decide.h"
#include "producer_flight.h"
#include "producer_hint.h"
#include "producer_leave.h"
#include "producer_problem.h"

#define ITEM_COUNT_MAX DB_SUBMIT_COUNT_MAX
#define IDLE_WAIT_MS 500
#define ITEM_PATIENCE_MS 10000
#define DOUBT_PATIENCE_MS 5000
#define ATTEMPT_COUNT_MAX 3
#define RETRY_DELAY_MS 20
#define BUSY_DELAY_MAX_MS 64
#define THREAD_COUNT_MAX 32

struct worker {
    struct producer_batch *batch;
    struct producer_queue *queue;
    size_t item_count_max; /* 1 for large ones. */
    struct producer_connection connection;
    bool has_tx;                   /* Its locks are held. */
    struct producer_entry *parked; /* Go back when they are not: their due_ms is how long they wait then. */
    struct producer_entry *parked_large;
    struct thread thread;
    struct producer_decision decisions[ITEM_COUNT_MAX];
    struct db_submit_key keys[ITEM_COUNT_MAX];
    struct db_submit_write writes[ITEM_COUNT_MAX];
};

struct producer_batch {
    struct producer_batch_options options;
    struct producer_queue *small;
    struct producer_queue *large;
    struct worker *workers[THREAD_COUNT_MAX];
    size_t worker_count;
    _Atomic int64_t clock_offset_us; /* Database's clock less ours, read with every batch. */
    _Atomic bool has_clock;
    struct metric *item_sizes;
    struct producer_leave leave;
    struct metric *busy;
    struct metric *failures;
    struct metric *waiting;
};

/* ---- one item leaves -------------------------------------------------------------------------------------------- */

static void refuse_item(struct producer_batch *batch, struct producer_item *item, const struct http_problem *problem,
                        const char *detail)
{
    producer_leave_refused(&batch->leave, item, problem, detail);
}

/* While the transaction holds what it locked for the item, another batcher would find the item's own key busy. */
static void put_back(struct worker *worker, struct producer_item *item, int64_t delay_ms)
{
    if (worker->has_tx) {
        producer_queue_park(&worker->parked, &item->entry, delay_ms);
    } else {
        producer_queue_put_back(worker->queue, &item->entry, delay_ms);
    }
}

static void end_tx(struct worker *worker)
{
    worker->has_tx = false;
    producer_queue_unpark(worker->queue, &worker->parked);
    producer_queue_unpark(worker->batch->large, &worker->parked_large);
}

/* While it is not known what an earlier attempt came to, no other refusal is true. */
static void refuse_in_doubt(struct worker *worker, struct producer_item *item)
{
    refuse_item(worker->batch, item, producer_problem("outcome_unknown"),
                "the connection was lost at COMMIT and the database stays away; send the same call again");
}

/* Again in a moment, with no thread and no connection until then. */
static void wait_a_moment(struct worker *worker, struct producer_item *item)
{
    metric_add(worker->batch->busy, 1);
    int64_t delay_ms = INT64_C(1) << (item->busy_count < 6 ? item->busy_count++ : 6);
    put_back(worker, item, delay_ms < BUSY_DELAY_MAX_MS ? delay_ms : BUSY_DELAY_MAX_MS);
}

/* A rival holds the request. */
static void wait_for_rival(struct worker *worker, struct producer_item *item)
{
    if (clock_monotonic_ms() - item->started_ms <= ITEM_PATIENCE_MS) {
        wait_a_moment(worker, item);
    } else if (item->is_in_doubt) {
        refuse_in_doubt(worker, item);
    } else {
        refuse_item(worker->batch, item, producer_problem("request_busy"),
                    "another call works on this request; try again");
    }
}

/* A rival works under the key. */
static void wait_for_key(struct worker *worker, struct producer_item *item)
{
    int64_t age_ms = clock_monotonic_ms() - item->started_ms;
    if (age_ms < (item->is_in_doubt ? DOUBT_PATIENCE_MS : worker->batch->options.settings->key_wait_ms)) {
        wait_a_moment(worker, item);
    } else if (item->is_in_doubt) {
        refuse_in_doubt(worker, item);
    } else {
        struct producer_item *next = producer_leave_in_progress(&worker->batch->leave, item);
        if (next != NULL) {
            put_back(worker, next, 0);
        }
    }
}

/* An attempt failed and left nothing behind, or nobody knows what (is_unknown). */
static void fail_item(struct worker *worker, struct producer_item *item, const struct err *err, bool is_unknown)
{
    metric_add(worker->batch->failures, 1);
    item->is_in_doubt = item->is_in_doubt || is_unknown;
    item->attempt++;
    int64_t age_ms = clock_monotonic_ms() - item->started_ms;
    bool is_down = worker->connection.was_down;
    bool may_recover = err->kind == ERR_TRANSIENT && item->attempt <= ATTEMPT_COUNT_MAX && !is_down;
    bool is_tried_again = item->is_in_doubt ? age_ms < DOUBT_PATIENCE_MS : may_recover && age_ms < ITEM_PATIENCE_MS;
    if (is_tried_again) {
        put_back(worker, item, RETRY_DELAY_MS * item->attempt);
    } else if (item->is_in_doubt) {
        refuse_in_doubt(worker, item);
    } else {
        if (!is_down) {
            log_error("producer.submit_failed", LOG_FIELDS(LOG_ERR(err), LOG_INT("attempt", item->attempt)), "%s",
                      err->text);
        }
        const struct http_problem *problem = producer_problem_of(err);
        refuse_item(worker->batch, item, problem,
                    problem == producer_problem("internal_error") ? "the log of the service says why"
                                                                  : "nothing was written; try again");
    }
}

/* ---- a batch ----------------------------------------------------------------------------------------------------- */

/* Before BEGIN, from a clock that is kept to the database's. What is in doubt keeps what it has. */
static void mint(struct worker *worker, struct producer_item **items, size_t count)
{
    int64_t now_us = clock_realtime_us() + atomic_load(&worker->batch->clock_offset_us);
    for (size_t i = 0; i < count; i++) {
        if (!items[i]->is_in_doubt) {
            items[i]->now_us = now_us;
            items[i]->event_id = uuid_v7_new(now_us / 1000);
        }
        worker->keys[i] = (struct db_submit_key){.tenant = items[i]->tenant,
                                                 .request_id = items[i]->request_id,
                                                 .create_type = items[i]->type,
                                                 .idempotency_key = items[i]->key == NULL ? NULL : items[i]->key->text,
                                                 .is_fresh = items[i]->is_id_minted && items[i]->attempt == 0};
    }
}

static void keep_clock(struct producer_batch *batch, int64_t database_us)
{
    atomic_store(&batch->clock_offset_us, database_us - clock_realtime_us());
    atomic_store(&batch->has_clock, true);
}

/* Before the first batch nothing is known of the database's clock. */
static bool read_clock_once(struct producer_batch *batch, struct db *db, struct err *err)
{
    int64_t database_us = 0;
    if (atomic_load(&batch->has_clock)) {
        return true;
    }
    if (!db_submit_read_clock(db, &database_us, err)) {
        return false;
    }
    keep_clock(batch, database_us);
    return true;
}

/* Decides about each item; the writes are collected. Returns how many there are. */
static size_t decide(struct worker *worker, const struct db_submit *submit, struct producer_item **items, size_t count)
{
    const struct producer_ground ground = {.settings = worker->batch->options.settings,
                                           .public_url = worker->batch->options.public_url,
                                           .source = db_submit_source(submit),
                                           .clock_us = db_submit_clock_us(submit)};
    size_t write_count = 0;
    for (size_t i = 0; i < count; i++) {
        producer_decide(&ground, items[i], db_submit_found(submit, i), i, &worker->decisions[i]);
        if (worker->decisions[i].verdict == PRODUCER_WRITE) {
            worker->writes[write_count++] = worker->decisions[i].write;
        }
    }
    return write_count;
}

/* One that needs no commit leaves with what was found. */
static void settle_unwritten_item(struct worker *worker, struct producer_item *item, struct producer_decision *decision,
                                  const struct db_submit_found *found)
{
    const struct producer_leave *leave = &worker->batch->leave;
    switch (decision->verdict) {
    case PRODUCER_BUSY: wait_for_rival(worker, item); break;
    case PRODUCER_KEY_BUSY: wait_for_key(worker, item); break;
    case PRODUCER_REPLAY: producer_leave_replayed(leave, item, &found->answer); break;
    case PRODUCER_ALONE: producer_queue_park(&worker->parked_large, &item->entry, 0); break;
    case PRODUCER_REUSED: producer_leave_reused(leave, item, &found->answer); break;
    case PRODUCER_REFUSE: refuse_item(worker->batch, item, decision->problem, decision->detail); break;
    case PRODUCER_TELL: producer_leave_answered(leave, item, decision, found); break;
    case PRODUCER_WRITE: assert(!"it is to be written"); break;
    }
}

/* Their places in items become NULL. */
static void settle_unwritten(struct worker *worker, const struct db_submit *submit, struct producer_item **items,
                             size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (worker->decisions[i].verdict != PRODUCER_WRITE) {
            settle_unwritten_item(worker, items[i], &worker->decisions[i], db_submit_found(submit, i));
            items[i] = NULL;
        }
    }
}

/* After this commit a crash causes a repeated answer at most, never a lost submission. */
static void settle_written(struct worker *worker, struct producer_item **items, const bool *was_queued,
                           size_t write_count)
{
    static const struct db_submit_found nothing_before = {.is_submitted = false};
    for (size_t w = 0; w < write_count; w++) {
        size_t i = worker->writes[w].index;
        if (worker->writes[w].event != NULL && !was_queued[w]) {
            wait_for_rival(worker, items[i]); /* The constraint let somebody else in: the next look tells whom. */
        } else {
            producer_leave_answered(&worker->batch->leave, items[i], &worker->decisions[i], &nothing_before);
        }
        items[i] = NULL;
    }
}

static void fail_items(struct worker *worker, struct producer_item **items, size_t count, const struct err *err,
                       bool is_unknown)
{
    if (is_unknown) {
        log_warning("producer.commit_unknown", LOG_FIELDS(LOG_INT("calls", (int64_t)count), LOG_ERR(err)),
                    "%s; running them again tells what became of them", err->text);
    }
    for (size_t i = 0; i < count; i++) {
        if (items[i] != NULL) {
            fail_item(worker, items[i], err, is_unknown);
            items[i] = NULL;
        }
    }
}

static enum db_tx_outcome commit(struct worker *worker, struct db_submit **submitp, size_t write_count,
                                 bool *ret_was_queued, struct err *err)
{
    if (FAILPOINT_FAILS("producer.before_commit")) {
        db_submit_rollback(submitp);
        err_set(err, ERR_TRANSIENT, "40001", "failpoint");
        return DB_TX_FAILED;
    }
    enum db_tx_outcome outcome = db_submit_commit(submitp, worker->writes, write_count, ret_was_queued, err);
    if (outcome == DB_TX_COMMITTED && FAILPOINT_FAILS("producer.after_commit")) {
        err_set(err, ERR_TRANSIENT, "commit_unknown", "failpoint");
        return DB_TX_UNKNOWN;
    }
    return outcome;
}

/* What a failed batch's items do next: each alone, unless the connection itself is gone. True: the caller runs them. */
static bool must_run_alone(const struct db *db, size_t count, enum db_tx_outcome outcome)
{
    return count > 1 && outcome == DB_TX_FAILED && db_is_usable(db);
}

static enum db_tx_outcome run_items(struct worker *worker, struct db *db, struct producer_item **items, size_t count,
                                    struct err *err)
{
    struct db_submit *submit = NULL;
    bool was_queued[ITEM_COUNT_MAX];
    if (!read_clock_once(worker->batch, db, err)) {
        return DB_TX_FAILED;
    }
    mint(worker, items, count);
    if (!db_submit_begin(db, worker->keys, count, &submit, err)) {
        return DB_TX_FAILED;
    }
    worker->has_tx = true;
    FAILPOINT("producer.after_lock");
    keep_clock(worker->batch, db_submit_clock_us(submit));
    size_t write_count = decide(worker, submit, items, count);
    settle_unwritten(worker, submit, items, count);
    enum db_tx_outcome outcome = DB_TX_COMMITTED;
    if (write_count == 0) {
        db_submit_rollback(&submit);
    } else {
        outcome = commit(worker, &submit, write_count, was_queued, err);
    }
    end_tx(worker);
    if (outcome == DB_TX_COMMITTED && write_count > 0) {
        settle_written(worker, items, was_queued, write_count);
        FAILPOINT("producer.before_hint");
        producer_hint_send(worker->batch->options.hint);
    }
    for (size_t i = 0; i < count; i++) {
        producer_decision_done(&worker->decisions[i]);
    }
    return outcome;
}

/* Without those that have been settled. */
static size_t drop_settled(struct producer_item **items, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (items[i] != NULL) {
            items[kept++] = items[i];
        }
    }
    return kept;
}

/* Over whatever connection there is, *ret_db; NULL: none. */
static enum db_tx_outcome try_batch(struct worker *worker, struct producer_item **items, size_t count,
                                    struct db **ret_db, struct err *err)
{
    *ret_db = producer_connection_get(&worker->connection, err);
    return *ret_db == NULL ? DB_TX_FAILED : run_items(worker, *ret_db, items, count, err);
}

/* A connection that was lost while nobody used it is found out by its use, and after a restart of the server each
 * batcher has one: so what wrote nothing goes at once over a new connection, which is no attempt of the items. */
static void run_batch(struct worker *worker, struct producer_item **items, size_t count)
{
    struct err err = ERR_INIT;
    struct db *db = NULL;
    metric_observe(worker->batch->item_sizes, (double)count);
    enum db_tx_outcome outcome = try_batch(worker, items, count, &db, &err);
    if (outcome == DB_TX_FAILED && db != NULL && !db_is_usable(db)) {
        err_clear(&err);
        count = drop_settled(items, count);
        outcome = try_batch(worker, items, count, &db, &err);
    }
    if (outcome == DB_TX_COMMITTED) {
        return;
    }
    if (db == NULL || !must_run_alone(db, count, outcome)) {
        fail_items(worker, items, count, &err, outcome == DB_TX_UNKNOWN);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (items[i] != NULL) {
            struct err own = ERR_INIT;
            outcome = run_items(worker, db, &items[i], 1, &own);
            if (outcome != DB_TX_COMMITTED) {
                fail_items(worker, &items[i], 1, &own, outcome == DB_TX_UNKNOWN);
            }
        }
    }
}

/* ---- from the queue to a batch ----------------------------------------------------------------------------------- */

static int compare_items(const void *left, const void *right)
{
    const struct producer_item *a = *(struct producer_item *const *)left;
    const struct producer_item *b = *(struct producer_item *const *)right;
    int order = strcmp(a->tenant, b->tenant);
    order = order != 0 ? order : uuid_compare(&a->request_id, &b->request_id);
    return order != 0 ? order : (a->started_ms > b->started_ms) - (a->started_ms < b->started_ms);
}

static bool is_same_request(const struct producer_item *a, const struct producer_item *b)
{
    return strcmp(a->tenant, b->tenant) == 0 && uuid_compare(&a->request_id, &b->request_id) == 0;
}

static bool can_follow(const struct producer_item *first, const struct producer_item *item)
{
    return first->kind == PRODUCER_SUBMIT && item->kind == PRODUCER_SUBMIT && first->key == NULL && item->key == NULL &&
           item->follower == NULL && !item->is_in_doubt;
}

/* Sorted by (tenant, request id), each request once: the same submit again follows the first, anything else about the
 * same request waits for the next batch. */
static size_t arrange(struct worker *worker, struct producer_item **items, size_t count)
{
    qsort(items, count, sizeof *items, compare_items);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct producer_item *item = items[i];
        struct producer_item *last = kept == 0 ? NULL : items[kept - 1];
        if (last == NULL || !is_same_request(last, item)) {
            items[kept++] = item;
        } else if (can_follow(last, item)) {
            item->follower = last->follower;
            last->follower = item;
        } else {
            put_back(worker, item, 1);
        }
    }
    return kept;
}

/* True unless it follows another call under its key, or was refused. */
static bool leads(struct producer_batch *batch, struct producer_item *item)
{
    return item->key == NULL || item->key->flight != NULL || producer_flight_join(batch->leave.flights, item);
}

/* Those whose bodies were too large for the server's thread are parsed here. */
static size_t parse_items(struct worker *worker, struct producer_entry **entries, struct producer_item **items,
                          size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        items[kept] = (struct producer_item *)entries[i];
        if (producer_item_parsed(&items[kept], worker->batch->options.settings) && leads(worker->batch, items[kept])) {
            kept++;
        }
    }
    return kept;
}

static void run_worker(void *context)
{
    struct worker *worker = context;
    struct producer_entry *entries[ITEM_COUNT_MAX];
    struct producer_item *items[ITEM_COUNT_MAX];
    producer_connection_check(&worker->connection);
    producer_connection_keep_partitions(&worker->connection);
    while (!producer_queue_is_over(worker->queue)) {
        size_t count = producer_queue_take(worker->queue, entries, worker->item_count_max, IDLE_WAIT_MS);
        count = arrange(worker, items, parse_items(worker, entries, items, count));
        metric_set(worker->batch->waiting, (double)producer_queue_count(worker->batch->small) +
                                               (double)producer_queue_count(worker->batch->large));
        if (count > 0) {
            run_batch(worker, items, count);
        } else {
            producer_connection_check(&worker->connection);
        }
        producer_connection_keep_partitions(&worker->connection);
    }
    producer_connection_done(&worker->connection);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static bool start_worker(struct producer_batch *batch, struct producer_queue *queue, size_t item_count_max,
                         struct err *err)
{
    struct worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL) {
        return err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for a batcher");
    }
    worker->batch = batch;
    worker->queue = queue;
    worker->item_count_max = item_count_max;
    bool is_first = batch->worker_count == 0;
    producer_connection_init(&worker->connection, batch->options.settings, batch->options.health,
                             item_count_max > 1 ? "onceward-producer batcher" : "onceward-producer large", is_first);
    worker->connection.plans_once = true;
    if (!thread_start(&worker->thread, item_count_max > 1 ? "batcher" : "large", run_worker, worker, err)) {
        free(worker);
        return false;
    }
    batch->workers[batch->worker_count++] = worker;
    return true;
}

static void make_metrics(struct producer_batch *batch)
{
    static const double bounds[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
    static const char *const queued[] = {"status", "queued", NULL};
    static const char *const duplicate[] = {"status", "duplicate", NULL};
    struct metrics *metrics = batch->options.metrics;
    batch->item_sizes = metrics_histogram(metrics, "onceward_producer_batch_items", "Calls in one transaction.", NULL,
                                          bounds, sizeof bounds / sizeof *bounds);
    batch->leave.replays = metrics_counter(metrics, "onceward_producer_replays_total",
                                           "Calls answered with the answer that stood under their key.", NULL);
    batch->leave.queued = metrics_counter(metrics, "onceward_producer_submits_total", "Submits answered.", queued);
    batch->leave.duplicates =
        metrics_counter(metrics, "onceward_producer_submits_total", "Submits answered.", duplicate);
    batch->busy = metrics_counter(metrics, "onceward_producer_busy_total",
                                  "Times that a call was put back because another worked on its request.", NULL);
    batch->waiting = metrics_gauge(metrics, "onceward_producer_waiting_calls", "Calls that wait for a batch.", NULL);
    batch->failures =
        metrics_counter(metrics, "onceward_producer_attempts_failed_total", "Attempts that did not commit.", NULL);
}

struct producer_batch *producer_batch_new(const struct producer_batch_options *options, struct err *err)
{
    struct producer_batch *batch = calloc(1, sizeof *batch);
    size_t count_max = (size_t)options->settings->queue_count_max;
    if (batch != NULL) {
        batch->options = *options;
        batch->small = producer_queue_new(count_max);
        batch->large = producer_queue_new(count_max);
    }
    if (batch == NULL || batch->small == NULL || batch->large == NULL) {
        err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for the batchers");
        producer_batch_free(&batch);
        return NULL;
    }
    make_metrics(batch);
    batch->leave.flights = producer_flight_open(options->settings, err);
    bool is_good = batch->leave.flights != NULL;
    for (int64_t i = 0; is_good && i < options->settings->batchers; i++) {
        is_good = start_worker(batch, batch->small, ITEM_COUNT_MAX, err);
    }
    for (int64_t i = 0; is_good && i < options->settings->large_writers; i++) {
        is_good = start_worker(batch, batch->large, 1, err);
    }
    if (!is_good) {
        producer_batch_free(&batch);
    }
    return batch;
}

void producer_batch_put(struct producer_batch *batch, struct producer_item *item)
{
    if (item->parse == NULL && !leads(batch, item)) {
        return;
    }
    bool is_large = item->parse != NULL || producer_item_size(item) > PRODUCER_LARGE_SIZE;
    if (!producer_queue_put(is_large ? batch->large : batch->small, &item->entry)) {
        refuse_item(batch, item, producer_problem("too_busy"), "too many calls wait for the database");
    }
}

struct producer_flights *producer_batch_flights(const struct producer_batch *batch)
{
    return batch->leave.flights;
}

/* Lets the workers of a queue finish what is in it. */
static void end_queue(struct producer_batch *batch, struct producer_queue *queue)
{
    if (queue == NULL) {
        return;
    }
    producer_queue_close(queue);
    for (size_t i = 0; i < batch->worker_count; i++) {
        if (batch->workers[i]->queue == queue) {
            thread_join(&batch->workers[i]->thread);
        }
    }
}

void producer_batch_free(struct producer_batch **batchp)
{
    struct producer_batch *batch = *batchp;
    *batchp = NULL;
    if (batch == NULL) {
        return;
    }
    end_queue(batch, batch->small); /* First, since it hands items to the other. */
    end_queue(batch, batch->large);
    for (size_t i = 0; i < batch->worker_count; i++) {
        free(batch->workers[i]);
    }
    producer_queue_free(&batch->small);
    producer_queue_free(&batch->large);
    producer_flight_close(&batch->leave.flights);
    free(batch);
}
