/* SPDX-License-Identifier: Apache-2.0
 *
 * What waits for a person, as the command line shows it, and the commands that
 * end the waiting: partitions that were stopped, consumers that are gone, dead
 * letters, topics and routes that are not wanted any more.
 */
#include "cmocka_all.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "cli_kit.h"
#include "db_fixture.h"
#include "postgres_fixture.h"

#define OPERATOR "onceward_operator"

static struct postgres_fixture *postgres;

static int group_setup(void **state)
{
    (void)state;
    log_init("test_cli_operations", LOG_ERROR, stderr);
    unsetenv("ONCEWARD_KAFKA");
    setenv("USER", "nora", 1);
    postgres = postgres_fixture_new();
    if (postgres == NULL) {
        return -1;
    }
    return setenv("ONCEWARD_DATABASE", postgres_fixture_conninfo_as(postgres, OPERATOR), 1);
}

/* A database as new, with a relay that lives, so that status has nothing else to complain of. */
static int setup(void **state)
{
    (void)state;
    postgres_fixture_exec(postgres,
                          "TRUNCATE onceward.outbox, onceward.dead_letters, onceward.inbox_scopes, onceward.audit,"
                          " onceward.consumer_progress, onceward.consumer_stops, onceward.consumer_retirements,"
                          " onceward.relays, onceward.routes, onceward.topics; DELETE FROM onceward.lane_progress"
                          " WHERE seq > 0");
    postgres_fixture_exec(postgres, "INSERT INTO onceward.relays (relay, incarnation, until)"
                                    " VALUES ('r', gen_random_uuid(), now() + interval '9 minutes');"
                                    "UPDATE onceward.lanes SET owner = 'r'");
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    postgres_fixture_free(&postgres);
    return 0;
}

/* Two partitions of a topic, at offset 30 each. */
static void add_consumer(const char *name)
{
    char sql[1024];
    assert_in_range(
        snprintf(sql, sizeof sql,
                 "INSERT INTO onceward.inbox_scopes (consumer) VALUES ('%s');"
                 "INSERT INTO onceward.consumer_progress (consumer, scope, topic, partition, seq, owner, incarnation,"
                 " attempt, kind, next_offset, cluster_id) SELECT '%s', 'live', 'orders', n, 1, 'one',"
                 " gen_random_uuid(), gen_random_uuid(), 'moved', 30, 'c' FROM generate_series(0, 1) n",
                 name, name),
        1, sizeof sql - 1);
    postgres_fixture_exec(postgres, sql);
}

static struct db *connect_as_consumer(const char *name)
{
    char conninfo[512];
    assert_in_range(snprintf(conninfo, sizeof conninfo, "%s application_name='onceward-consumer %s'",
                             postgres_fixture_conninfo(postgres), name),
                    1, sizeof conninfo - 1);
    return db_fixture_open(conninfo);
}

static struct cli_call expect(int code, const char *const *arguments)
{
    struct cli_call call = cli_call(arguments);
    if (call.code != code) {
        fail_msg("%s %s ended with %d, not %d: %s%s", arguments[0], arguments[1], call.code, code, call.out,
                 call.errors);
    }
    return call;
}

/* The same where only the code counts, and a part of what is written. */
static void expect_part(int code, const char *part, const char *const *arguments)
{
    struct cli_call call = expect(code, arguments);
    cli_call_assert_part("the answer", code == 0 || code == 3 ? call.out : call.errors, part);
    cli_call_done(&call);
}

static long long number(const char *sql)
{
    return postgres_fixture_number(postgres, sql);
}

