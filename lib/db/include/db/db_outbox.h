/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the outbox by differences of snapshots. What is new is decided by
 * visibility, never by ids or clocks; the order is that of the ids. Nothing
 * here writes.
 */
#ifndef DB_DB_OUTBOX_H
#define DB_DB_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "domain/event.h"

struct db;

/* What is visible now, with the sequence's value from before (floor) and from after (ceiling). */
struct db_outbox_snapshot {
    char *text; /* Free it. */
    int64_t floor;
    int64_t ceiling;
};

/* The difference that is read, of these lanes (bit n is lane n). */
struct db_outbox_range {
    const char *from_text;
    int64_t from_floor;
    const char *to_text;
    uint32_t lanes;
    int32_t row_count_max;
    int64_t bytes_max; /* Of values: the row that passes it is the last. */
};

struct db_outbox_bite {
    struct event *events; /* In order of id. Borrow from the bite. */
    size_t count;
    bool is_cut; /* There is more up to the bound: read on from the last id. */
    struct db_outbox_memory *memory;
};

/* Stream B: rows with ids above position and up to the floor of from, of transactions that ran in from and are
 * visible in to. *ret_bite is filled on true only; db_outbox_bite_done() frees it. */
bool db_outbox_read_late(struct db *db, const struct db_outbox_range *range, int64_t position,
                         struct db_outbox_bite *ret_bite, struct err *err) MUST_CHECK;

/* Stream A, one window of ids: above position and up to until, visible in to and not in from.
 * Precondition: position is at or above the floor of from. */
bool db_outbox_read_window(struct db *db, const struct db_outbox_range *range, int64_t position, int64_t until,
                           struct db_outbox_bite *ret_bite, struct err *err) MUST_CHECK;

void db_outbox_bite_done(struct db_outbox_bite *bite);

/* What a look at the outbox found. */
struct db_outbox_look {
    bool has_news; /* False: nothing of the following. */
    struct db_outbox_snapshot snapshot;
    bool is_read; /* bite holds what comes first in the difference up to this snapshot. */
    struct db_outbox_bite bite;
};

/* Takes a snapshot in two statements, the first with a transaction id of its own, which has ended before the second.
 * So every row with an id up to floor was written by a transaction that the snapshot knows: as ended or as running.
 * range NULL: in any case, and reads nothing. Else only if there may be anything beyond range's from (the sequence has
 * passed its floor, or one of the transactions that ran has ended; without that nothing is written), and with the first
 * bite of the difference up to this snapshot (range's to is not looked at): stream B, then stream A up to the id until,
 * as far as the bounds go. One journey in any case. Precondition: no transaction is open. Transient "not_primary",
 * "server_changed" (another server than the one that this handle connected to answered: a pooler swapped it) and
 * "snapshot_stale". *ret_look is to be done with on true only. */
bool db_outbox_look(struct db *db, const struct db_outbox_range *range, int64_t until, struct db_outbox_look *ret_look,
                    struct err *err) MUST_CHECK;

void db_outbox_look_done(struct db_outbox_look *look);

/* Age in seconds of the oldest event that no cursor has passed, 0 when there is none. An approximation from below
 * while a lane reads a difference. */
bool db_outbox_oldest_unpublished(struct db *db, double *ret_age_seconds, struct err *err) MUST_CHECK;

/* Fatal "sequence_cached" unless the sequence of the ids has CACHE 1: a cached id below a floor would be in neither
 * stream. */
bool db_outbox_check_sequence(struct db *db, struct err *err) MUST_CHECK;

/* Calls visit for each topic that allows more than one unacknowledged event per key. */
bool db_outbox_each_topic(struct db *db, void (*visit)(void *context, const char *topic, int in_flight_per_key),
                          void *context, struct err *err) MUST_CHECK;

#endif
