/* SPDX-License-Identifier: Apache-2.0
 *
 * The schema's versions. The migrations are inside the program; the database
 * remembers which were applied, and with which bytes. Only `onceward migrate`
 * changes anything; the services only check.
 */
#ifndef DB_DB_MIGRATE_H
#define DB_DB_MIGRATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct db;

#define DB_MIGRATE_COUNT_MAX 1000

enum db_migrate_state {
    DB_MIGRATE_PENDING, /* Known here, not applied there. */
    DB_MIGRATE_APPLIED, /* With the same bytes. */
    DB_MIGRATE_CHANGED, /* Applied there with other bytes. */
    DB_MIGRATE_FOREIGN, /* Applied there, not known here: by a newer program. */
};

struct db_migrate_row {
    int version;
    char name[64];
    enum db_migrate_state state;
    int64_t applied_at_us; /* Unix time; 0 while pending. */
};

/* The version that this program is written for. */
int db_migrate_version(void);

/* Every migration that either side knows, by version, into at most DB_MIGRATE_COUNT_MAX rows. Changes nothing.
 * free() *ret_rows. */
bool db_migrate_list(struct db *db, struct db_migrate_row **ret_rows, size_t *ret_count, struct err *err) MUST_CHECK;

/* Applies the first pending migration in a transaction of its own, which it shares with its row in
 * onceward.schema_migrations; rivals wait, and find it done. *ret_version is 0 when there is nothing (more) to do.
 * Permanent "migration_changed" or "schema_newer" when the database is not one of ours to change. Blocks as long as
 * the migration takes: open db with timeouts of that order. */
bool db_migrate_step(struct db *db, int *ret_version, struct err *err) MUST_CHECK;

/* For the services: fatal "schema_missing", "schema_older" or "schema_newer" unless the
 * database has exactly the version this program is written for. */
bool db_migrate_check_version(struct db *db, struct err *err) MUST_CHECK;

#endif
