/* SPDX-License-Identifier: Apache-2.0
 *
 * What one lane has in memory between its settled place and its reading place:
 * events in reading order, what became of each, and which of their keys have
 * something unacknowledged. Pure: no database, no broker, no clock.
 *
 * Life of an entry:
 *   WAITING  behind another of its (topic, key)
 *   READY    may be handed to the publisher
 *   SENT     handed over, no report yet
 *   SUSPECT  refused within a batch: to be published by itself before any verdict
 *   DONE     acknowledged
 *   PARKED   refused by itself, for good
 *   HELD     behind something deferred of its (topic, key)
 * The place moves over DONE, PARKED and HELD, but only as a contiguous run from the front. What is DONE behind the run
 * is written down ahead of the place, so that nobody has to publish it again.
 */
#ifndef RELAY_WINDOW_H
#define RELAY_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "domain/event.h"
#include "domain/publisher.h"
#include "relay_key.h"
#include "relay_snapshot.h"

enum relay_entry_state {
    RELAY_WAITING,
    RELAY_READY,
    RELAY_SENT,
    RELAY_SUSPECT,
    RELAY_DONE,
    RELAY_PARKED,
    RELAY_HELD,
};

struct relay_window;

struct relay_entry {
    int64_t id;
    enum relay_entry_state state;
    bool is_carried;     /* Survived a reset and was not read again yet: in no order, has no event. */
    bool is_cut;         /* Is being forgotten. */
    bool is_single;      /* SENT by the publisher of single records. */
    bool is_planned;     /* DONE, and in the row that is being written. */
    int64_t written_seq; /* DONE: the row of the lane's log that says so; 0: none does. */
    struct event *event; /* A copy of its own, until it is acknowledged. */
    const char *topic;   /* Borrowed from the window's keys. */
    struct relay_range *range;
    struct relay_window *window;
    struct relay_key *key;
    int32_t partition;
    int64_t offset;
    char *reason_code; /* PARKED only. */
    char *reason;
    struct relay_entry *next;     /* In reading order. */
    struct relay_entry *next_out; /* In the queue of what is ready, suspect, unwritten or waits behind its key. */
};

/* A place: everything up to position of the difference (from, to) is behind it. to is NULL while nothing is
 * being read; position is then 0. */
struct relay_point {
    struct relay_snapshot *from;
    struct relay_snapshot *to;
    int64_t position;
};

struct relay_window_options {
    size_t entry_count_max;
    size_t bytes_max; /* Of events that are not acknowledged. */
    /* Unacknowledged events that a key of this topic may have. */
    int (*in_flight_per_key)(void *context, const char *topic);
    void *context;
};

struct relay_window *relay_window_new(const struct relay_window_options *options, struct err *err) MUST_CHECK;

/* Precondition: no entry is SENT, that is: the publishers are closed. */
void relay_window_free(struct relay_window **windowp);

/* Starts from a place: forgets what was read and what is held. Entries that are SENT or DONE are carried over: when
 * they are read again, they are what they are and not published again. keeps_done is false where another server
 * answers, on which an id may mean another event. point NULL: the lane is not ours any more. */
void relay_window_reset(struct relay_window *window, const struct relay_point *point, bool keeps_done);

/* The log says that this event was acknowledged, though it lies behind the place that the window was reset to: when it
 * is read, it is not published again. */
bool relay_window_know(struct relay_window *window, int64_t id, int32_t partition, int64_t offset, int64_t seq,
                       struct err *err) MUST_CHECK;

/* A key of which something is deferred: what is read of it from now on is HELD. */
bool relay_window_hold(struct relay_window *window, const char *topic, const char *key, struct err *err) MUST_CHECK;

/* Begins a difference. Precondition: none is being read. */
void relay_window_begin(struct relay_window *window, struct relay_range *range);

/* One event was read. Copies it. Ids rise within a range. */
bool relay_window_add(struct relay_window *window, const struct event *event, struct err *err) MUST_CHECK;

/* Reading has come to this position; at the ceiling the range is finished. */
void relay_window_read_to(struct relay_window *window, int64_t position);

/* Nothing more will be read: what was not handed over, and lies behind all that was, is forgotten again. What is left
 * can be finished, after which nothing that is on the topic lies behind the settled place. */
void relay_window_stop_reading(struct relay_window *window);

/* The difference that is being read, or NULL; and how far. */
struct relay_range *relay_window_range(const struct relay_window *window);
int64_t relay_window_position(const struct relay_window *window);
/* The snapshot that the next difference starts from. Precondition: none is being read. */
struct relay_snapshot *relay_window_from(const struct relay_window *window);

bool relay_window_has_room(const struct relay_window *window);
/* Entries that are not settled. */
size_t relay_window_count(const struct relay_window *window);
/* Entries whose report is missing, carried ones included. */
size_t relay_window_sent_count(const struct relay_window *window);
/* The greatest id that was handed over since the last reset, or the reset's own. */
int64_t relay_window_claimed_to(const struct relay_window *window);
void relay_window_set_claimed_to(struct relay_window *window, int64_t claimed_to);

/* The next entry to publish, READY (single: SUSPECT), or NULL. It must go to exactly one of sent, put_back, delay,
 * refuse. */
struct relay_entry *relay_window_next(struct relay_window *window, bool is_single);
void relay_window_sent(struct relay_entry *entry, bool is_single);
/* There was no room for it: it is the next again. */
void relay_window_put_back(struct relay_entry *entry);
/* Could not be handed over now, nor can what follows of its key. Comes again after relay_window_retry. */
void relay_window_delay(struct relay_entry *entry);
void relay_window_retry(struct relay_window *window);
/* Whether something waits to be published by itself. */
bool relay_window_has_suspect(const struct relay_window *window);
/* A verdict on this entry: it and all that follows of its key will be deferred. */
void relay_window_refuse(struct relay_entry *entry, const struct err *err);

/* The publisher's report on an entry that was sent. May free the entry. */
void relay_window_report(struct relay_entry *entry, const struct publish_report *report);

/* The run of entries from the front that can be settled, up to count_max; 0 for none. *ret_first is the first. */
size_t relay_window_settleable(const struct relay_window *window, size_t count_max, struct relay_entry **ret_first);
/* The place behind the first count entries. Borrowed snapshots. */
struct relay_point relay_window_point_after(const struct relay_window *window, size_t count);
/* What is DONE and in no row of the log, wherever it stands: a queue in the order of the reports. The caller marks as
 * planned what it writes. */
const struct relay_queue *relay_window_unwritten(const struct relay_window *window);
/* The planned ones are in the row with this seq. */
void relay_window_written(struct relay_window *window, int64_t seq);
/* The database has the place behind the first count entries. Precondition: those of them that are DONE are written. */
void relay_window_settled(struct relay_window *window, size_t count);

/* Entries that are written down, carried ones included: after relay_window_settled, what lies ahead of the place. */
size_t relay_window_written_count(const struct relay_window *window);
/* The least row that speaks of one of them, looking past the first skip_count entries; INT64_MAX: none. Walks through
 * the window. */
int64_t relay_window_written_from(const struct relay_window *window, size_t skip_count);

#endif
