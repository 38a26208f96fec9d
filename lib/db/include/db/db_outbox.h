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

/* Takes a snapshot in two statements, the first with a transaction id of its own, which has ended before the second.
 * So every row with an id up to floor was written by a transaction that the snapshot knows: as ended or as running.
 * Precondition: no transaction is open. Transient "not_primary", "server_changed" (another server than the one that
 * this handle connected to answered: a pooler swapped it) and "snapshot_stale". */
bool db_outbox_snapshot(struct db *db, struct db_outbox_snapshot *ret_snapshot, struct err *err) MUST_CHECK;

/* Whether there may be anything beyond this snapshot: the sequence has passed its floor or one of the transactions
 * that ran has ended. Read-only. Errors as above. */
bool db_outbox_has_news(struct db *db, const char *snapshot_text, int64_t floor, bool *ret_has_news,
                        struct err *err) MUST_CHECK;

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