static void test_cli_status_says_why_a_partition_was_stopped(void **state)
{
    (void)state;
    add_consumer("shop");
    struct db *session = connect_as_consumer("shop");
    expect_part(0, "shop", ARGUMENTS("status"));
    postgres_fixture_exec(postgres, "INSERT INTO onceward.consumer_stops (consumer, scope, topic, partition, seq,"
                                    " attempt, code, reason) SELECT consumer, scope, topic, partition, seq, attempt,"
                                    " 'record_differs', 'the topic was made anew' FROM onceward.consumer_progress");
    expect_part(3,
                "Consumer shop has stopped at orders/0, offset 30 and 1 more: record_differs: the topic was made anew",
                ARGUMENTS("status"));
    struct cli_call call = expect(3, ARGUMENTS("status", "--json"));
    cli_call_assert_member(&call, "consumers.1.stop_code", "record_differs");
    cli_call_assert_member(&call, "consumers.1.stop_reason", "the topic was made anew");
    cli_call_done(&call);
    expect_part(0, "2", ARGUMENTS("consumer", "list")); /* Of two partitions two are stopped. */
    /* The operator's rewind ends it. */
    postgres_fixture_exec(postgres,
                          "INSERT INTO onceward.consumer_progress (consumer, scope, topic, partition, seq, owner,"
                          " incarnation, attempt, kind, next_offset, cluster_id) SELECT consumer, scope, topic,"
                          " partition, seq + 1, 'operator', gen_random_uuid(), gen_random_uuid(), 'rewound', 0,"
                          " cluster_id FROM onceward.consumer_state");
    expect_part(0, "shop", ARGUMENTS("status"));
    db_close(&session);
}

/* An event that lies before the cursor of a partition that was stopped was not passed by. */
static void test_cli_events_says_that_the_partition_was_stopped(void **state)
{
    (void)state;
    char event_id[64];
    add_consumer("shop");
    postgres_fixture_exec(postgres, "INSERT INTO onceward.topics (topic) VALUES ('orders')");
    postgres_fixture_text(postgres, "SELECT onceward.publish('orders', 'k', 't', '{}')", event_id, sizeof event_id);
    postgres_fixture_exec(
        postgres,
        "INSERT INTO onceward.lane_progress (lane, seq, owner, incarnation, attempt, kind, snapshot_from, from_floor,"
        " position, claimed_to, system_identifier, settled_ids, settled_least, settled_greatest, settled_topics,"
        " settled_partitions, settled_offsets) SELECT o.lane, 1, 'test', gen_random_uuid(), gen_random_uuid(), 'moved',"
        " pg_current_snapshot(), o.id, o.id, o.id, 1, ARRAY[o.id], o.id, o.id, ARRAY['orders'], ARRAY[0], ARRAY[7]"
        " FROM onceward.outbox o;"
        "INSERT INTO onceward.consumer_stops (consumer, scope, topic, partition, seq, attempt, code, reason)"
        " SELECT consumer, scope, topic, partition, seq, attempt, 'log_shorter', 'why' FROM "
        "onceward.consumer_progress");
    struct cli_call call = expect(0, ARGUMENTS("events", event_id, "--json"));
    cli_call_assert_member(&call, "deliveries.0.status", "stopped");
    cli_call_assert_member(&call, "deliveries.0.reason_code", "log_shorter");
    cli_call_done(&call);
}

static void add_dead_letters(const char *consumer, int count)
{
    char sql[1024];
    assert_in_range(
        snprintf(sql, sizeof sql,
                 "INSERT INTO onceward.dead_letters (consumer, scope, topic, partition, record_offset, record_hash,"
                 " event_id, key, value, header_names, header_values, reason_code, reason)"
                 " SELECT '%s', 'live', 'orders', 0, n, '', 'e' || n, '\\x6b', '\\x00ff', '{ce_id}', '{\"e\"}',"
                 " '23514', 'a constraint' FROM generate_series(1, %d) n",
                 consumer, count),
        1, sizeof sql - 1);
    postgres_fixture_exec(postgres, sql);
}

