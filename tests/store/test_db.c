/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection, its transactions and the ways of calling, on a real server.
 */
#include "cmocka_all.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "session_fixture.h"

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A second connection that ends the first, as a failing server would. */
static void kill_backend_of(struct db *db)
{
    static const struct db_statement PID = {.sql = "SELECT pg_backend_pid()", .columns = {DB_INT4}};
    static const struct db_statement KILL = {.sql = "SELECT pg_terminate_backend($1, 5000)", .columns = {DB_BOOL}};
    struct err err = ERR_INIT;
    DB_RESULT(pid);
    assert_ok(db_exec_row(db, &PID, NULL, &pid, &err), &err);
    struct db_settings settings = DB_SETTINGS_INIT;
    settings.conninfo = conninfo();
    struct db *killer = db_open(&settings, &err);
    assert_non_null(killer);
    DB_PARAMS(params);
    db_params_int4(&params, db_get_int4(pid, 0, 0));
    DB_RESULT(killed);
    assert_ok(db_exec_row(killer, &KILL, &params, &killed, &err), &err);
    assert_true(db_get_bool(killed, 0, 0));
    db_close(&killer);
}

static void test_db_exec_calls_another_shape_fatal(void **state)
{
    static const struct db_statement WRONG = {.sql = "SELECT 1::int4, 'x'::text", .columns = {DB_INT8, DB_TEXT}};
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    assert_false(db_exec(fixture->db, &WRONG, NULL, NULL, &err));
    assert_int_equal(err.kind, ERR_FATAL);
    assert_string_equal(err.code, "unexpected_shape");
}

static void test_db_exec_reports_the_servers_error_and_goes_on(void **state)
{
    static const struct db_statement DIVIDE = {.sql = "SELECT 1 / $1::int4", .columns = {DB_INT4}};
    struct fixture *fixture = *state;
    for (int i = 0; i < 3; i++) {
        struct err err = ERR_INIT;
        DB_PARAMS(params);
        db_params_int4(&params, 0);
        assert_false(db_exec(fixture->db, &DIVIDE, &params, NULL, &err));
        assert_int_equal(err.kind, ERR_PERMANENT);
        assert_string_equal(err.code, "22012");
        err_clear(&err);
        db_params_clear(&params);
        db_params_int4(&params, 1);
        assert_ok(db_exec(fixture->db, &DIVIDE, &params, NULL, &err), &err);
    }
}

static const struct db_statement CREATE = {.sql =
                                               "CREATE TABLE IF NOT EXISTS test_db (id int8 PRIMARY KEY, note text)"};
static const struct db_statement DROP = {.sql = "DROP TABLE IF EXISTS test_db"};
static const struct db_statement INSERT = {
    .sql = "INSERT INTO test_db (id) VALUES ($1)",
};
static const struct db_statement COUNT = {.sql = "SELECT count(*) FROM test_db", .columns = {DB_INT8}};

static int64_t count_rows(struct db *db)
{
    struct err err = ERR_INIT;
    DB_RESULT(result);
    assert_ok(db_exec_row(db, &COUNT, NULL, &result, &err), &err);
    return db_get_int8(result, 0, 0);
}

static int setup_table(void **state)
{
    (void)setup(state);
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    assert_ok(db_exec(fixture->db, &DROP, NULL, NULL, &err), &err);
    assert_ok(db_exec(fixture->db, &CREATE, NULL, NULL, &err), &err);
    return 0;
}

static int teardown_table(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    if (!db_is_usable(fixture->db)) {
        assert_ok(db_reset(fixture->db, &err), &err);
    }
    assert_ok(db_exec(fixture->db, &DROP, NULL, NULL, &err), &err);
    return teardown(state);
}

static void insert(struct db *db, int64_t id)
{
    struct err err = ERR_INIT;
    DB_PARAMS(params);
    db_params_int8(&params, id);
    DB_RESULT(result);
    assert_ok(db_exec(db, &INSERT, &params, &result, &err), &err);
    assert_int_equal(db_result_affected(result), 1);
}

static void test_db_tx_commits_and_rolls_back(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    struct db_tx *tx = NULL;
    assert_ok(db_tx_begin(fixture->db, &tx, &err), &err);
    insert(db_tx_db(tx), 1);
    db_tx_rollback(&tx);
    assert_null(tx);
    assert_int_equal(count_rows(fixture->db), 0);
    assert_ok(db_tx_begin(fixture->db, &tx, &err), &err);
    insert(db_tx_db(tx), 1);
    assert_int_equal(db_tx_commit(&tx, &err), DB_TX_COMMITTED);
    assert_null(tx);
    assert_int_equal(count_rows(fixture->db), 1);
}

