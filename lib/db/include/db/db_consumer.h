/* SPDX-License-Identifier: Apache-2.0
 *
 * The consumers whose inbox is in this database, for people: which there are,
 * and that one is not to be missed any more.
 */
#ifndef DB_DB_CONSUMER_H
#define DB_DB_CONSUMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "db/db_audit.h"

struct db;

#define DB_CONSUMER_NAME_SIZE 256
#define DB_CONSUMER_COUNT_MAX 1000 /* Rows that a list gives at most. */

struct db_consumer {
    char consumer[DB_CONSUMER_NAME_SIZE];
    bool is_connected; /* A process of it has a session in the database. */
    int64_t partition_count;
    int64_t stopped_count;     /* Of these; each waits for a person. */
    int64_t dead_letter_count; /* That nobody has acknowledged. */
    bool has_moved;
    int64_t moved_at_us; /* When a cursor of it moved last. */
    bool is_retired;
    int64_t retired_at_us;
};

/* All, by name. free() *ret_consumers. */
bool db_consumer_list(struct db *db, struct db_consumer **ret_consumers, size_t *ret_count, struct err *err) MUST_CHECK;

enum db_consumer_retirement {
    DB_CONSUMER_RETIRED,
    DB_CONSUMER_WAS_RETIRED,
    DB_CONSUMER_UNKNOWN,
    DB_CONSUMER_ALIVE, /* A process of it is connected: nothing was done. */
};

/* Takes the consumer out of what is missed: its cursors, its inbox and its dead letters stay, and it comes back by
 * being started. With is_dry nothing is done. *ret_consumer is the row of the list, as it was before, but for
 * DB_CONSUMER_UNKNOWN. */
bool db_consumer_retire(struct db *db, const char *consumer, const struct db_audit *audit, bool is_dry,
                        struct db_consumer *ret_consumer, enum db_consumer_retirement *ret_outcome,
                        struct err *err) MUST_CHECK;

#endif
