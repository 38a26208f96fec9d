/* SPDX-License-Identifier: Apache-2.0
 *
 * The partitions that are assigned to this process, and how far each is. Values
 * only; who talks to the database and the broker is elsewhere.
 */
#ifndef CONSUMER_CURSOR_H
#define CONSUMER_CURSOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"
#include "db/db_progress.h"

struct metric;

enum consumer_cursor_state {
    CONSUMER_CURSOR_UNTAKEN,  /* Assigned, paused, not ours in the database yet. */
    CONSUMER_CURSOR_CHECKING, /* Ours; the record at last_offset is awaited, to be compared and skipped. */
    CONSUMER_CURSOR_RUNNING,  /* Records from read_offset on are applied. */
    CONSUMER_CURSOR_FENCED,   /* Somebody took it: paused until until_ms, then taken again. */
    CONSUMER_CURSOR_STOPPED,  /* Paused until an operator rewinds it or the process starts again; reason says why. */
};

struct consumer_cursor {
    const char *topic; /* Borrowed from the Kafka consumer. */
    int32_t partition;
    enum consumer_cursor_state state;
    int64_t seq; /* The last row of the log that we know, as the five below. */
    struct uuid attempt;
    int64_t next_offset;
    int64_t last_offset;
    unsigned char last_hash[DB_PROGRESS_HASH_SIZE];
    char cluster_id[DB_PROGRESS_CLUSTER_SIZE];
    int64_t read_offset;     /* Next from the broker: beyond next_offset while records wait in the batch. */
    int64_t verified_offset; /* The last one whose record was read again and was the same. */
    int64_t anchor_offset;   /* A record that was the last one some seconds ago, to be read again next. */
    unsigned char anchor_hash[DB_PROGRESS_HASH_SIZE];
    int64_t until_ms; /* End of the present wait, monotonic. */
    bool
        is_contiguous; /* A record came since fetching began here, at its place or behind a hole that was seen twice. */
    int64_t hole_end;  /* Offset of the first record behind a hole that was seen once. */
    int64_t stall_offset;  /* Where read_offset was at stall_at_ms less stall_wait_ms. */
    int64_t stall_at_ms;   /* If there is more on the log and nothing came by then, fetching begins anew; monotonic. */
    int64_t stall_wait_ms; /* Doubled each time. */
    int restart_count;     /* How often fetching began anew here since it gave something. */
    bool is_spent;         /* Its fetching ended out of range: only another assignment starts it again. */
    int64_t still_offset;  /* Where next_offset was when it moved last, or nothing was to do. */
    int64_t still_at_ms;   /* When that was; monotonic, 0: not looked at yet. */
    int64_t hinted_offset; /* What the group was told last. */
    struct err reason;     /* Of the stop. */
    bool is_stop_told;     /* The database has the reason, for the row that we know as the last. */
    struct metric *lag;
};

struct consumer_cursors {
    struct consumer_cursor *items; /* In order of topic and partition. */
    size_t count;
};

/* An empty table of this many. FATAL without memory. */
bool consumer_cursors_init(struct consumer_cursors *cursors, size_t count, struct err *err) MUST_CHECK;
void consumer_cursors_done(struct consumer_cursors *cursors);

/* Puts them in order, once all places are filled in. */
void consumer_cursors_sort(struct consumer_cursors *cursors);

/* Index of a partition; cursors->count if it is not assigned. */
size_t consumer_cursors_find(const struct consumer_cursors *cursors, const char *topic, int32_t partition);

/* Takes over what a row of the log says. */
void consumer_cursor_follow(struct consumer_cursor *cursor, const struct db_progress_row *row);

/* This record is the next to be read again. */
void consumer_cursor_anchor(struct consumer_cursor *cursor, int64_t offset, const unsigned char *hash);

#endif