static void test_db_tx_reports_the_commit_of_a_failed_transaction_as_failed(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    struct db_tx *tx = NULL;
    assert_ok(db_tx_begin(fixture->db, &tx, &err), &err);
    insert(fixture->db, 1);
    DB_PARAMS(params);
    db_params_int8(&params, 1);
    assert_false(db_exec(fixture->db, &INSERT, &params, NULL, &err));
    assert_string_equal(err.code, "23505");
    err_clear(&err);
    assert_int_equal(db_tx_commit(&tx, &err), DB_TX_FAILED);
    assert_int_equal(count_rows(fixture->db), 0);
}

static void test_db_tx_reports_a_deferred_constraint_as_failed(void **state)
{
    static const struct db_statement DEFER = {
        .sql = "ALTER TABLE test_db ADD UNIQUE (note) DEFERRABLE INITIALLY DEFERRED",
    };
    static const struct db_statement TWICE = {.sql = "INSERT INTO test_db VALUES (1, 'same'), (2, 'same')"};
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    assert_ok(db_exec(fixture->db, &DEFER, NULL, NULL, &err), &err);
    struct db_tx *tx = NULL;
    assert_ok(db_tx_begin(fixture->db, &tx, &err), &err);
    assert_ok(db_exec(fixture->db, &TWICE, NULL, NULL, &err), &err);
    assert_int_equal(db_tx_commit(&tx, &err), DB_TX_FAILED);
    assert_string_equal(err.code, "23505");
    assert_int_equal(count_rows(fixture->db), 0);
}

static void test_db_tx_reports_a_connection_lost_at_commit_as_unknown(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    struct db_tx *tx = NULL;
    assert_ok(db_tx_begin(fixture->db, &tx, &err), &err);
    insert(fixture->db, 1);
    kill_backend_of(fixture->db);
    assert_int_equal(db_tx_commit(&tx, &err), DB_TX_UNKNOWN);
    assert_null(tx);
    assert_int_equal(err.kind, ERR_TRANSIENT);
    assert_false(db_is_usable(fixture->db));
    err_clear(&err);
    assert_false(db_exec(fixture->db, &COUNT, NULL, NULL, &err));
    assert_int_equal(err.kind, ERR_TRANSIENT);
    err_clear(&err);
    assert_ok(db_reset(fixture->db, &err), &err);
    assert_int_equal(count_rows(fixture->db), 0);
}

/* A trigger that runs at COMMIT and does this. */
static void at_commit(struct db *db, const char *body)
{
    char sql[512];
    assert_in_range(snprintf(sql, sizeof sql,
                             "CREATE OR REPLACE FUNCTION test_db_at_commit() RETURNS trigger LANGUAGE plpgsql AS"
                             " 'BEGIN %s; RETURN NULL; END';"
                             "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON test_db DEFERRABLE INITIALLY DEFERRED"
                             " FOR EACH ROW EXECUTE FUNCTION test_db_at_commit()",
                             body),
                    1, sizeof sql - 1);
    struct err err = ERR_INIT;
    assert_ok(db_exec_script(db, sql, &err), &err);
}

static enum db_tx_outcome insert_in_one_flush(struct db *db, int64_t id, struct err *err)
{
    DB_PARAMS(params);
    db_params_int8(&params, id);
    struct db_call call = {.statement = &INSERT, .params = &params};
    enum db_tx_outcome outcome = db_exec_tx(db, &call, 1, err);
    db_calls_clear(&call, 1);
    return outcome;
}

/* A cancelled wait for a synchronous standby is a warning at COMMIT, with status OK and tag COMMIT. */
static void test_db_tx_reports_a_commit_with_a_warning_as_unknown(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    at_commit(fixture->db, "RAISE WARNING ''not where it should be''");
    assert_int_equal(insert_in_one_flush(fixture->db, 1, &err), DB_TX_UNKNOWN);
    assert_int_equal(err.kind, ERR_TRANSIENT);
    assert_true(db_is_usable(fixture->db));
    assert_int_equal(count_rows(fixture->db), 1);
}

static void test_db_tx_reports_a_backend_that_dies_in_commit_as_unknown(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    at_commit(fixture->db, "PERFORM pg_terminate_backend(pg_backend_pid())");
    assert_int_equal(insert_in_one_flush(fixture->db, 1, &err), DB_TX_UNKNOWN);
    assert_int_equal(err.kind, ERR_TRANSIENT);
    assert_false(db_is_usable(fixture->db));
    err_clear(&err);
    assert_ok(db_reset(fixture->db, &err), &err);
    assert_int_equal(count_rows(fixture->db), 0);
}

static void test_db_tx_reports_an_error_in_commit_as_failed(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    at_commit(fixture->db, "RAISE EXCEPTION ''no'' USING ERRCODE = ''40001''");
    assert_int_equal(insert_in_one_flush(fixture->db, 1, &err), DB_TX_FAILED);
    assert_string_equal(err.code, "40001");
    assert_int_equal(err.kind, ERR_TRANSIENT);
    assert_true(db_is_usable(fixture->db));
    assert_int_equal(count_rows(fixture->db), 0);
}