static void test_cli_retires_a_consumer_that_is_gone(void **state)
{
    (void)state;
    add_consumer("trial");
    add_dead_letters("trial", 2);
    expect_part(3, "Consumer trial is gone", ARGUMENTS("status"));
    expect_part(1, "no consumer nobody", ARGUMENTS("consumer", "retire", "nobody"));
    struct db *session = connect_as_consumer("trial");
    expect_part(6, "is connected", ARGUMENTS("consumer", "retire", "trial"));
    db_close(&session);
    expect_part(0, "Nothing was done", ARGUMENTS("consumer", "retire", "trial", "--dry-run"));
    expect_part(3, "Consumer trial is gone", ARGUMENTS("status"));
    expect_part(0, "retired", ARGUMENTS("consumer", "retire", "trial", "--reason", "only a trial"));
    expect_part(0, "retired before", ARGUMENTS("consumer", "retire", "trial"));
    assert_int_equal(number("SELECT count(*) FROM onceward.audit WHERE action = 'consumer retire' AND object = 'trial'"
                            " AND actor = 'onceward_operator' AND detail ->> 'by' = 'nora'"
                            " AND detail ->> 'reason' = 'only a trial'"),
                     1);
    expect_part(0, "relays alive", ARGUMENTS("status")); /* Its dead letters do not count either. */
    expect_part(0, "retired", ARGUMENTS("consumer", "list"));
    /* Being started brings it back, at once and after it has gone again. */
    session = connect_as_consumer("trial");
    expect_part(3, "2 dead letters wait", ARGUMENTS("status"));
    db_close(&session);
    postgres_fixture_exec(postgres,
                          "INSERT INTO onceward.consumer_progress (consumer, scope, topic, partition, seq, owner,"
                          " incarnation, attempt, kind, next_offset, cluster_id) SELECT consumer, scope, topic,"
                          " partition, seq + 1, 'one', gen_random_uuid(), gen_random_uuid(), 'taken', 30,"
                          " cluster_id FROM onceward.consumer_state");
    expect_part(3, "Consumer trial is gone", ARGUMENTS("status"));
}

static void test_cli_acknowledges_dead_letters(void **state)
{
    (void)state;
    add_dead_letters("shop", 3);
    add_dead_letters("bank", 1);
    expect_part(3, "4 dead letters wait", ARGUMENTS("status"));
    expect_part(0, "More: --before", ARGUMENTS("dlq", "list", "--limit", "2"));
    char id[32];
    postgres_fixture_text(postgres, "SELECT dead_letter_id::text FROM onceward.dead_letters WHERE consumer = 'bank'",
                          id, sizeof id);
    struct cli_call call = expect(0, ARGUMENTS("dlq", "show", id, "--json"));
    cli_call_assert_member(&call, "dead_letter.reason_code", "23514");
    cli_call_assert_member(&call, "record.0.text", "k");
    cli_call_assert_member(&call, "record.1.name", "ce_id");
    cli_call_assert_member(&call, "record.2.hex", "00ff");
    cli_call_done(&call);
    expect_part(1, "no dead letter 999", ARGUMENTS("dlq", "show", "999"));
    expect_part(2, "--reason", ARGUMENTS("dlq", "acknowledge", id));
    expect_part(0, "acknowledged  1", ARGUMENTS("dlq", "acknowledge", id, "--reason", "paid by hand", "--by", "max"));
    expect_part(1, "waits to be acknowledged", ARGUMENTS("dlq", "acknowledge", id, "--reason", "again"));
    assert_int_equal(number("SELECT count(*) FROM onceward.audit WHERE action = 'dlq acknowledge' AND detail ->> 'by' ="
                            " 'max' AND detail ->> 'reason' = 'paid by hand'"),
                     1);
    call = expect(0, ARGUMENTS("dlq", "show", id, "--json"));
    cli_call_assert_member(&call, "dead_letter.acknowledged_by", "max");
    cli_call_done(&call);
    expect_part(3, "3 dead letters wait", ARGUMENTS("status"));
    /* Many at once: seen first, and only those that were seen. */
    expect_part(2, "--consumer", ARGUMENTS("dlq", "acknowledge", "--reason", "x", "--yes"));
    expect_part(6, "--dry-run", ARGUMENTS("dlq", "acknowledge", "--consumer", "shop", "--reason", "x"));
    call = expect(0, ARGUMENTS("dlq", "acknowledge", "--consumer", "shop", "--reason", "x", "--dry-run", "--json"));
    assert_int_equal(cli_call_number(&call, "acknowledged.selected"), 3);
    assert_int_equal(cli_call_number(&call, "acknowledged.acknowledged"), 0);
    char *digest = cli_call_text(&call, "acknowledged.digest");
    cli_call_done(&call);
    add_dead_letters("shop2", 1);
    postgres_fixture_exec(postgres, "UPDATE onceward.dead_letters SET consumer = 'shop' WHERE consumer = 'shop2'"
                                    " AND false; UPDATE onceward.dead_letters SET record_offset = 9, consumer = 'shop'"
                                    " WHERE consumer = 'shop2'");
    expect_part(6, "not the ones",
                ARGUMENTS("dlq", "acknowledge", "--consumer", "shop", "--reason", "x", "--digest", digest));
    free(digest);
    expect_part(0, "acknowledged  4", ARGUMENTS("dlq", "acknowledge", "--consumer", "shop", "--reason", "x", "--yes"));
    expect_part(0, "relays alive", ARGUMENTS("status"));
    expect_part(0, "No dead letter", ARGUMENTS("dlq", "list"));
    expect_part(0, "a constraint", ARGUMENTS("dlq", "list", "--all"));
}

