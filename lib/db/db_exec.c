/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs statements. Everything goes through one path: a pipeline with one
 * flush and one sync, of one statement or of many, with BEGIN and COMMIT in it
 * where asked, or with more syncs where each ends a transaction. Protects two invariants: an answer that was not read
 * in full makes the connection unusable, and a commit that was not confirmed is never reported as either outcome.
 */
#include <assert.h>
#include <poll.h>
#include <string.h>

#include "base/text.h"
#include "db_private.h"

/* BEGIN, the session's settings, COMMIT beside the caller's. */
#define PIPELINE_EXTRA 3

static const struct db_statement BEGIN = {.sql = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"};
static const struct db_statement COMMIT = {.sql = "COMMIT"};
static const struct db_statement ROLLBACK = {.sql = "ROLLBACK"};

/* One flush: what was sent and where its result goes. */
struct flush {
    struct {
        const struct db_statement *statement;
        const struct db_params *params;
        bool is_prepared_here;
        bool is_synced; /* A sync follows, and something after that. */
        bool has_failed;
        PGresult *result;
    } sent[DB_PIPELINE_COUNT_MAX + PIPELINE_EXTRA];
    size_t count;
    int64_t until_ms;
};

static void flush_done(struct flush *flush)
{
    for (size_t i = 0; i < flush->count; i++) {
        db_result_clear(&flush->sent[i].result);
    }
}

static void flush_add(struct flush *flush, const struct db_statement *statement, const struct db_params *params)
{
    assert(flush->count < DB_PIPELINE_COUNT_MAX + PIPELINE_EXTRA);
    flush->sent[flush->count].statement = statement;
    flush->sent[flush->count].params = params;
    flush->count++;
}

static void flush_add_calls(struct flush *flush, const struct db_call *calls, size_t count)
{
    assert(count <= DB_PIPELINE_COUNT_MAX);
    for (size_t i = 0; i < count; i++) {
        flush_add(flush, calls[i].statement, calls[i].params);
        flush->sent[flush->count - 1].is_synced = calls[i].ends_transaction && i + 1 < count;
    }
}

/* ---- Prepared statements ------------------------------------------------------------------------------------ */

/* The statement's slot: where it is, or where it would go. */
static size_t prepared_slot(const struct db *db, const struct db_statement *statement)
{
    size_t slot = ((uintptr_t)statement / sizeof(void *)) * 2654435761U % DB_STATEMENT_COUNT_MAX;
    while (db->prepared[slot] != NULL && db->prepared[slot] != statement) {
        slot = (slot + 1) % DB_STATEMENT_COUNT_MAX;
    }
    return slot;
}

static void prepared_name(const struct db_statement *statement, char *ret_name, size_t size)
{
    const bool fits = text_format(ret_name, size, "onceward_%llx", (unsigned long long)(uintptr_t)statement);
    assert(fits);
}

static void prepared_add(struct db *db, const struct db_statement *statement)
{
    assert(db->prepared_count < DB_STATEMENT_COUNT_MAX / 2);
    size_t slot = prepared_slot(db, statement);
    if (db->prepared[slot] == NULL) {
        db->prepared[slot] = statement;
        db->prepared_count++;
    }
}

/* ---- Sending ------------------------------------------------------------------------------------------------ */

/* libpq's form of a parameter list. */
struct pq_params {
    Oid types[DB_PARAM_COUNT_MAX];
    const char *values[DB_PARAM_COUNT_MAX];
    int lengths[DB_PARAM_COUNT_MAX];
    int formats[DB_PARAM_COUNT_MAX];
};

static int pq_params_fill(struct pq_params *pq, const struct db_params *params)
{
    if (params == NULL) {
        return 0;
    }
    assert(params->element_type == DB_VOID);
    for (int i = 0; i < params->count; i++) {
        const struct db_param *item = &params->items[i];
        pq->types[i] = item->type;
        pq->formats[i] = item->is_text ? 0 : 1;
        pq->lengths[i] = (int)item->size;
        if (item->is_null) {
            pq->values[i] = NULL;
        } else {
            pq->values[i] = item->borrowed != NULL ? item->borrowed : (const char *)params->storage + item->offset;
        }
    }
    return params->count;
}

/* Whether the server knows the statement, or will once it has read what this flush sent before index. */
static bool is_prepared(const struct db *db, const struct flush *flush, size_t index)
{
    const struct db_statement *statement = flush->sent[index].statement;
    for (size_t i = 0; i < index; i++) {
        if (flush->sent[i].statement == statement) {
            return true;
        }
    }
    return db->prepared[prepared_slot(db, statement)] != NULL;
}

static bool send_statement(struct db *db, struct flush *flush, size_t index, struct err *err)
{
    const struct db_statement *statement = flush->sent[index].statement;
    struct pq_params pq;
    int count = pq_params_fill(&pq, flush->sent[index].params);
    int ok;
    if (db->settings.is_pooled) {
        ok = PQsendQueryParams(db->conn, statement->sql, count, pq.types, pq.values, pq.lengths, pq.formats, 1);
    } else {
        char name[48];
        prepared_name(statement, name, sizeof name);
        ok = 1;
        if (!is_prepared(db, flush, index)) {
            flush->sent[index].is_prepared_here = true;
            ok = PQsendPrepare(db->conn, name, statement->sql, count, pq.types);
        }
        ok = ok && PQsendQueryPrepared(db->conn, name, count, pq.values, pq.lengths, pq.formats, 1);
    }
    if (!ok) {
        db->is_given_up = true;
        return db_error_set(err, db->conn, NULL);
    }
    return true;
}

static bool send_sync(struct db *db, struct err *err)
{
    if (PQpipelineSync(db->conn) != 1) {
        db->is_given_up = true;
        return db_error_set(err, db->conn, NULL);
    }
    return true;
}

static bool send_all(struct db *db, struct flush *flush, struct err *err)
{
    for (size_t i = 0; i < flush->count; i++) {
        if (!send_statement(db, flush, i, err) || (flush->sent[i].is_synced && !send_sync(db, err))) {
            return false;
        }
    }
    return send_sync(db, err);
}

/* ---- Receiving ---------------------------------------------------------------------------------------------- */

static bool lost(struct db *db, struct err *err)
{
    db->is_given_up = true;
    return db_error_set(err, db->conn, NULL);
}

/* The next result or NULL, sending meanwhile what is still queued: both sides can block on full buffers. */
static bool next_result(struct db *db, int64_t until_ms, PGresult **ret_result, struct err *err)
{
    for (;;) {
        int flush = PQflush(db->conn);
        if (flush < 0) {
            return lost(db, err);
        }
        if (!PQisBusy(db->conn)) {
            *ret_result = PQgetResult(db->conn);
            return true;
        }
        short events = (short)(flush > 0 ? POLLIN | POLLOUT : POLLIN);
        if (!db_wait(db, events, until_ms, err)) {
            return false;
        }
        if (PQconsumeInput(db->conn) != 1) {
            return lost(db, err);
        }
    }
}

static bool check_result(const struct db_statement *statement, const PGresult *result, struct err *err)
{
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        return db_error_set(err, NULL, result);
    }
    int columns = 0;
    while (columns < DB_COLUMN_COUNT_MAX && statement->columns[columns] != DB_VOID) {
        columns++;
    }
    if (columns != PQnfields(result)) {
        return err_set(err, ERR_FATAL, "unexpected_shape", "%d columns where %d were expected: %.80s",
                       PQnfields(result), columns, statement->sql);
    }
    for (int i = 0; i < columns; i++) {
        if (PQftype(result, i) != (Oid)statement->columns[i]) {
            return err_set(err, ERR_FATAL, "unexpected_shape", "column %s has type %u where %d was expected: %.80s",
                           PQfname(result, i), PQftype(result, i), (int)statement->columns[i], statement->sql);
        }
    }
    return true;
}