/* Both sides fill their buffers: neither may wait for the other to read first. */
static void test_db_exec_all_moves_much_both_ways_at_once(void **state)
{
    static const struct db_statement BIG = {.sql = "SELECT $1::bytea", .columns = {DB_BYTEA}};
    enum { CALL_COUNT = 8, SIZE = 8 * 1024 * 1024 };
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    char *bytes = calloc(1, SIZE);
    assert_non_null(bytes);
    DB_PARAMS(params);
    db_params_bytea(&params, (struct bytes){.data = bytes, .size = SIZE});
    struct db_call calls[CALL_COUNT];
    for (size_t i = 0; i < CALL_COUNT; i++) {
        calls[i] = (struct db_call){.statement = &BIG, .params = &params};
    }
    assert_ok(db_exec_all(fixture->db, calls, CALL_COUNT, &err), &err);
    for (size_t i = 0; i < CALL_COUNT; i++) {
        assert_int_equal(db_get_bytes(calls[i].result, 0, 0).size, SIZE);
    }
    db_calls_clear(calls, CALL_COUNT);
    free(bytes);
}

static void test_db_exec_tx_does_all_in_one_flush_or_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    DB_PARAMS(one);
    db_params_int8(&one, 1);
    DB_PARAMS(two);
    db_params_int8(&two, 2);
    struct db_call good[] = {
        {.statement = &INSERT, .params = &one}, {.statement = &INSERT, .params = &two}, {.statement = &COUNT}};
    assert_int_equal(db_exec_tx(fixture->db, good, 3, &err), DB_TX_COMMITTED);
    assert_int_equal(db_get_int8(good[2].result, 0, 0), 2);
    db_calls_clear(good, 3);
    struct db_call bad[] = {{.statement = &INSERT, .params = &one}, {.statement = &COUNT}};
    assert_int_equal(db_exec_tx(fixture->db, bad, 2, &err), DB_TX_FAILED);
    assert_string_equal(err.code, "23505");
    assert_null(bad[1].result);
    assert_int_equal(count_rows(fixture->db), 2);
}

static void test_db_exec_begin_and_commit_carry_calls(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    DB_PARAMS(one);
    db_params_int8(&one, 1);
    DB_PARAMS(two);
    db_params_int8(&two, 2);
    struct db_call first = {.statement = &INSERT, .params = &one};
    struct db_call second = {.statement = &INSERT, .params = &two};
    struct db_tx *tx = NULL;
    assert_ok(db_exec_begin(fixture->db, &first, 1, &tx, &err), &err);
    assert_int_equal(db_exec_commit(&tx, &second, 1, &err), DB_TX_COMMITTED);
    db_calls_clear(&first, 1);
    db_calls_clear(&second, 1);
    assert_int_equal(count_rows(fixture->db), 2);
    assert_false(db_exec_begin(fixture->db, &first, 1, &tx, &err));
    assert_null(tx);
    assert_string_equal(err.code, "23505");
    assert_int_equal(count_rows(fixture->db), 2);
}

static void test_db_session_has_its_settings(void **state)
{
    static const struct db_statement SHOW = {
        .sql = "SELECT current_setting('synchronous_commit'), current_setting('lock_timeout'),"
               " current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout'),"
               " current_setting('application_name')",
        .columns = {DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT},
    };
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    DB_RESULT(result);
    assert_ok(db_exec_row(fixture->db, &SHOW, NULL, &result, &err), &err);
    assert_string_equal(db_get_text(result, 0, 0), "on");
    assert_string_equal(db_get_text(result, 0, 1), "2s");
    assert_string_equal(db_get_text(result, 0, 2), "5s");
    assert_string_equal(db_get_text(result, 0, 3), "5s");
    assert_string_equal(db_get_text(result, 0, 4), "test_db");
}

static void test_db_server_is_the_same_after_a_reset(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    struct db_server before = *db_server(fixture->db);
    assert_true(before.timeline >= 1);
    assert_true(before.version >= 140000);
    assert_ok(db_reset(fixture->db, &err), &err);
    struct db_server after;
    assert_ok(db_server_read(fixture->db, &after, &err), &err);
    assert_true(db_server_equals(&before, &after));
    print_message("database: Postgres %d, system identifier %s, timeline %d, %s\n", after.version,
                  after.system_identifier, after.timeline, db_where(fixture->db));
}

static const struct db_statement SLEEP = {.sql = "SELECT pg_sleep(3)::text", .columns = {DB_TEXT}};

