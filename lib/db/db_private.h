/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of lib/db share: statements, binary parameters, results.
 *
 * A statement is a static constant beside its function; the connection
 * prepares it at its first use and knows it by its address:
 *
 *     static const struct db_statement FIND = {
 *         .sql = "SELECT id, key FROM onceward.outbox WHERE event_id = $1",
 *         .columns = { DB_INT8, DB_TEXT },
 *     };
 *     DB_PARAMS(params);
 *     db_params_uuid(&params, event_id);
 *     DB_RESULT(result);
 *     if (!db_exec(db, &FIND, &params, &result, err)) { return false; }
 *     for (int row = 0; row < db_result_rows(result); row++) { … db_get_int8(result, row, 0) … }
 *
 * Everything travels in binary. A result that does not have the columns that
 * its statement declares is a fatal error, so getters only assert.
 */
#ifndef DB_DB_PRIVATE_H
#define DB_DB_PRIVATE_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "db/db.h"
#include "db/db_tx.h"
#include "domain/event.h"

#define DB_COLUMN_COUNT_MAX 32
#define DB_PARAM_COUNT_MAX 40
#define DB_PARAMS_SIZE_MAX ((size_t)256 * 1024 * 1024)
#define DB_STATEMENT_COUNT_MAX 256
#define DB_PIPELINE_COUNT_MAX 32

/* The timeline on which this server writes, 0 in recovery; for statements that must know whom they met. */
#define DB_SQL_TIMELINE                                                                                                \
    "CASE WHEN pg_catalog.pg_is_in_recovery() THEN 0 ELSE ('x' || pg_catalog.substr(pg_catalog.pg_walfile_name("       \
    "pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::int4 END"

/* Three columns by which db_check_server() tells whether this answer comes from the server of the last connect: a
 * pooler can swap servers unseen. */
#define DB_SQL_SERVER "pg_catalog.pg_postmaster_start_time(), " DB_SQL_TIMELINE ", pg_catalog.pg_is_in_recovery()"
#define DB_SERVER_COLUMNS DB_TIMESTAMPTZ, DB_INT4, DB_BOOL

/* Types by their fixed OIDs (pg_type.dat). Columns of other types are cast in SQL, mostly to text. */
enum db_type {
    DB_VOID = 0,
    DB_BOOL = 16,
    DB_BYTEA = 17,
    DB_INT8 = 20,
    DB_INT2 = 21,
    DB_INT4 = 23,
    DB_TEXT = 25,
    DB_JSON = 114,
    DB_FLOAT8 = 701,
    DB_TIMESTAMPTZ = 1184,
    DB_UUID = 2950,
    DB_JSONB = 3802,
    DB_SNAPSHOT = 5038,
    DB_XID8 = 5069,
    DB_XID8_ARRAY = 271,
    DB_BOOL_ARRAY = 1000,
    DB_BYTEA_ARRAY = 1001,
    DB_INT2_ARRAY = 1005,
    DB_INT4_ARRAY = 1007,
    DB_TEXT_ARRAY = 1009,
    DB_INT8_ARRAY = 1016,
    DB_FLOAT8_ARRAY = 1022,
    DB_TIMESTAMPTZ_ARRAY = 1185,
    DB_UUID_ARRAY = 2951,
};

/* One SQL statement. It lives as long as the connection (its address is its name there). Parameter types are
 * those of its first use and must not change. Without columns it is a command that returns no rows. */
struct db_statement {
    const char *sql;
    enum db_type columns[DB_COLUMN_COUNT_MAX];
};

/* ---- Parameters: db_params.c ------------------------------------------------------------------------------ */

struct db_param {
    unsigned type;
    bool is_null;
    bool is_text;         /* Sent as text, type left to the server. */
    const void *borrowed; /* Or NULL: then at offset in the storage. */
    size_t offset;
    size_t size;
};

/* A list of $1 … $n, in order. Text and bytea of the plain form are borrowed until the call; everything else
 * is copied. Mistakes of the input (an embedded NUL, too large) are kept in err and come out of the call. */
struct db_params {
    int count;
    struct db_param items[DB_PARAM_COUNT_MAX];
    unsigned char *storage;
    size_t storage_size;
    size_t storage_capacity;
    enum db_type element_type; /* Of the array that is open, else DB_VOID. */
    int32_t element_count;
    bool has_null_element;
    struct err err;
};

