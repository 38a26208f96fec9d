/* SPDX-License-Identifier: Apache-2.0
 *
 * The log of a lane: its last row is the cursor. A row is added only behind the
 * caller's own last row, so that whoever slept, was ousted or remembers a time
 * before a restore adds nothing.
 */
#ifndef DB_DB_LANE_H
#define DB_DB_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"

struct db;

/* Who writes: the relay's name and the token of this process. */
struct db_lane_owner {
    const char *relay;
    struct uuid incarnation;
    int64_t lease_ms;
};

/* A row of the log. */
struct db_lane_row {
    int lane;
    int64_t seq;
    struct uuid incarnation;
    struct uuid attempt;
    char *from_text;
    int64_t from_floor;
    char *to_text; /* NULL while no difference is being read; then the next two are 0. */
    int64_t to_floor;
    int64_t to_ceiling;
    int64_t position;
    int64_t claimed_to;
    int64_t ahead_from; /* The first row that may name something settled ahead of the place; 0: none does. */
};

/* Frees the texts. */
void db_lane_row_done(struct db_lane_row *row);

enum db_lane_take {
    DB_LANE_TAKEN,
    DB_LANE_BUSY, /* It has a live owner, or somebody was faster, or we are not registered any more. */
};

/* Makes a free lane ours: its owner and the row `taken`, which carries the place on, change in one transaction.
 * attempt is the new row's token. *ret_row is filled when taken. Fatal "other_cluster" when the log speaks of
 * another cluster than the one that answers: its transaction ids mean nothing here. */
bool db_lane_take(struct db *db, const struct db_lane_owner *owner, int lane, const struct uuid *attempt,
                  enum db_lane_take *ret_take, struct db_lane_row *ret_row, struct err *err) MUST_CHECK;

/* An event that is deferred instead of settled. */
struct db_lane_deferred {
    int64_t id;
    bool is_parked; /* Else held: behind another of its key. */
    const char *reason_code;
    const char *reason;
};

/* What was acknowledged, and where it is on the topic. */
struct db_lane_settled {
    int64_t id;
    const char *topic;
    int32_t partition;
    int64_t offset; /* Negative: the broker did not say. */
};

/* The next row of a lane's log. All is borrowed. */
struct db_lane_move {
    int lane;
    int64_t seq; /* Of my last row, with its token. */
    struct uuid attempt;
    struct uuid new_attempt;
    const char *from_text;
    int64_t from_floor;
    const char *to_text; /* May be NULL. */
    int64_t to_floor;
    int64_t to_ceiling;
    int64_t position;
    int64_t claimed_to;
    int64_t ahead_from;                    /* As in the row. */
    int32_t claimed_count;                 /* Events handed over and not settled. */
    const struct db_lane_settled *settled; /* Before the new place or ahead of it. */
    size_t settled_count;
    const struct db_lane_deferred *deferred;
    size_t deferred_count;
    bool is_release; /* The lane is let go in the same transaction. */
    bool was_moved;  /* Answer: false means that the last row is not mine. */
};

enum db_lane_outcome {
    DB_LANE_WRITTEN, /* Each move says for itself whether it was made. */
    DB_LANE_FAILED,  /* Nothing was changed. */
    DB_LANE_UNKNOWN, /* Read the log: the commit's answer is missing. */
};

/* Adds the rows of several lanes in one transaction. Deferred events are copied from the outbox in it. err is filled
 * unless written. */
enum db_lane_outcome db_lane_move(struct db *db, const struct db_lane_owner *owner, struct db_lane_move *moves,
                                  size_t move_count, struct err *err) MUST_CHECK;

/* The end of a lane's log, seen from a row that its caller believes to be the last. */
struct db_lane_tail {
    struct db_lane_row last;
    bool has_foreign_after; /* A row behind that one belongs to another incarnation. */
};

bool db_lane_read_tail(struct db *db, int lane, int64_t seq, const struct uuid *incarnation,
                       struct db_lane_tail *ret_tail, struct err *err) MUST_CHECK;

/* An event that is settled ahead of the lane's place. */
struct db_lane_ahead {
    int64_t id;
    int32_t partition;
    int64_t offset; /* Negative: the broker did not say. */
    int64_t seq;    /* Of the row that names it. */
};

/* Calls visit for each of them, as the log has them up to this row, until it returns false. */
bool db_lane_each_ahead(struct db *db, const struct db_lane_row *row,
                        bool (*visit)(void *context, const struct db_lane_ahead *ahead, struct err *err), void *context,
                        struct err *err) MUST_CHECK;

/* Calls visit for each (topic, key) of which something is deferred, until it returns false. *ret_count is the number
 * of deferred events. */
bool db_lane_each_held_key(struct db *db, int lane,
                           bool (*visit)(void *context, const char *topic, const char *key, struct err *err),
                           void *context, int64_t *ret_count, struct err *err) MUST_CHECK;

/* Deletes rows without settled places that are older than an hour, of a stretch of the log that begins behind *seqp;
 * moves *seqp to the stretch's end. Never the last row. */
bool db_lane_delete_old(struct db *db, int lane, int64_t *seqp, int64_t *ret_count, struct err *err) MUST_CHECK;

#endif