static void test_db_exec_gives_up_at_the_deadline(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    int64_t start = now_ms();
    db_set_deadline(fixture->db, start + 100);
    assert_false(db_exec(fixture->db, &SLEEP, NULL, NULL, &err));
    assert_string_equal(err.code, "no_answer");
    assert_in_range((uint64_t)(now_ms() - start), 90, 1500);
    assert_false(db_is_usable(fixture->db));
    db_set_deadline(fixture->db, 0);
}

static void test_db_exec_is_cut_by_stop_after_the_grace(void **state)
{
    struct fixture *fixture = *state;
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    struct db_settings settings = fixture->settings;
    settings.stop_fd = pipe_fds[0];
    settings.stop_grace_ms = 100;
    struct err err = ERR_INIT;
    struct db *db = db_open(&settings, &err);
    assert_non_null(db);
    assert_int_equal(write(pipe_fds[1], "x", 1), 1);
    int64_t start = now_ms();
    assert_false(db_exec(db, &SLEEP, NULL, NULL, &err));
    assert_string_equal(err.code, "stopped");
    assert_in_range((uint64_t)(now_ms() - start), 90, 1500);
    db_close(&db);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

static void test_db_exec_script_runs_many_statements(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    assert_ok(db_exec_script(fixture->db, "INSERT INTO test_db VALUES (1); INSERT INTO test_db VALUES (2);", &err),
              &err);
    assert_int_equal(count_rows(fixture->db), 2);
    assert_false(db_exec_script(fixture->db, "INSERT INTO test_db VALUES (3); SELECT 1/0;", &err));
    assert_string_equal(err.code, "22012");
    assert_int_equal(count_rows(fixture->db), 2);
}

static void test_db_open_names_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *conninfo;
        enum err_kind kind;
        const char *code;
    } CASES[] = {
        {"host=127.0.0.1 port=1", ERR_TRANSIENT, "connect_failed"},
        {"hots=127.0.0.1", ERR_FATAL, "conninfo_invalid"},
        {"postgresql://[::1", ERR_FATAL, "conninfo_invalid"},
        /* What libpq quotes of these is the password. */
        {"host=127.0.0.1 password=a secret", ERR_FATAL, "conninfo_invalid"},
        {"postgresql://u:secret%zz@127.0.0.1/d", ERR_FATAL, "conninfo_invalid"},
        {"postgresql://u:secret@[::1/d", ERR_FATAL, "conninfo_invalid"},
        {"host=127.0.0.1 password=a se=cret", ERR_FATAL, "conninfo_invalid"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct db_settings settings = DB_SETTINGS_INIT;
        settings.conninfo = CASES[i].conninfo;
        struct err err = ERR_INIT;
        assert_null(db_open(&settings, &err));
        assert_int_equal(err.kind, CASES[i].kind);
        assert_string_equal(err.code, CASES[i].code);
        assert_null(strstr(err.text, "secret"));
        assert_null(strstr(err.text, "\"se\""));
    }
}

#define ON_TABLE(test) cmocka_unit_test_setup_teardown(test, setup_table, teardown_table)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_DB(test_db_exec_calls_another_shape_fatal),
        ON_DB(test_db_exec_reports_the_servers_error_and_goes_on),
        ON_TABLE(test_db_tx_commits_and_rolls_back),
        ON_TABLE(test_db_tx_reports_the_commit_of_a_failed_transaction_as_failed),
        ON_TABLE(test_db_tx_reports_a_deferred_constraint_as_failed),
        ON_TABLE(test_db_tx_reports_a_connection_lost_at_commit_as_unknown),
        ON_TABLE(test_db_tx_reports_a_commit_with_a_warning_as_unknown),
        ON_TABLE(test_db_tx_reports_a_backend_that_dies_in_commit_as_unknown),
        ON_TABLE(test_db_tx_reports_an_error_in_commit_as_failed),
        ON_DB(test_db_exec_all_moves_much_both_ways_at_once),
        ON_TABLE(test_db_exec_tx_does_all_in_one_flush_or_nothing),
        ON_TABLE(test_db_exec_begin_and_commit_carry_calls),
        ON_DB(test_db_session_has_its_settings),
        ON_DB(test_db_server_is_the_same_after_a_reset),
        ON_DB(test_db_exec_gives_up_at_the_deadline),
        ON_DB(test_db_exec_is_cut_by_stop_after_the_grace),
        ON_TABLE(test_db_exec_script_runs_many_statements),
        cmocka_unit_test(test_db_open_names_what_is_wrong),
        POOLED(test_db_session_has_its_settings, setup, teardown),
        POOLED(test_db_tx_commits_and_rolls_back, setup_table, teardown_table),
        POOLED(test_db_exec_tx_does_all_in_one_flush_or_nothing, setup_table, teardown_table),
    };
    return cmocka_run_group_tests_name("test_db", tests, setup_group, teardown_group);
}
