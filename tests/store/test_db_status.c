/* SPDX-License-Identifier: Apache-2.0
 *
 * What the status screen counts as waiting: late committers, half-done ranges,
 * deferred events, and never more rows than it may look at.
 */
#include "cmocka_all.h"

#include <stdlib.h>

#include "db_private.h"
#include "db/db_status.h"
#include "db_fixture.h"
#include "postgres_fixture.h"

struct fixture {
    struct postgres_fixture *postgres;
    struct db *db;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    *state = fixture;
    fixture->postgres = postgres_fixture_new();
    if (fixture->postgres == NULL) {
        return -1;
    }
    postgres_fixture_exec(fixture->postgres, "INSERT INTO onceward.topics (topic) VALUES ('t')");
    fixture->db = db_fixture_open(postgres_fixture_conninfo(fixture->postgres));
    return fixture->db == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    db_close(&fixture->db);
    postgres_fixture_free(&fixture->postgres);
    free(fixture);
    return 0;
}

#define PUBLISH "SELECT onceward.publish('t', 'one key', 'x', '{}')"

static void publish(struct fixture *fixture, int count)
{
    char sql[128];
    assert_in_range(snprintf(sql, sizeof sql, PUBLISH " FROM generate_series(1, %d)", count), 1, sizeof sql - 1);
    postgres_fixture_exec(fixture->postgres, sql);
}

/* The next row of the log of every lane: floors at the sequence as it stands, columns as given. */
static void move(struct fixture *fixture, const char *snapshot_from, const char *snapshot_to, int position, int claimed)
{
    char sql[1024];
    assert_in_range(
        snprintf(sql, sizeof sql,
                 "INSERT INTO onceward.lane_progress (lane, seq, owner, incarnation, attempt, kind, snapshot_from,"
                 " from_floor, snapshot_to, to_floor, to_ceiling, position, claimed_to, system_identifier)"
                 " SELECT lane, seq + 1, 'r', gen_random_uuid(), gen_random_uuid(), 'moved', %s, CASE WHEN %s IS NULL"
                 " THEN pg_sequence_last_value('onceward.outbox_id_seq') ELSE from_floor END, %s,"
                 " CASE WHEN %s IS NOT NULL THEN 0 END, CASE WHEN %s IS NOT NULL THEN 100 END, %d, %d, 1"
                 " FROM onceward.lane_state",
                 snapshot_from, snapshot_to, snapshot_to, snapshot_to, snapshot_to, position, claimed),
        1, sizeof sql - 1);
    postgres_fixture_exec(fixture->postgres, sql);
}

static void assert_backlog(struct fixture *fixture, int64_t backlog, int64_t claimed)
{
    struct err err = ERR_INIT;
    struct db_status_flow flow;
    assert_ok(db_status_flow(fixture->db, &flow, &err), &err);
    assert_int_equal(flow.backlog_count, backlog);
    assert_int_equal(flow.claimed_count, claimed);
    assert_int_equal(flow.has_oldest, backlog > 0);
    assert_false(flow.is_backlog_cut);
    /* The view of single events agrees. */
    assert_int_equal(postgres_fixture_number(fixture->postgres, "SELECT count(*) FROM onceward.events WHERE status IN"
                                                                " ('pending', 'claimed') AND deferred_state IS NULL"),
                     backlog);
}

static void test_db_status_counts_what_waits(void **state)
{
    struct fixture *fixture = *state;
    assert_backlog(fixture, 0, 0);
    publish(fixture, 5);
    assert_backlog(fixture, 5, 0);
    move(fixture, "'3:3:'", "pg_current_snapshot()", 0, 3);
    assert_backlog(fixture, 5, 3);
    move(fixture, "'3:3:'", "pg_current_snapshot()", 2, 3);
    assert_backlog(fixture, 3, 1);
    move(fixture, "pg_current_snapshot()", "NULL::pg_snapshot", 0, 5);
    assert_backlog(fixture, 0, 0);
    publish(fixture, 1);
    assert_backlog(fixture, 1, 0);
}

static void test_db_status_sees_a_late_committer(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    struct db *late = db_fixture_open(postgres_fixture_conninfo(fixture->postgres));
    assert_non_null(late);
    struct db_tx *tx = NULL;
    assert_ok(db_tx_begin(late, &tx, &err), &err);
    assert_ok(db_exec_script(late, PUBLISH, &err), &err);
    publish(fixture, 2);
    move(fixture, "pg_current_snapshot()", "NULL::pg_snapshot", 0, 3);
    assert_backlog(fixture, 0, 0);
    assert_int_equal(db_tx_commit(&tx, &err), DB_TX_COMMITTED);
    assert_backlog(fixture, 1, 0);
    db_close(&late);
}

static void test_db_status_does_not_count_the_deferred_twice(void **state)
{
    struct fixture *fixture = *state;
    publish(fixture, 3);
    postgres_fixture_exec(
        fixture->postgres,
        "INSERT INTO onceward.deferred (id, lane, tenant, event_id, topic, key, type, source, time, header_names,"
        " header_values, value, state, reason_code, reason) SELECT id, lane, tenant, event_id, topic, key, type, "
        "source,"
        " time, header_names, header_values, value, CASE id WHEN 1 THEN 'parked' ELSE 'held' END, 'c', 'r'"
        " FROM onceward.outbox WHERE id < 3");
    assert_backlog(fixture, 1, 0);
    struct err err = ERR_INIT;
    struct db_status_flow flow;
    assert_ok(db_status_flow(fixture->db, &flow, &err), &err);
    assert_int_equal(flow.deferred_count, 2);
    assert_int_equal(flow.parked_count, 1);
}

static void test_db_status_looks_at_so_many_rows_and_no_more(void **state)
{
    struct fixture *fixture = *state;
    postgres_fixture_exec(fixture->postgres,
                          "INSERT INTO onceward.outbox (tenant, event_id, topic, key, type, source, time, value)"
                          " SELECT 't', gen_random_uuid(), 't', 'k' || n, 'x', '/s', now() - interval '1 h'"
                          " + n * interval '1 ms', '' FROM generate_series(1, 120000) n");
    struct err err = ERR_INIT;
    struct db_status_flow flow;
    assert_ok(db_status_flow(fixture->db, &flow, &err), &err);
    assert_true(flow.is_backlog_cut);
    assert_int_equal(flow.backlog_count, DB_STATUS_COUNT_MAX + 1);
    /* The oldest is the oldest of all. */
    assert_true(flow.oldest_age_us > INT64_C(3599) * 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_db_status_counts_what_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_db_status_sees_a_late_committer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_db_status_does_not_count_the_deferred_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_db_status_looks_at_so_many_rows_and_no_more, setup, teardown),
    };
    return cmocka_run_group_tests_name("test_db_status", tests, NULL, NULL);
}
