/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a connection, sets its session up and checks what it met. Protects the
 * invariant that no statement runs on a session that would commit without
 * waiting for the disk, or on a database that is not UTF-8.
 */
#include "db/db.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "db_private.h"

#define SERVER_VERSION_MIN 140000
#define CONNECT_TIMEOUT_MS 5000
#define LOCK_TIMEOUT_MS 2000
#define STATEMENT_TIMEOUT_MS 5000
#define IDLE_IN_TRANSACTION_TIMEOUT_MS 5000
#define ANSWER_TIMEOUT_MS 8000
#define STOP_GRACE_MS 5000

/* ---- Waiting ------------------------------------------------------------------------------------------------ */

static int64_t earlier(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

int64_t db_wait_until(const struct db *db)
{
    int64_t until = clock_monotonic_ms() + db->settings.answer_timeout_ms;
    return db->deadline_ms > 0 ? earlier(until, db->deadline_ms) : until;
}

static bool give_up(struct db *db, struct err *err, const char *code, const char *text)
{
    db->is_given_up = true;
    return err_set(err, ERR_TRANSIENT, code, "%s", text);
}

bool db_wait(struct db *db, short events, int64_t until_ms, struct err *err)
{
    for (;;) {
        int64_t now = clock_monotonic_ms();
        int64_t until = until_ms;
        if (db->stop_seen_ms > 0) {
            until = earlier(until, db->stop_seen_ms + db->settings.stop_grace_ms);
        }
        if (now >= until) {
            return db->stop_seen_ms > 0 ? give_up(db, err, "stopped", "stopped while waiting for the database")
                                        : give_up(db, err, "no_answer", "no answer from the database in time");
        }
        struct pollfd fds[2] = {
            {.fd = PQsocket(db->conn), .events = events},
            {.fd = db->stop_seen_ms > 0 ? -1 : db->settings.stop_fd, .events = POLLIN},
        };
        int ready = poll(fds, 2, (int)(until - now));
        if (ready < 0 && errno != EINTR) {
            return give_up(db, err, "poll_failed", strerror(errno));
        }
        if (ready > 0 && fds[1].revents != 0) {
            db->stop_seen_ms = clock_monotonic_ms();
        }
        if (ready > 0 && fds[0].revents != 0) {
            return true;
        }
    }
}

/* ---- Session ------------------------------------------------------------------------------------------------ */

static const struct db_statement READ_SERVER = {
    .sql = "SELECT (SELECT system_identifier::text FROM pg_catalog.pg_control_system()),"
           " pg_catalog.pg_postmaster_start_time(), " DB_SQL_TIMELINE ","
           " current_setting('server_version_num')::int4, pg_catalog.pg_is_in_recovery(),"
           " current_setting('server_encoding'), current_setting('client_encoding'),"
           " current_setting('synchronous_commit')",
    .columns = {DB_TEXT, DB_TIMESTAMPTZ, DB_INT4, DB_INT4, DB_BOOL, DB_TEXT, DB_TEXT, DB_TEXT},
};

static struct db_server server_of(const PGresult *result)
{
    struct db_server server = {
        .postmaster_start_us = db_get_timestamptz(result, 0, 1),
        .timeline = db_get_int4(result, 0, 2),
        .version = db_get_int4(result, 0, 3),
        .is_in_recovery = db_get_bool(result, 0, 4),
    };
    (void)text_copy(server.system_identifier, sizeof server.system_identifier, db_get_text(result, 0, 0));
    return server;
}

static bool check_session(const struct db *db, const PGresult *result, struct err *err)
{
    const char *server_encoding = db_get_text(result, 0, 5);
    const char *client_encoding = db_get_text(result, 0, 6);
    const char *synchronous_commit = db_get_text(result, 0, 7);
    if (db->server.version < SERVER_VERSION_MIN) {
        return err_set(err, ERR_FATAL, "server_too_old", "Postgres %d is too old, at least %d is needed",
                       db->server.version / 10000, SERVER_VERSION_MIN / 10000);
    }
    if (strcmp(server_encoding, "UTF8") != 0 || strcmp(client_encoding, "UTF8") != 0) {
        return err_set(err, ERR_FATAL, "encoding_not_utf8",
                       "the database's encoding is %s, the client's %s: both must be UTF8", server_encoding,
                       client_encoding);
    }
    if (strcmp(synchronous_commit, "on") != 0 && strcmp(synchronous_commit, "remote_apply") != 0) {
        return err_set(err, ERR_FATAL, "commits_not_durable", "synchronous_commit is %s and cannot be set to on",
                       synchronous_commit);
    }
    if (db->settings.needs_primary && db->server.is_in_recovery) {
        return err_set(err, ERR_TRANSIENT, "in_recovery", "the server is a standby");
    }
    return true;
}

bool db_server_read(struct db *db, struct db_server *ret_server, struct err *err)
{
    DB_RESULT(result);
    if (!db_exec_row(db, &READ_SERVER, NULL, &result, err)) {
        return false;
    }
    *ret_server = server_of(result);
    return true;
}

bool db_server_equals(const struct db_server *one, const struct db_server *other)
{
    return text_is_equal(one->system_identifier, other->system_identifier) &&
           one->postmaster_start_us == other->postmaster_start_us && one->timeline == other->timeline;
}

/* In recovery the list of running transactions is empty, and a snapshot would lose rows. */
bool db_check_server(const struct db *db, const PGresult *result, int column, struct err *err)
{
    if (db_get_bool(result, 0, column + 2)) {
        return err_set(err, ERR_TRANSIENT, "not_primary", "%s is in recovery", db_where(db));
    }
    if (db_get_timestamptz(result, 0, column) != db->server.postmaster_start_us ||
        db_get_int4(result, 0, column + 1) != db->server.timeline) {
        return err_set(err, ERR_TRANSIENT, "server_changed", "%s is another server than before", db_where(db));
    }
    return true;
}

static const struct db_statement SET_SESSION = {
    .sql = "SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')"
           " WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, $1), set_config('lock_timeout', $2, $1),"
           " set_config('statement_timeout', $3, $1), set_config('idle_in_transaction_session_timeout', $4, $1),"
           " set_config('default_transaction_isolation', 'read committed', $1), set_config('jit', 'off', $1),"
           " set_config('TimeZone', 'UTC', $1),"
           " set_config('plan_cache_mode', CASE WHEN $5 THEN 'force_generic_plan' ELSE 'auto' END, $1)",
    .columns = {DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT},
};

const struct db_statement *db_session_statement(void)
{
    return &SET_SESSION;
}

void db_session_params(const struct db *db, struct db_session_texts *texts, struct db_params *params)
{
    const int values[] = {db->settings.lock_timeout_ms, db->settings.statement_timeout_ms,
                          db->settings.idle_in_transaction_timeout_ms};
    db_params_bool(params, db->settings.is_pooled);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        const bool fits = text_format(texts->texts[i], sizeof texts->texts[i], "%dms", values[i]);
        assert(fits);
        db_params_text(params, texts->texts[i]);
    }
    db_params_bool(params, db->settings.plans_once);
}