/* A local list that frees itself. */
#define DB_PARAMS(name) struct db_params name __attribute__((cleanup(db_params_done))) = {.count = 0}

void db_params_done(struct db_params *params);
/* Empties the list and keeps its memory, for loops. */
void db_params_clear(struct db_params *params);

/* Each adds the next parameter, or, between array_open and array_close, the array's next element. */
void db_params_null(struct db_params *params, enum db_type type);
void db_params_bool(struct db_params *params, bool value);
void db_params_int2(struct db_params *params, int16_t value);
void db_params_int4(struct db_params *params, int32_t value);
void db_params_int8(struct db_params *params, int64_t value);
void db_params_float8(struct db_params *params, double value);
void db_params_xid8(struct db_params *params, uint64_t value);
/* 16 bytes, NULL for null. */
void db_params_uuid(struct db_params *params, const unsigned char *uuid);
/* Microseconds of Unix time. */
void db_params_timestamptz(struct db_params *params, int64_t unix_us);
/* bytes.data NULL for null. */
void db_params_bytea(struct db_params *params, struct bytes bytes);
/* NULL for null. */
void db_params_text(struct db_params *params, const char *text);
/* Text that may hold anything: an embedded NUL is refused with permanent "text_has_nul". */
void db_params_text_bytes(struct db_params *params, struct bytes text);
/* Text whose type the server infers from its place, as in $1::pg_snapshot or $2::jsonb. Not in arrays. */
void db_params_literal(struct db_params *params, const char *text);
/* An array of element type; the elements follow by the functions above; then array_close. */
void db_params_array_open(struct db_params *params, enum db_type element_type);
void db_params_array_close(struct db_params *params);

/* ---- Calls: db_exec.c --------------------------------------------------------------------------------------- */

struct db_call {
    const struct db_statement *statement;
    const struct db_params *params; /* NULL for none. */
    bool ends_transaction; /* Outside a transaction: what was sent so far is kept, the next call begins anew, seeing it.
                            */
    PGresult *result;      /* Filled when the call as a whole succeeded; the caller clears it. */
    bool has_failed;       /* This is the one that the server refused; what followed was not run. */
};

/* Runs one statement and waits. ret_result may be NULL when no rows are wanted; else the caller clears it.
 * Outside a transaction it is one of its own. */
bool db_exec(struct db *db, const struct db_statement *statement, const struct db_params *params, PGresult **ret_result,
             struct err *err) MUST_CHECK;

/* The same for a statement that returns exactly one row; any other count is fatal. */
bool db_exec_row(struct db *db, const struct db_statement *statement, const struct db_params *params,
                 PGresult **ret_result, struct err *err) MUST_CHECK;

/* Sends all with one flush and one sync, then reads all answers. On false no result is left. Without a
 * transaction around they are one of their own, all or nothing, whose outcome on false is not known; a call that
 * ends_transaction divides them into several, one after another, each of its own (not behind a pooler). */
bool db_exec_all(struct db *db, struct db_call *calls, size_t count, struct err *err) MUST_CHECK;

/* BEGIN and the calls in one flush. On false nothing is open. */
bool db_exec_begin(struct db *db, struct db_call *calls, size_t count, struct db_tx **ret_tx,
                   struct err *err) MUST_CHECK;

/* The calls and COMMIT in one flush: for what need not be looked at before it is kept. Results only when
 * committed. */
enum db_tx_outcome db_exec_commit(struct db_tx **txp, struct db_call *calls, size_t count, struct err *err) MUST_CHECK;

/* BEGIN, the calls, COMMIT: one flush for all. */
enum db_tx_outcome db_exec_tx(struct db *db, struct db_call *calls, size_t count, struct err *err) MUST_CHECK;

/* Takes the open transaction back; a failure breaks the connection, which does the same. */
void db_exec_rollback(struct db *db);

/* Several statements of plain SQL without parameters and rows, as a migration is. */
bool db_exec_script(struct db *db, const char *sql, struct err *err) MUST_CHECK;

/* Clears every result of the calls and nulls it. */
void db_calls_clear(struct db_call *calls, size_t count);

/* ---- Results: db_result.c ----------------------------------------------------------------------------------- */

/* A local result that clears itself. */
#define DB_RESULT(name) PGresult *name __attribute__((cleanup(db_result_clear))) = NULL

