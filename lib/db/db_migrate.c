/* SPDX-License-Identifier: Apache-2.0
 *
 * Applies migrations and compares versions. Protects the invariant that a
 * migration and the row that remembers it commit together, once, in order of
 * version: each transaction takes one advisory lock first (a transaction's, so
 * that a pooler cannot lose it) and only then looks what is to be done.
 */
#include "db/db_migrate.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "db_migrations.h"
#include "db_private.h"

int db_migrate_version(void)
{
    return db_migrations_count;
}

/* ---- What the database has ---------------------------------------------------------------------------------- */

static const struct db_statement FIND_TABLE = {
    .sql = "SELECT pg_catalog.to_regclass('onceward.schema_migrations') IS NOT NULL",
    .columns = {DB_BOOL},
};

static bool find_table(struct db *db, bool *ret_exists, struct err *err)
{
    DB_RESULT(result);
    if (!db_exec_row(db, &FIND_TABLE, NULL, &result, err)) {
        return false;
    }
    *ret_exists = db_get_bool(result, 0, 0);
    return true;
}

/* Both lists side by side; ours come with their bytes, so that the server makes the checksums of both. */
static const struct db_statement COMPARE = {
    .sql =
        "SELECT coalesce(theirs.version, ours.version), coalesce(theirs.name, ours.name), theirs.version IS NOT NULL,"
        " ours.version IS NOT NULL, coalesce(theirs.checksum = pg_catalog.sha256(ours.sql), false), theirs.applied_at"
        " FROM onceward.schema_migrations theirs"
        " FULL JOIN unnest($1::int4[], $2::text[], $3::bytea[]) AS ours (version, name, sql)"
        " ON ours.version = theirs.version ORDER BY 1 LIMIT 1000",
    .columns = {DB_INT4, DB_TEXT, DB_BOOL, DB_BOOL, DB_BOOL, DB_TIMESTAMPTZ},
};

static void bind_ours(struct db_params *params)
{
    db_params_array_open(params, DB_INT4);
    for (int i = 0; i < db_migrations_count; i++) {
        db_params_int4(params, db_migrations[i].version);
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_TEXT);
    for (int i = 0; i < db_migrations_count; i++) {
        db_params_text(params, db_migrations[i].name);
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_BYTEA);
    for (int i = 0; i < db_migrations_count; i++) {
        db_params_bytea(params, (struct bytes){.data = db_migrations[i].sql, .size = db_migrations[i].size});
    }
    db_params_array_close(params);
}

static struct db_migrate_row row_of(const PGresult *result, int index)
{
    bool is_theirs = db_get_bool(result, index, 2);
    bool is_ours = db_get_bool(result, index, 3);
    bool is_equal = db_get_bool(result, index, 4);
    struct db_migrate_row row = {
        .version = db_get_int4(result, index, 0),
        .applied_at_us = is_theirs ? db_get_timestamptz(result, index, 5) : 0,
    };
    if (!is_ours) {
        row.state = DB_MIGRATE_FOREIGN;
    } else if (!is_theirs) {
        row.state = DB_MIGRATE_PENDING;
    } else {
        row.state = is_equal ? DB_MIGRATE_APPLIED : DB_MIGRATE_CHANGED;
    }
    (void)text_copy(row.name, sizeof row.name, db_get_text(result, index, 1));
    return row;
}

static struct db_migrate_row pending_row(int index)
{
    struct db_migrate_row row = {.version = db_migrations[index].version, .state = DB_MIGRATE_PENDING};
    (void)text_copy(row.name, sizeof row.name, db_migrations[index].name);
    return row;
}

bool db_migrate_list(struct db *db, struct db_migrate_row **ret_rows, size_t *ret_count, struct err *err)
{
    assert(db_migrations_count > 0 && db_migrations_count <= DB_MIGRATE_COUNT_MAX);
    bool has_table = false;
    if (!find_table(db, &has_table, err)) {
        return false;
    }
    DB_RESULT(result);
    if (has_table) {
        DB_PARAMS(params);
        bind_ours(&params);
        if (!db_exec(db, &COMPARE, &params, &result, err)) {
            return false;
        }
    }
    int count = has_table ? db_result_rows(result) : db_migrations_count;
    struct db_migrate_row *rows = db_rows_new(count, sizeof *rows, err);
    if (rows == NULL) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        rows[i] = has_table ? row_of(result, i) : pending_row(i);
    }
    *ret_rows = rows;
    *ret_count = (size_t)count;
    return true;
}

