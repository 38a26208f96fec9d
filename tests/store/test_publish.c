/* SPDX-License-Identifier: Apache-2.0
 *
 * onceward.publish() as any language calls it, inside its own transaction.
 */
#include "cmocka_all.h"

#include <stdlib.h>

#include "base/uuid.h"
#include "db_private.h"
#include "domain/event.h"
#include "db_fixture.h"
#include "postgres_fixture.h"

static struct postgres_fixture *postgres;

static struct db *open_publisher(void)
{
    return db_fixture_open(postgres_fixture_conninfo_as(postgres, "onceward_publisher"));
}

/* ---- Refusals ----------------------------------------------------------------------------------------------- */

struct publish_case {
    const char *name;
    const char *arguments; /* Of publish(). */
    const char *code;      /* SQLSTATE, "" for success. */
};

#define GOOD "'small', 'k', 'x', '{}'"

static const struct publish_case cases[] = {
    {"the least there is", GOOD, ""},
    {"a topic that is not known", "'nowhere', 'k', 'x', '{}'", "OW001"},
    {"no topic", "NULL, 'k', 'x', '{}'", "OW001"},
    {"an empty key", "'small', '', 'x', '{}'", "OW002"},
    {"no key", "'small', NULL, 'x', '{}'", "OW002"},
    {"a key of 1024 bytes", "'large', repeat('k', 1024), 'x', '{}'", ""},
    {"a key of 1025 bytes", "'large', repeat('k', 1025), 'x', '{}'", "OW002"},
    {"an empty type", "'small', 'k', '', '{}'", "OW002"},
    {"a type of 256 bytes", "'large', 'k', repeat('x', 256), '{}'", "OW002"},
    {"no data", "'small', 'k', 'x', NULL", "OW002"},
    {"JSON's own null", "'small', 'k', 'x', 'null'", ""},
    {"data that is no JSON", "'small', 'k', 'x', '{'", "22P02"},
    {"an event that may be too large", "'small', 'k', 'x', json_build_object('a', repeat('b', 1600))", "OW005"},
    {"an event that just fits", "'small', 'k', 'x', json_build_object('a', repeat('b', 1000))", ""},
    {"a header", GOOD ", '{\"a\": \"b\"}'", ""},
    {"a header's name in capitals", GOOD ", '{\"A\": \"b\"}'", "OW004"},
    {"a header that is ours", GOOD ", '{\"ce_id\": \"b\"}'", "OW004"},
    {"the content type as a header", GOOD ", '{\"content-type\": \"b\"}'", "OW004"},
    {"a header that is no string", GOOD ", '{\"a\": 1}'", "OW004"},
    {"headers that are no object", GOOD ", '[]'", "OW004"},
    {"no headers", GOOD ", NULL", "OW004"},
    {"33 headers", GOOD ", (SELECT jsonb_object_agg('h' || n, '') FROM generate_series(1, 33) n)", "OW004"},
    {"32 headers", "'large', 'k', 'x', '{}', (SELECT jsonb_object_agg('h' || n, '') FROM generate_series(1, 32) n)",
     ""},
    {"headers count against the limit", GOOD ", jsonb_build_object('a', repeat('b', 1600))", "OW005"},
    {"an own id", GOOD ", '{}', onceward.uuid_v7()", ""},
    {"an own id of version 4", GOOD ", '{}', gen_random_uuid()", "OW003"},
    {"an own id of long ago", GOOD ", '{}', '017f22e2-79b0-7cc3-98c4-dc0c0c07398f'", "OW003"},
    {"an own id of the far future", GOOD ", '{}', 'ffffffff-ffff-7cc3-98c4-dc0c0c07398f'", "OW003"},
    {"an own id of another variant", GOOD ", '{}', overlay(onceward.uuid_v7()::text PLACING 'c' FROM 20)::uuid",
     "OW003"},
    {"an empty tenant", GOOD ", '{}', NULL, ''", "OW002"},
    {"another tenant", GOOD ", '{}', NULL, 'other'", ""},
};

static void test_publish(void **state)
{
    const struct publish_case *row = *state;
    char sql[1024];
    assert_in_range(snprintf(sql, sizeof sql, "SELECT onceward.publish(%s)", row->arguments), 1, sizeof sql - 1);
    long long before = postgres_fixture_number(postgres, "SELECT count(*) FROM onceward.outbox");
    struct db *db = open_publisher();
    struct err err = ERR_INIT;
    bool ok = db_exec_script(db, sql, &err);
    db_close(&db);
    if (strcmp(ok ? "" : err.code, row->code) != 0) {
        fail_msg("%s where \"%s\" was expected: %s", err.code, row->code, err.text);
    }
    assert_true(ok || err.kind == ERR_PERMANENT);
    long long after = postgres_fixture_number(postgres, "SELECT count(*) FROM onceward.outbox");
    assert_int_equal(after - before, ok ? 1 : 0);
}

