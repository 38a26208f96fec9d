/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs reads. A read changes nothing, so one whose connection was lost is
 * simply tried once more.
 */
#include "producer_reader.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "producer_connection.h"
#include "producer_problem.h"

#define IDLE_WAIT_MS 500
#define THREAD_COUNT_MAX 64

struct worker {
    struct producer_reader *reader;
    struct producer_connection connection;
    struct thread thread;
};

struct producer_reader {
    struct producer_reader_options options;
    struct producer_queue *queue;
    struct worker workers[THREAD_COUNT_MAX];
    size_t worker_count;
};

struct producer_read *producer_read_new(struct producer_reader *reader, struct http_exchange *exchange,
                                        producer_read_run *run)
{
    struct producer_read *read = calloc(1, sizeof *read);
    if (read != NULL) {
        read->exchange = exchange;
        read->run = run;
        read->settings = reader->options.settings;
        read->public_url = reader->options.public_url;
        read->hint = reader->options.hint;
        read->started_ms = clock_monotonic_ms();
    }
    return read;
}

void producer_read_free(struct producer_read **readp)
{
    struct producer_read *read = *readp;
    *readp = NULL;
    if (read != NULL) {
        free(read->backlog);
        free(read);
    }
}

void producer_reader_put(struct producer_reader *reader, struct producer_read *read)
{
    if (!producer_queue_put(reader->queue, &read->entry)) {
        http_respond_problem(read->exchange, producer_problem("too_busy"), NULL,
                             "too many calls wait for the database");
        producer_read_free(&read);
    }
}

void producer_reader_put_back(struct producer_reader *reader, struct producer_read *read)
{
    producer_queue_put_back(reader->queue, &read->entry, 0);
}

static void fail(struct worker *worker, struct producer_read *read, const struct err *err)
{
    if (!worker->connection.was_down && producer_problem_of(err)->status >= 500) {
        log_error("producer.read_failed", LOG_FIELDS(LOG_ERR(err)), "%s", err->text);
    }
    producer_problem_answer(read->exchange, err);
    producer_read_free(&read);
}

static bool try_read(struct worker *worker, struct producer_read *read, enum producer_read_outcome *ret_outcome,
                     struct err *err)
{
    struct db *db = producer_connection_get(&worker->connection, err);
    return db != NULL && read->run(read, db, ret_outcome, err);
}

/* After a restart of the server every reader has a stale connection, and only its use tells. So the second try is the
 * same reader's, over a connection that it has just opened. */
static void run_read(struct worker *worker, struct producer_read *read)
{
    struct err err = ERR_INIT;
    enum producer_read_outcome outcome = PRODUCER_READ_DONE;
    bool is_good = try_read(worker, read, &outcome, &err);
    if (!is_good && err.kind == ERR_TRANSIENT && !worker->connection.was_down) {
        err_clear(&err);
        is_good = try_read(worker, read, &outcome, &err);
    }
    if (!is_good) {
        fail(worker, read, &err);
    } else if (outcome == PRODUCER_READ_AGAIN) {
        producer_queue_put_back(worker->reader->queue, &read->entry, read->again_ms);
    } else {
        producer_read_free(&read);
    }
}

static void run_worker(void *context)
{
    struct worker *worker = context;
    while (!producer_queue_is_over(worker->reader->queue)) {
        struct producer_entry *entry = NULL;
        if (producer_queue_take(worker->reader->queue, &entry, 1, IDLE_WAIT_MS) > 0) {
            run_read(worker, (struct producer_read *)entry);
        }
    }
    producer_connection_done(&worker->connection);
}

struct producer_reader *producer_reader_new(const struct producer_reader_options *options, struct err *err)
{
    struct producer_reader *reader = calloc(1, sizeof *reader);
    if (reader != NULL) {
        reader->options = *options;
        reader->queue = producer_queue_new((size_t)options->settings->queue_count_max);
    }
    if (reader == NULL || reader->queue == NULL) {
        err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for the readers");
        free(reader);
        return NULL;
    }
    for (int64_t i = 0; i < options->settings->readers; i++) {
        struct worker *worker = &reader->workers[i];
        worker->reader = reader;
        producer_connection_init(&worker->connection, options->settings, options->health, "onceward-producer reader",
                                 false);
        if (!thread_start(&worker->thread, "reader", run_worker, worker, err)) {
            producer_reader_free(&reader);
            return NULL;
        }
        reader->worker_count++;
    }
    return reader;
}

void producer_reader_free(struct producer_reader **readerp)
{
    struct producer_reader *reader = *readerp;
    *readerp = NULL;
    if (reader == NULL) {
        return;
    }
    producer_queue_close(reader->queue);
    for (size_t i = 0; i < reader->worker_count; i++) {
        thread_join(&reader->workers[i].thread);
    }
    producer_queue_free(&reader->queue);
    free(reader);
}