/* ---- Applying ----------------------------------------------------------------------------------------------- */

/* The first pending version, 0 for none; an error where the database is not ours to change. */
static bool choose(const struct db_migrate_row *rows, size_t count, int *ret_version, struct err *err)
{
    int version = 0;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].state == DB_MIGRATE_CHANGED) {
            return err_set(err, ERR_PERMANENT, "migration_changed",
                           "migration %d (%s) was applied to this database with other contents", rows[i].version,
                           rows[i].name);
        }
        if (rows[i].state == DB_MIGRATE_FOREIGN) {
            return err_set(err, ERR_PERMANENT, "schema_newer",
                           "the database has migration %d (%s), this program knows up to %d: use the newer program",
                           rows[i].version, rows[i].name, db_migrations_count);
        }
        if (rows[i].state == DB_MIGRATE_PENDING && version == 0) {
            version = rows[i].version;
        }
    }
    *ret_version = version;
    return true;
}

/* One key for every program of every version: the first bytes of the word "onceward". */
static const struct db_statement LOCK = {
    .sql = "SELECT true FROM pg_catalog.pg_advisory_xact_lock(x'6f6e636577617264'::int8)",
    .columns = {DB_BOOL},
};

static const struct db_statement REMEMBER = {
    .sql = "INSERT INTO onceward.schema_migrations (version, name, checksum)"
           " VALUES ($1, $2, pg_catalog.sha256($3))",
};

static bool remember(struct db *db, const struct db_migration *migration, struct err *err)
{
    DB_PARAMS(params);
    db_params_int4(&params, migration->version);
    db_params_text(&params, migration->name);
    db_params_bytea(&params, (struct bytes){.data = migration->sql, .size = migration->size});
    return db_exec(db, &REMEMBER, &params, NULL, err);
}

static bool apply(struct db *db, int *ret_version, struct err *err)
{
    struct db_migrate_row *rows = NULL;
    size_t count = 0;
    if (!db_exec(db, &LOCK, NULL, NULL, err) || !db_migrate_list(db, &rows, &count, err)) {
        return false;
    }
    int version = 0;
    bool ok = choose(rows, count, &version, err);
    free(rows);
    if (!ok) {
        return false;
    }
    *ret_version = version;
    if (version == 0) {
        return true;
    }
    const struct db_migration *migration = &db_migrations[version - 1];
    assert(migration->version == version);
    if (!db_exec_script(db, migration->sql, err) || !remember(db, migration, err)) {
        return err_prefix(err, "migration %d (%s)", migration->version, migration->name);
    }
    return true;
}

bool db_migrate_step(struct db *db, int *ret_version, struct err *err)
{
    DB_TX_AUTO struct db_tx *tx = NULL;
    int version = 0;
    if (!db_tx_begin(db, &tx, err) || !apply(db, &version, err)) {
        return false;
    }
    if (db_tx_commit(&tx, err) != DB_TX_COMMITTED) {
        return err_prefix(err, "migration %d", version);
    }
    *ret_version = version;
    return true;
}

/* ---- Checking ----------------------------------------------------------------------------------------------- */

static const struct db_statement READ_VERSION = {
    .sql = "SELECT coalesce(max(version), 0) FROM onceward.schema_migrations",
    .columns = {DB_INT4},
};

/* A missing table or schema, or one that this role may not see, is a database without our schema. */
static bool is_missing(const struct err *err)
{
    return text_is_equal(err->code, "42P01") || text_is_equal(err->code, "3F000") || text_is_equal(err->code, "42501");
}

bool db_migrate_check_version(struct db *db, struct err *err)
{
    DB_RESULT(result);
    struct err failure = ERR_INIT;
    if (!db_exec_row(db, &READ_VERSION, NULL, &result, &failure)) {
        if (is_missing(&failure)) {
            return err_set(err, ERR_FATAL, "schema_missing",
                           "the database has no schema of Onceward that this role can use (%s): run `onceward migrate`",
                           failure.text);
        }
        *err = failure;
        return false;
    }
    int version = db_get_int4(result, 0, 0);
    if (version < db_migrations_count) {
        return err_set(err, ERR_FATAL, "schema_older",
                       "the database's schema has version %d, this program needs %d: run `onceward migrate`", version,
                       db_migrations_count);
    }
    if (version > db_migrations_count) {
        return err_set(err, ERR_FATAL, "schema_newer",
                       "the database's schema has version %d, this program knows up to %d: use the newer program",
                       version, db_migrations_count);
    }
    return true;
}