static void test_cli_removes_what_is_not_in_use(void **state)
{
    (void)state;
    postgres_fixture_exec(postgres, "INSERT INTO onceward.topics (topic) VALUES ('orders');"
                                    "INSERT INTO onceward.routes (type, topic) VALUES ('order.placed', 'orders')");
    expect_part(6, "routes to it: 1 ", ARGUMENTS("topic", "remove", "orders"));
    postgres_fixture_exec(postgres, "SELECT onceward.publish('orders', 'k', 'order.placed', '{}')");
    expect_part(6, "--yes", ARGUMENTS("route", "remove", "order.placed"));
    expect_part(0, "would be removed", ARGUMENTS("route", "remove", "order.placed", "--yes", "--dry-run"));
    expect_part(0, "removed", ARGUMENTS("route", "remove", "order.placed", "--yes", "--reason", "old"));
    expect_part(1, "has no route", ARGUMENTS("route", "remove", "order.placed"));
    expect_part(6, "not published yet: 1", ARGUMENTS("topic", "remove", "orders"));
    postgres_fixture_exec(postgres, "DELETE FROM onceward.outbox");
    expect_part(0, "left alone", ARGUMENTS("topic", "remove", "orders"));
    expect_part(1, "not known", ARGUMENTS("topic", "remove", "orders"));
    assert_int_equal(number("SELECT count(*) FROM onceward.audit WHERE action IN ('topic remove', 'route remove')"), 2);
}

/* Others give ids of their own form. */
static void test_cli_events_finds_the_id_of_somebody_else(void **state)
{
    (void)state;
    add_consumer("shop");
    postgres_fixture_exec(postgres, "TRUNCATE onceward.sources; INSERT INTO onceward.sources VALUES"
                                    " ('shop', '/theirs', 'foreign'); INSERT INTO onceward.inbox_foreign (scope_id,"
                                    " payload_hash, source, id) SELECT scope_id, 1, '/theirs', 'order 7'"
                                    " FROM onceward.inbox_scopes");
    struct cli_call call = expect(0, ARGUMENTS("events", "order 7", "--json"));
    cli_call_assert_member(&call, "deliveries.0.status", "completed");
    cli_call_assert_member(&call, "deliveries.0.source", "/theirs");
    cli_call_done(&call);
    expect_part(1, "no event order 8", ARGUMENTS("events", "order 8"));
}

/* A page that is full is no promise of another. */
static void test_cli_events_says_more_only_if_there_is_more(void **state)
{
    (void)state;
    postgres_fixture_exec(postgres, "INSERT INTO onceward.topics (topic) VALUES ('orders');"
                                    "SELECT onceward.publish('orders', 'k', 't', '{}') FROM generate_series(1, 3)");
    expect_part(0, "More: --before", ARGUMENTS("events", "--status", "pending", "--limit", "2"));
    struct cli_call call = expect(0, ARGUMENTS("events", "--status", "pending", "--limit", "3"));
    assert_null(strstr(call.out, "More"));
    cli_call_done(&call);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cli_status_says_why_a_partition_was_stopped, setup, NULL),
        cmocka_unit_test_setup_teardown(test_cli_events_says_that_the_partition_was_stopped, setup, NULL),
        cmocka_unit_test_setup_teardown(test_cli_events_finds_the_id_of_somebody_else, setup, NULL),
        cmocka_unit_test_setup_teardown(test_cli_events_says_more_only_if_there_is_more, setup, NULL),
        cmocka_unit_test_setup_teardown(test_cli_retires_a_consumer_that_is_gone, setup, NULL),
        cmocka_unit_test_setup_teardown(test_cli_acknowledges_dead_letters, setup, NULL),
        cmocka_unit_test_setup_teardown(test_cli_removes_what_is_not_in_use, setup, NULL),
    };
    return cmocka_run_group_tests_name("test_cli_operations", tests, group_setup, group_teardown);
}