/* ---- What it does ------------------------------------------------------------------------------------------- */

static void test_publish_is_part_of_the_callers_transaction(void **state)
{
    (void)state;
    long long before = postgres_fixture_number(postgres, "SELECT count(*) FROM onceward.outbox");
    struct db *db = open_publisher();
    struct err err = ERR_INIT;
    struct db_tx *tx = NULL;
    assert_true(db_tx_begin(db, &tx, &err));
    assert_true(db_exec_script(db, "SELECT onceward.publish(" GOOD ")", &err));
    db_tx_rollback(&tx);
    assert_int_equal(postgres_fixture_number(postgres, "SELECT count(*) FROM onceward.outbox"), before);
    assert_true(db_tx_begin(db, &tx, &err));
    assert_true(db_exec_script(db, "SELECT onceward.publish(" GOOD ")", &err));
    assert_int_equal(db_tx_commit(&tx, &err), DB_TX_COMMITTED);
    assert_int_equal(postgres_fixture_number(postgres, "SELECT count(*) FROM onceward.outbox"), before + 1);
    db_close(&db);
}

/* A savepoint must not hide the row behind a subtransaction's id: visibility is decided by the top-level one. */
static void test_publish_writes_the_top_level_transaction(void **state)
{
    (void)state;
    struct db *db = open_publisher();
    struct err err = ERR_INIT;
    struct db_tx *tx = NULL;
    static const struct db_statement XID = {.sql = "SELECT pg_current_xact_id()", .columns = {DB_XID8}};
    assert_true(db_tx_begin(db, &tx, &err));
    DB_RESULT(result);
    assert_true(db_exec_row(db, &XID, NULL, &result, &err));
    assert_true(db_exec_script(db, "SAVEPOINT s; SELECT onceward.publish(" GOOD "); RELEASE s", &err));
    assert_int_equal(db_tx_commit(&tx, &err), DB_TX_COMMITTED);
    long long xid = postgres_fixture_number(postgres, "SELECT xid::text::int8 FROM onceward.outbox ORDER BY id DESC"
                                                      " LIMIT 1");
    assert_true((uint64_t)xid == db_get_xid8(result, 0, 0));
    db_close(&db);
}

static void test_publish_makes_its_transaction_durable(void **state)
{
    (void)state;
    static const struct db_statement SHOW = {.sql = "SELECT current_setting('synchronous_commit')",
                                             .columns = {DB_TEXT}};
    struct db *db = open_publisher();
    struct err err = ERR_INIT;
    struct db_tx *tx = NULL;
    assert_true(db_exec_script(db, "SET synchronous_commit = off", &err));
    assert_true(db_tx_begin(db, &tx, &err));
    assert_true(db_exec_script(db, "SELECT onceward.publish(" GOOD ")", &err));
    DB_RESULT(inside);
    assert_true(db_exec_row(db, &SHOW, NULL, &inside, &err));
    assert_string_equal(db_get_text(inside, 0, 0), "on");
    assert_int_equal(db_tx_commit(&tx, &err), DB_TX_COMMITTED);
    DB_RESULT(after);
    assert_true(db_exec_row(db, &SHOW, NULL, &after, &err));
    assert_string_equal(db_get_text(after, 0, 0), "off");
    db_close(&db);
}

static void test_publish_keeps_what_it_was_given(void **state)
{
    (void)state;
    struct db *db = open_publisher();
    struct err err = ERR_INIT;
    assert_true(
        db_exec_script(db,
                       "SELECT onceward.publish('large', 'a\\b', 'some.type', '{\"b\": 1.0, \"a\":  1, \"a\": 2}',"
                       " '{\"z\": \"\", \"a\": \"ü\", \"traceparent\": \"00-1-2-01\"}', NULL, 'ten')",
                       &err));
    db_close(&db);
    char row[1024];
    postgres_fixture_text(
        postgres,
        "SELECT concat_ws('|', tenant, topic, key, type, source, subject, content_type, traceparent,"
        " header_names::text, convert_from(value, 'UTF8'), lane = get_byte(sha256('a\\\\b'::bytea), 0)"
        " % 8, abs(extract(epoch FROM clock_timestamp() - time)) < 60)"
        " FROM onceward.outbox ORDER BY id DESC LIMIT 1",
        row, sizeof row);
    assert_string_equal(row, "ten|large|a\\b|some.type|/onceward|a\\b|application/json|00-1-2-01|{a,z}|"
                             "{\"b\": 1.0, \"a\":  1, \"a\": 2}|t|t");
}