/* Sets the session and reads what came of it, in one flush. A pooled session is set anew in each transaction, by
 * db_exec.c, and so in this one. */
static bool set_up_session(struct db *db, struct err *err)
{
    DB_PARAMS(params);
    struct db_session_texts texts;
    db_session_params(db, &texts, &params);
    struct db_call calls[] = {{.statement = &SET_SESSION, .params = &params}, {.statement = &READ_SERVER}};
    size_t first = db->settings.is_pooled ? 1 : 0;
    if (!db_exec_all(db, calls + first, 2 - first, err)) {
        return false;
    }
    db->server = server_of(calls[1].result);
    bool ok = check_session(db, calls[1].result, err);
    db_calls_clear(calls, 2);
    return ok;
}

/* ---- Connecting --------------------------------------------------------------------------------------------- */

/* Warnings matter at COMMIT: a cancelled wait for a standby is only a warning (01000). */
static void receive_notice(void *arg, const PGresult *result)
{
    struct db *db = arg;
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity != NULL && strcmp(severity, "WARNING") == 0) {
        db->saw_warning = true;
    }
}

/* Later keywords override earlier ones: first our defaults, then the user's conninfo, then what must be. */
static PGconn *connect_start(const struct db *db)
{
    const char *keywords[] = {
        "fallback_application_name",
        "keepalives_idle",
        "keepalives_interval",
        "keepalives_count",
        "tcp_user_timeout",
        "dbname",
        "client_encoding",
        db->settings.needs_primary ? "target_session_attrs" : NULL,
        NULL,
    };
    const char *values[] = {
        db->application_name, "10", "3", "3", "30000", db->conninfo, "UTF8", "read-write", NULL,
    };
    return PQconnectStartParams(keywords, values, 1);
}

static bool connect_finish(struct db *db, struct err *err)
{
    int64_t until = clock_monotonic_ms() + db->settings.connect_timeout_ms;
    until = db->deadline_ms > 0 ? earlier(until, db->deadline_ms) : until;
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    while (PQstatus(db->conn) != CONNECTION_BAD && next != PGRES_POLLING_OK && next != PGRES_POLLING_FAILED) {
        if (!db_wait(db, next == PGRES_POLLING_READING ? POLLIN : POLLOUT, until, err)) {
            return err_prefix(err, "connect");
        }
        next = PQconnectPoll(db->conn);
    }
    if (PQstatus(db->conn) != CONNECTION_OK) {
        return db_error_set_connect(err, db->conn);
    }
    PQsetNoticeReceiver(db->conn, receive_notice, db);
    if (PQsetnonblocking(db->conn, 1) != 0 || PQenterPipelineMode(db->conn) != 1) {
        return db_error_set(err, db->conn, NULL);
    }
    return true;
}