void db_result_clear(PGresult **resultp);
int db_result_rows(const PGresult *result);
/* Rows that an INSERT, UPDATE or DELETE touched, or a SELECT returned. */
int64_t db_result_affected(const PGresult *result);

/* Each asserts the column's type and that it is not null. Pointers are borrowed from the result. */
bool db_is_null(const PGresult *result, int row, int column);
bool db_get_bool(const PGresult *result, int row, int column);
int16_t db_get_int2(const PGresult *result, int row, int column);
int32_t db_get_int4(const PGresult *result, int row, int column);
int64_t db_get_int8(const PGresult *result, int row, int column);
double db_get_float8(const PGresult *result, int row, int column);
uint64_t db_get_xid8(const PGresult *result, int row, int column);
int64_t db_get_timestamptz(const PGresult *result, int row, int column);       /* Unix microseconds. */
const unsigned char *db_get_uuid(const PGresult *result, int row, int column); /* 16 bytes. */
const char *db_get_text(const PGresult *result, int row, int column);          /* Terminated. Text and json. */
const char *db_get_text_or_null(const PGresult *result, int row, int column);
struct bytes db_get_bytes(const PGresult *result, int row, int column); /* bytea or text; data NULL for null. */

/* Copies a text, cut to size; "" for null. */
void db_copy_text(const PGresult *result, int row, int column, char *ret_text, size_t size);
/* Zeroed memory for count structs of this size, and one more, so that none is not NULL; the caller's to free. NULL with
 * transient "out_of_memory". */
void *db_rows_new(int count, size_t size, struct err *err) MUST_CHECK;

/* Walks a one-dimensional array. */
struct db_array {
    enum db_type element_type;
    int32_t count;
    int32_t index;
    const unsigned char *cursor;
    const unsigned char *end;
};

struct db_array db_get_array(const PGresult *result, int row, int column, enum db_type element_type);
/* The next element's bytes as they travel (data NULL for null); false at the end. */
bool db_array_next(struct db_array *array, struct bytes *ret_element);
/* One element. */
int64_t db_decode_int8(struct bytes element);

/* The array type of an element type. */
enum db_type db_type_array(enum db_type element_type);

/* ---- Errors: db_error.c ------------------------------------------------------------------------------------- */

/* The kind of a SQLSTATE; NULL or empty is transient. */
enum err_kind db_error_kind(const char *sqlstate);
/* Records what a result, or else the connection, says. Either may be NULL. Returns false. */
bool db_error_set(struct err *err, const PGconn *conn, const PGresult *result);
/* The same for a connection that could not be made. */
bool db_error_set_connect(struct err *err, const PGconn *conn);

/* ---- The handle: db.c --------------------------------------------------------------------------------------- */

struct db_tx {
    struct db *db;
};

struct db {
    PGconn *conn; /* In pipeline mode, but for scripts. NULL or bad: broken. */
    struct db_settings settings;
    char *conninfo;
    char application_name[DB_APPLICATION_NAME_SIZE];
    char where[256];
    bool is_given_up; /* A wait was cut: what the server does is not known. */
    bool saw_warning; /* Since it was last set to false. */
    bool has_tx;
    struct db_tx tx;
    int64_t deadline_ms;
    int64_t stop_seen_ms; /* When stop_fd was first seen readable; 0 before. */
    struct db_server server;
    const struct db_statement *prepared[DB_STATEMENT_COUNT_MAX]; /* Open addressing by address. */
    size_t prepared_count;
};

/* Waits until the socket has what poll's events ask for. False: deadline, stop or error; the connection is
 * given up. */
bool db_wait(struct db *db, short events, int64_t until_ms, struct err *err) MUST_CHECK;
/* The moment at which the wait for an answer that starts now must end. */
int64_t db_wait_until(const struct db *db);

/* False where the answer comes from a server that is in recovery, or from another life of it than at the last connect.
 * column is the first of DB_SQL_SERVER in row 0. */
bool db_check_server(const struct db *db, const PGresult *result, int column, struct err *err) MUST_CHECK;

/* What sets the session: once after the connect, or, behind a pooler, first in each transaction. params borrows
 * from texts. */
struct db_session_texts {
    char texts[3][16];
};
const struct db_statement *db_session_statement(void);
void db_session_params(const struct db *db, struct db_session_texts *texts, struct db_params *params);

#endif