static void test_publish_mints_ids_of_its_clock(void **state)
{
    (void)state;
    assert_int_equal(
        postgres_fixture_number(postgres, "WITH ids AS MATERIALIZED (SELECT onceward.uuid_v7() AS id"
                                          " FROM generate_series(1, 1000)) SELECT count(DISTINCT id) FROM ids"
                                          " WHERE substr(id::text, 15, 1) = '7' AND substr(id::text, 20, 1) ~ '[89ab]'"
                                          " AND abs(extract(epoch FROM clock_timestamp() - onceward.uuid_v7_time(id)))"
                                          " < 5"),
        1000);
}

/* The bound in SQL is never below the one in C, which the relay and the producer go by. */
static void test_publish_is_no_more_generous_than_the_wire(void **state)
{
    (void)state;
    const struct event event = {
        .outbox_id = 1,
        .event_id = "01a22b2d-8acd-7f8c-ab30-5fd2271711f5",
        .tenant = "default",
        .topic = "edge",
        .key = "k",
        .type = "x",
        .source = "/onceward",
        .subject = "k",
        .content_type = "application/json",
        .time = "2026-11-30T06:38:54.670532Z",
        .value = {.data = "{}", .size = 2},
    };
    char sql[512];
    assert_in_range(snprintf(sql, sizeof sql,
                             "INSERT INTO onceward.topics (topic, event_bytes_max) VALUES ('edge', %zu)",
                             event_wire_size(&event) - 1),
                    1, sizeof sql - 1);
    postgres_fixture_exec(postgres, sql);
    struct db *db = open_publisher();
    struct err err = ERR_INIT;
    assert_false(db_exec_script(db, "SELECT onceward.publish('edge', 'k', 'x', '{}')", &err));
    assert_string_equal(err.code, "OW005");
    db_close(&db);
}

/* Two transactions that lock the same row publish in the order in which they hold it. */
static void test_publish_follows_the_callers_lock(void **state)
{
    (void)state;
    postgres_fixture_exec(postgres, "CREATE TABLE locked (n int); INSERT INTO locked VALUES (0);"
                                    " GRANT SELECT, UPDATE ON locked TO onceward_publisher");
    struct db *one = open_publisher();
    struct db *two = open_publisher();
    struct err err = ERR_INIT;
    struct db_tx *tx_one = NULL;
    struct db_tx *tx_two = NULL;
    assert_true(db_tx_begin(two, &tx_two, &err));
    static const struct db_statement XID = {.sql = "SELECT pg_current_xact_id()", .columns = {DB_XID8}};
    assert_true(db_exec(two, &XID, NULL, NULL, &err)); /* The lower xid goes last. */
    assert_true(db_tx_begin(one, &tx_one, &err));
    assert_true(
        db_exec_script(one, "UPDATE locked SET n = 1; SELECT onceward.publish('small', 'lock', '1', '{}')", &err));
    assert_int_equal(db_tx_commit(&tx_one, &err), DB_TX_COMMITTED);
    assert_true(
        db_exec_script(two, "UPDATE locked SET n = 2; SELECT onceward.publish('small', 'lock', '2', '{}')", &err));
    assert_int_equal(db_tx_commit(&tx_two, &err), DB_TX_COMMITTED);
    char order[64];
    postgres_fixture_text(postgres,
                          "SELECT string_agg(type, ',' ORDER BY id) || (count(DISTINCT lane))::text"
                          " FROM onceward.outbox WHERE key = 'lock'",
                          order, sizeof order);
    assert_string_equal(order, "1,21");
    db_close(&one);
    db_close(&two);
}

static int setup_group(void **state)
{
    (void)state;
    postgres = postgres_fixture_new();
    if (postgres == NULL) {
        return -1;
    }
    postgres_fixture_exec(postgres, "INSERT INTO onceward.topics (topic, event_bytes_max)"
                                    " VALUES ('small', 2000), ('large', 100000)");
    return 0;
}

static int teardown_group(void **state)
{
    (void)state;
    postgres_fixture_free(&postgres);
    return 0;
}

int main(void)
{
    const struct CMUnitTest others[] = {
        cmocka_unit_test(test_publish_is_part_of_the_callers_transaction),
        cmocka_unit_test(test_publish_writes_the_top_level_transaction),
        cmocka_unit_test(test_publish_makes_its_transaction_durable),
        cmocka_unit_test(test_publish_keeps_what_it_was_given),
        cmocka_unit_test(test_publish_mints_ids_of_its_clock),
        cmocka_unit_test(test_publish_is_no_more_generous_than_the_wire),
        cmocka_unit_test(test_publish_follows_the_callers_lock),
    };
    struct CMUnitTest tests[COUNT_OF(cases) + COUNT_OF(others)];
    FILL_CASES(tests, test_publish, cases);
    memcpy(tests + COUNT_OF(cases), others, sizeof others);
    return cmocka_run_group_tests_name("test_publish", tests, setup_group, teardown_group);
}