/* An error that no server wrote: libpq had no memory for the answer. What the server did, and which statements it has
 * prepared, is then not known here, so the connection is of no more use. */
static bool is_own_error(const PGresult *result)
{
    return PQresultStatus(result) == PGRES_FATAL_ERROR && PQresultErrorField(result, PG_DIAG_SQLSTATE) == NULL;
}

/* Reads one command's result and the NULL after it. False only when the connection is lost; what the server says
 * of the command goes to err, first error first. */
static bool receive_one(struct db *db, const struct flush *flush, const struct db_statement *shape,
                        PGresult **ret_result, struct err *err)
{
    DB_RESULT(result);
    if (!next_result(db, flush->until_ms, &result, err)) {
        return false;
    }
    if (result == NULL) {
        return lost(db, err);
    }
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_PIPELINE_ABORTED) {
        assert(err->kind != ERR_NONE);
    } else if (shape != NULL) {
        (void)check_result(shape, result, err);
    } else if (status != PGRES_COMMAND_OK) {
        (void)db_error_set(err, NULL, result);
    }
    if (PQstatus(db->conn) != CONNECTION_OK || is_own_error(result)) {
        return lost(db, err);
    }
    DB_RESULT(end);
    if (!next_result(db, flush->until_ms, &end, err)) {
        return false;
    }
    if (end != NULL) {
        return lost(db, err);
    }
    *ret_result = result;
    result = NULL;
    return true;
}

static bool receive_sync(struct db *db, const struct flush *flush, struct err *err)
{
    DB_RESULT(sync);
    if (!next_result(db, flush->until_ms, &sync, err)) {
        return false;
    }
    return PQresultStatus(sync) == PGRES_PIPELINE_SYNC || lost(db, err);
}

