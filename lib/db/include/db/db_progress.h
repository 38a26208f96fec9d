/* SPDX-License-Identifier: Apache-2.0
 *
 * The cursors of a consumer: an insert-only log per partition, whose last row
 * says how far it is and whose it is. To move a cursor is to insert the next
 * row; whoever's row does not go in is told by looking at what came instead.
 *
 * To change what a row carries: schema/migrations (consumer_progress), the
 * statements here, and consumer/consumer_fence.c, which decides by it.
 */
#ifndef DB_DB_PROGRESS_H
#define DB_DB_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"

struct db;
struct db_inbox_claim;
struct db_tx;

#define DB_PROGRESS_HASH_SIZE 32
#define DB_PROGRESS_CLUSTER_SIZE 64
#define DB_PROGRESS_OFFSET_NONE (-1)

/* Who moves cursors: whose they are, and which life of which process writes them. */
struct db_progress_self {
    const char *consumer;
    const char *scope;
    const char *owner;
    struct uuid incarnation; /* A new one at every start of a process. */
};

struct db_progress_place {
    const char *topic;
    int32_t partition;
};

enum db_progress_kind {
    DB_PROGRESS_REGISTERED,
    DB_PROGRESS_TAKEN,
    DB_PROGRESS_MOVED,
    DB_PROGRESS_REWOUND, /* By an operator. */
};

struct db_progress_row {
    int64_t seq;
    struct uuid attempt; /* Of this row alone: tells it from one of the same seq after a restore. */
    struct uuid incarnation;
    enum db_progress_kind kind;
    int64_t next_offset;
    int64_t last_offset; /* DB_PROGRESS_OFFSET_NONE: no record was seen yet. */
    unsigned char last_hash[DB_PROGRESS_HASH_SIZE];
    char cluster_id[DB_PROGRESS_CLUSTER_SIZE];
};

/* Whether this consumer has ever had a cursor on the topic. */
bool db_progress_is_registered(struct db *db, const struct db_progress_self *self, const char *topic,
                               bool *ret_is_registered, struct err *err) MUST_CHECK;

/* Inserts row 0 with these next offsets, where there is none yet. */
bool db_progress_register(struct db *db, const struct db_progress_self *self, const struct db_progress_place *places,
                          const int64_t *next_offsets, size_t count, const char *cluster_id,
                          struct err *err) MUST_CHECK;

/* Makes the cursors ours, all in one statement: from now on whoever held one is fenced. ret_is_taken[i] is false
 * where there is no row to follow, or where a rival was faster. ret_rows[i] is our row. */
bool db_progress_take(struct db *db, const struct db_progress_self *self, const struct db_progress_place *places,
                      size_t count, struct db_progress_row *ret_rows, bool *ret_is_taken, struct err *err) MUST_CHECK;

/* One partition's step inside a batch: from the row that we know as the last to the row that will be. */
struct db_progress_move {
    struct db_progress_place place;
    int64_t seq;
    struct uuid attempt;      /* Of the row that we know. */
    struct uuid next_attempt; /* Of the row to insert, whose seq is one more. */
    int64_t next_offset;
    int64_t last_offset;
    unsigned char last_hash[DB_PROGRESS_HASH_SIZE];
    int32_t record_count;
};

/* Begins a transaction by moving the cursors: one flush for both. On false nothing is open. ret_has_moved[i] is false
 * where somebody else's row is there: nothing of that partition may be applied. moves in order of place, so that rivals
 * never deadlock. */
bool db_progress_move(struct db *db, const struct db_progress_self *self, const struct db_progress_move *moves,
                      size_t count, bool *ret_has_moved, struct db_tx **ret_tx, struct err *err) MUST_CHECK;

/* The same and, behind it, a claim in the inbox, still one flush: for who expects that every cursor moves. Where not
 * all did the claim may hold what must not be applied, so the transaction was taken back: *ret_tx is NULL. */
struct db_progress_moves {
    const struct db_progress_move *moves;
    size_t count;
    bool *ret_has_moved;
};
bool db_progress_move_and_claim(struct db *db, const struct db_progress_self *self,
                                const struct db_progress_moves *moves, const struct db_inbox_claim *claim,
                                struct db_tx **ret_tx, struct err *err) MUST_CHECK;

/* What is in the log at and after a row that we know. */
struct db_progress_look {
    bool has_last;
    struct db_progress_row last;
    bool has_stranger_after; /* A row after ours of another incarnation that is no operator's. */
};

bool db_progress_look(struct db *db, const struct db_progress_self *self, const struct db_progress_place *places,
                      const int64_t *seqs, size_t count, struct db_progress_look *ret_looks,
                      struct err *err) MUST_CHECK;

/* Writes down why the partition stands still at the row that we know as the last, for people: in force until the log
 * has another last row. Writing it twice does no harm. */
bool db_progress_stop(struct db *db, const struct db_progress_self *self, struct db_progress_place place, int64_t seq,
                      const struct uuid *attempt, const struct err *why, struct err *err) MUST_CHECK;

/* Deletes rows before seq that are older than an hour, longer than any statement can wait. At most some thousands
 * a call. */
bool db_progress_prune(struct db *db, const struct db_progress_self *self, struct db_progress_place place, int64_t seq,
                       struct err *err) MUST_CHECK;

#endif