static void describe(struct db *db)
{
    const char *host = PQhost(db->conn);
    (void)text_format(db->where, sizeof db->where, "%s:%s/%s as %s", host == NULL ? "" : host, PQport(db->conn),
                      PQdb(db->conn), PQuser(db->conn));
}

static void disconnect(struct db *db)
{
    PQfinish(db->conn);
    db->conn = NULL;
    db->is_given_up = false;
    db->has_tx = false;
    memset(db->prepared, 0, sizeof db->prepared);
    db->prepared_count = 0;
}

bool db_reset(struct db *db, struct err *err)
{
    assert(db != NULL && !db->has_tx);
    disconnect(db);
    db->conn = connect_start(db);
    if (db->conn == NULL) {
        return err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for a connection");
    }
    /* Of a refused login libpq gives no fields, but in this form of the message the SQLSTATE (db_error.c). */
    (void)PQsetErrorVerbosity(db->conn, PQERRORS_VERBOSE);
    if (!connect_finish(db, err)) {
        disconnect(db);
        return false;
    }
    (void)PQsetErrorVerbosity(db->conn, PQERRORS_DEFAULT);
    describe(db);
    if (!set_up_session(db, err)) {
        disconnect(db);
        return false;
    }
    return true;
}

/* ---- The handle --------------------------------------------------------------------------------------------- */

static int or_default(int value, int fallback)
{
    assert(value >= 0);
    return value > 0 ? value : fallback;
}

/* libpq quotes what it cannot read, which may be the password or a part of it: everything between the first and the
 * last quotation mark is left out. */
static void quotes_cut(char *message)
{
    char *first = message == NULL ? NULL : strchr(message, '"');
    char *last = first == NULL ? NULL : strrchr(message, '"');
    if (first != NULL && last > first + 3) {
        memcpy(first + 1, "...", 3);
        memmove(first + 4, last, strlen(last) + 1);
    } else if (first != NULL) {
        *first = '\0';
    }
}

static bool conninfo_check(const char *conninfo, struct err *err)
{
    char *message = NULL;
    PQconninfoOption *options = PQconninfoParse(conninfo, &message);
    if (options == NULL) {
        quotes_cut(message);
        (void)err_set(err, ERR_FATAL, "conninfo_invalid", "setting database: %s",
                      message == NULL ? "cannot be parsed" : message);
        PQfreemem(message);
        return false;
    }
    PQconninfoFree(options);
    return true;
}

static struct db *db_new(const struct db_settings *settings, struct err *err)
{
    struct db *db = calloc(1, sizeof *db);
    if (db != NULL) {
        db->settings = *settings;
        db->conninfo = strdup(settings->conninfo);
        (void)text_copy(db->application_name, sizeof db->application_name, settings->application_name);
    }
    if (db == NULL || db->conninfo == NULL) {
        free(db);
        (void)err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for a connection");
        return NULL;
    }
    struct db_settings *ours = &db->settings;
    ours->conninfo = db->conninfo;
    ours->application_name = db->application_name;
    ours->connect_timeout_ms = or_default(ours->connect_timeout_ms, CONNECT_TIMEOUT_MS);
    ours->lock_timeout_ms = or_default(ours->lock_timeout_ms, LOCK_TIMEOUT_MS);
    ours->statement_timeout_ms = or_default(ours->statement_timeout_ms, STATEMENT_TIMEOUT_MS);
    ours->idle_in_transaction_timeout_ms =
        or_default(ours->idle_in_transaction_timeout_ms, IDLE_IN_TRANSACTION_TIMEOUT_MS);
    ours->answer_timeout_ms = or_default(ours->answer_timeout_ms, ANSWER_TIMEOUT_MS);
    ours->stop_grace_ms = or_default(ours->stop_grace_ms, STOP_GRACE_MS);
    return db;
}

struct db *db_open(const struct db_settings *settings, struct err *err)
{
    assert(settings != NULL && settings->conninfo != NULL && settings->application_name != NULL);
    if (!conninfo_check(settings->conninfo, err)) {
        return NULL;
    }
    struct db *db = db_new(settings, err);
    if (db != NULL && !db_reset(db, err)) {
        db_close(&db);
    }
    return db;
}

void db_close(struct db **dbp)
{
    assert(dbp != NULL);
    struct db *db = *dbp;
    if (db == NULL) {
        return;
    }
    disconnect(db);
    free(db->conninfo);
    free(db);
    *dbp = NULL;
}

bool db_is_usable(const struct db *db)
{
    return db->conn != NULL && !db->is_given_up && PQstatus(db->conn) == CONNECTION_OK;
}

void db_set_deadline(struct db *db, int64_t monotonic_at_ms)
{
    assert(monotonic_at_ms >= 0);
    db->deadline_ms = monotonic_at_ms;
}

const struct db_server *db_server(const struct db *db)
{
    return &db->server;
}

const char *db_where(const struct db *db)
{
    return db->where;
}