/* The answers to one statement. */
static bool receive_sent(struct db *db, struct flush *flush, size_t index, struct err *err)
{
    bool was_good = err->kind == ERR_NONE;
    if (flush->sent[index].is_prepared_here) {
        DB_RESULT(prepared);
        if (!receive_one(db, flush, NULL, &prepared, err)) {
            return false;
        }
        if (PQresultStatus(prepared) == PGRES_COMMAND_OK) {
            prepared_add(db, flush->sent[index].statement);
        }
    }
    if (!receive_one(db, flush, flush->sent[index].statement, &flush->sent[index].result, err)) {
        return false;
    }
    flush->sent[index].has_failed = was_good && err->kind != ERR_NONE;
    return true;
}

static bool receive_all(struct db *db, struct flush *flush, struct err *err)
{
    for (size_t i = 0; i < flush->count; i++) {
        if (!receive_sent(db, flush, i, err) || (flush->sent[i].is_synced && !receive_sync(db, flush, err))) {
            return false;
        }
    }
    return receive_sync(db, flush, err) && err->kind == ERR_NONE;
}

static bool run(struct db *db, struct flush *flush, struct err *err)
{
    assert(err->kind == ERR_NONE);
    if (!db_is_usable(db)) {
        return err_set(err, ERR_TRANSIENT, "connection_lost", "the connection to the database is lost");
    }
    for (size_t i = 0; i < flush->count; i++) {
        const struct db_params *params = flush->sent[i].params;
        if (params != NULL && params->err.kind != ERR_NONE) {
            *err = params->err;
            return false;
        }
    }
    flush->until_ms = db_wait_until(db);
    return send_all(db, flush, err) && receive_all(db, flush, err);
}

/* Hands the results from the flush's first onwards over to the calls. */
static void hand_over(struct flush *flush, size_t first, struct db_call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        calls[i].result = flush->sent[first + i].result;
        flush->sent[first + i].result = NULL;
    }
}

/* Says which of the calls it was that failed. */
static void tell_failed(const struct flush *flush, size_t first, struct db_call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        calls[i].has_failed = flush->sent[first + i].has_failed;
    }
}

/* ---- Public ------------------------------------------------------------------------------------------------- */

#define FLUSH(name) struct flush name __attribute__((cleanup(flush_done))) = {.count = 0}

/* Starts a flush with BEGIN (if asked) and, behind a pooler, with the settings of the session. */
static void flush_begin(struct db *db, struct flush *flush, bool with_begin, struct db_session_texts *texts,
                        struct db_params *params)
{
    if (with_begin) {
        flush_add(flush, &BEGIN, NULL);
    }
    if (db->settings.is_pooled && !db->has_tx) {
        db_session_params(db, texts, params);
        flush_add(flush, db_session_statement(), params);
    }
}

static bool run_calls(struct db *db, bool with_begin, struct db_call *calls, size_t count, struct err *err)
{
    FLUSH(flush);
    DB_PARAMS(params);
    struct db_session_texts texts;
    flush_begin(db, &flush, with_begin, &texts, &params);
    size_t first = flush.count;
    flush_add_calls(&flush, calls, count);
    bool is_good = run(db, &flush, err);
    tell_failed(&flush, first, calls, count);
    if (!is_good) {
        return false;
    }
    hand_over(&flush, first, calls, count);
    return true;
}

bool db_exec_all(struct db *db, struct db_call *calls, size_t count, struct err *err)
{
    return run_calls(db, false, calls, count, err);
}

bool db_exec(struct db *db, const struct db_statement *statement, const struct db_params *params, PGresult **ret_result,
             struct err *err)
{
    struct db_call call = {.statement = statement, .params = params};
    if (!db_exec_all(db, &call, 1, err)) {
        return false;
    }
    if (ret_result == NULL) {
        db_result_clear(&call.result);
    } else {
        *ret_result = call.result;
    }
    return true;
}

bool db_exec_row(struct db *db, const struct db_statement *statement, const struct db_params *params,
                 PGresult **ret_result, struct err *err)
{
    DB_RESULT(result);
    if (!db_exec(db, statement, params, &result, err)) {
        return false;
    }
    if (PQntuples(result) != 1) {
        return err_set(err, ERR_FATAL, "unexpected_shape", "%d rows where one was expected: %.80s", PQntuples(result),
                       statement->sql);
    }
    *ret_result = result;
    result = NULL;
    return true;
}

/* Takes back what may be open after a failure. */
static void roll_back(struct db *db)
{
    if (db_is_usable(db)) {
        FLUSH(flush);
        flush_add(&flush, &ROLLBACK, NULL);
        struct err ignored = ERR_INIT;
        if (!run(db, &flush, &ignored)) {
            db->is_given_up = true;
        }
    }
    db->has_tx = false;
}

