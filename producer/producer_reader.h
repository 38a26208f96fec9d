/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that read: a few threads, each with one connection. A call that has to
 * wait for something is put back for a moment and holds neither.
 */
#ifndef PRODUCER_READER_H
#define PRODUCER_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"
#include "db/db_event_query.h"
#include "db/db_request.h"
#include "producer_queue.h"
#include "producer_settings.h"

struct db;
struct health;
struct http_exchange;
struct producer_reader;

#define PRODUCER_TEXT_SIZE 300

struct producer_read;

enum producer_read_outcome {
    PRODUCER_READ_DONE,  /* Answered. */
    PRODUCER_READ_AGAIN, /* Not yet: again in again_ms. */
};

/* What a call that waited for an event came to. */
enum producer_wait_outcome {
    PRODUCER_WAIT_NONE, /* It does not wait. */
    PRODUCER_WAIT_OPEN, /* It waits on. */
    PRODUCER_WAIT_APPLIED,
    PRODUCER_WAIT_PUBLISHED,
    PRODUCER_WAIT_FAILED,
    PRODUCER_WAIT_TIME_IS_UP,
    PRODUCER_WAIT_STOPPING,
};

/* Answers the exchange, or says when to come again. False: not answered; a transient error is tried once more. */
typedef bool producer_read_run(struct producer_read *read, struct db *db, enum producer_read_outcome *ret_outcome,
                               struct err *err);

/* One call. What the routes parsed of it stands here, since the exchange's request is theirs alone. */
struct producer_read {
    struct producer_entry entry;
    struct http_exchange *exchange;
    producer_read_run *run;
    const struct producer_settings *settings;
    const char *public_url;
    struct producer_hint *hint;
    const char *tenant; /* Whose call this is. Borrowed from producer_auth. */
    void *context;      /* The producer, for a call that goes on elsewhere. */
    struct uuid id;
    char text[PRODUCER_TEXT_SIZE];
    int filter; /* A status, as an index into its route's table. */
    int limit;
    bool has_cursor;
    struct db_request_cursor request_cursor;
    int64_t before;
    struct db_delivery_cursor delivery_cursor;
    char cursor_text[2][PRODUCER_TEXT_SIZE];
    struct db_event_backlog *backlog;
    int64_t started_ms;
    int64_t again_ms;
    int64_t until_ms;  /* Of one that waits (producer_wait.h), as the next two. */
    int64_t outbox_id; /* 0: not known yet. */
    enum producer_wait_outcome wait_outcome;
};

struct producer_reader_options {
    const struct producer_settings *settings;
    const char *public_url;
    struct producer_hint *hint;
    struct health *health;
};

struct producer_reader *producer_reader_new(const struct producer_reader_options *options, struct err *err) MUST_CHECK;
void producer_reader_free(struct producer_reader **readerp);

/* A call for this exchange, which it takes over when it is put. NULL only when memory is out. */
struct producer_read *producer_read_new(struct producer_reader *reader, struct http_exchange *exchange,
                                        producer_read_run *run);
void producer_read_free(struct producer_read **readp);

/* Takes it over; a full queue is answered at once. */
void producer_reader_put(struct producer_reader *reader, struct producer_read *read);

/* The same for one that waited elsewhere: there is always room for it. */
void producer_reader_put_back(struct producer_reader *reader, struct producer_read *read);

#endif