void db_exec_rollback(struct db *db)
{
    assert(db->has_tx);
    roll_back(db);
}

bool db_exec_begin(struct db *db, struct db_call *calls, size_t count, struct db_tx **ret_tx, struct err *err)
{
    assert(!db->has_tx);
    if (!run_calls(db, true, calls, count, err)) {
        roll_back(db);
        return false;
    }
    db->has_tx = true;
    db->tx.db = db;
    *ret_tx = &db->tx;
    return true;
}

/* What the flush that ends in COMMIT came to. */
static enum db_tx_outcome commit_outcome(struct db *db, const struct flush *flush, bool was_sent, struct err *err)
{
    PGresult *commit = flush->sent[flush->count - 1].result;
    if (err->kind == ERR_NONE && strcmp(PQcmdStatus(commit), "COMMIT") != 0) {
        (void)err_set(err, ERR_FATAL, "commit_of_failed_transaction",
                      "a failed transaction was committed: rolled back");
        return DB_TX_FAILED;
    }
    if (err->kind == ERR_NONE && db->saw_warning) {
        /* The wait for a synchronous standby was cancelled: locally durable, not where we promised. */
        (void)err_set(err, ERR_TRANSIENT, "commit_with_warning",
                      "COMMIT came with a warning, its outcome is not known");
        return DB_TX_UNKNOWN;
    }
    if (err->kind == ERR_NONE) {
        return DB_TX_COMMITTED;
    }
    if (was_sent && !db_is_usable(db)) {
        struct err first = *err;
        err_clear(err);
        (void)err_set(err, ERR_TRANSIENT, "commit_unknown", "connection lost at COMMIT: %.400s", first.text);
        return DB_TX_UNKNOWN;
    }
    return DB_TX_FAILED;
}

/* Runs a flush that ends in COMMIT, then leaves no transaction open. */
static enum db_tx_outcome run_commit(struct db *db, struct flush *flush, struct err *err)
{
    flush_add(flush, &COMMIT, NULL);
    bool was_usable = db_is_usable(db);
    db->saw_warning = false;
    (void)run(db, flush, err);
    enum db_tx_outcome outcome = commit_outcome(db, flush, was_usable, err);
    if (outcome == DB_TX_FAILED) {
        roll_back(db);
    }
    db->has_tx = false;
    return outcome;
}

enum db_tx_outcome db_exec_commit(struct db_tx **txp, struct db_call *calls, size_t count, struct err *err)
{
    assert(txp != NULL && *txp != NULL && (*txp)->db->has_tx);
    struct db *db = (*txp)->db;
    *txp = NULL;
    FLUSH(flush);
    flush_add_calls(&flush, calls, count);
    enum db_tx_outcome outcome = run_commit(db, &flush, err);
    tell_failed(&flush, 0, calls, count);
    if (outcome == DB_TX_COMMITTED) {
        hand_over(&flush, 0, calls, count);
    }
    return outcome;
}

enum db_tx_outcome db_exec_tx(struct db *db, struct db_call *calls, size_t count, struct err *err)
{
    assert(!db->has_tx);
    FLUSH(flush);
    DB_PARAMS(params);
    struct db_session_texts texts;
    flush_begin(db, &flush, true, &texts, &params);
    size_t first = flush.count;
    flush_add_calls(&flush, calls, count);
    enum db_tx_outcome outcome = run_commit(db, &flush, err);
    if (outcome == DB_TX_COMMITTED) {
        hand_over(&flush, first, calls, count);
    }
    return outcome;
}

void db_calls_clear(struct db_call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        db_result_clear(&calls[i].result);
    }
}

/* ---- Scripts ------------------------------------------------------------------------------------------------ */

/* Reads to the end whatever comes; the first failure stays in err. */
static bool receive_script(struct db *db, int64_t until_ms, struct err *err)
{
    for (;;) {
        DB_RESULT(result);
        if (!next_result(db, until_ms, &result, err)) {
            return false;
        }
        if (result == NULL) {
            return err->kind == ERR_NONE;
        }
        ExecStatusType status = PQresultStatus(result);
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_EMPTY_QUERY) {
            (void)db_error_set(err, NULL, result);
        }
    }
}

bool db_exec_script(struct db *db, const char *sql, struct err *err)
{
    if (!db_is_usable(db)) {
        return err_set(err, ERR_TRANSIENT, "connection_lost", "the connection to the database is lost");
    }
    if (PQexitPipelineMode(db->conn) != 1 || PQsendQuery(db->conn, sql) != 1) {
        return lost(db, err);
    }
    bool ok = receive_script(db, db_wait_until(db), err);
    if (db_is_usable(db) && PQenterPipelineMode(db->conn) != 1) {
        return lost(db, err);
    }
    return ok;
}
