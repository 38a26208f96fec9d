/* SPDX-License-Identifier: Apache-2.0
 *
 * The real consumer between a real topic and a real table: each effect once,
 * whatever is repeated, refused, killed or taken away meanwhile.
 */
#include "cmocka_all.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "flow_kit.h"
#include "kafka_feed.h"
#include "kafka_fixture.h"
#include "postgres_fixture.h"
#include "program.h"

#define WAIT_MS 20000

struct flow {
    struct postgres_fixture *postgres;
    struct kafka_fixture *kafka;
    struct kafka_feed *feed;
    struct program *consumer;
    char group[64];
};

static const char SINK[] =
    "CREATE TABLE effects (id text PRIMARY KEY, seq bigint NOT NULL, name text, times int DEFAULT 1, "
    "CHECK (name <> 'refused'));"
    "CREATE TABLE effect_log (n bigserial, id text);"
    "CREATE FUNCTION log_effect() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS "
    "'BEGIN INSERT INTO effect_log (id) VALUES (NEW.id); RETURN NEW; END';"
    "CREATE TRIGGER log_effect AFTER INSERT OR UPDATE ON effects FOR EACH ROW "
    "EXECUTE FUNCTION log_effect();"
    "GRANT SELECT, INSERT, UPDATE ON effects TO onceward_consumer";

static void sleep_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static int setup(void **state)
{
    static int count;
    struct flow *flow = calloc(1, sizeof *flow);
    assert_non_null(flow);
    *state = flow;
    flow->postgres = postgres_fixture_new();
    flow->kafka = kafka_fixture_new(3);
    assert_non_null(flow->postgres);
    assert_non_null(flow->kafka);
    flow->feed = kafka_feed_new(kafka_fixture_bootstrap(flow->kafka), kafka_fixture_topic(flow->kafka));
    postgres_fixture_exec(flow->postgres, SINK);
    snprintf(flow->group, sizeof flow->group, "%s-%d", kafka_fixture_topic(flow->kafka), ++count);
    return 0;
}

static int teardown(void **state)
{
    struct flow *flow = *state;
    program_free(&flow->consumer);
    kafka_feed_free(&flow->feed);
    kafka_fixture_free(&flow->kafka);
    postgres_fixture_free(&flow->postgres);
    free(flow);
    return 0;
}

/* Starts the consumer, with further arguments (ended by NULL) or NULL. */
static void start(struct flow *flow, const char *failpoints, const char *const *further)
{
    const char *arguments[40] = {
        "--database",      postgres_fixture_conninfo_as(flow->postgres, "onceward_consumer"),
        "--kafka",         kafka_fixture_bootstrap(flow->kafka),
        "--consumer",      flow->group,
        "--topics",        kafka_fixture_topic(flow->kafka),
        "--listen",        "127.0.0.1:0",
        "--sink-table",    "effects",
        "--sink-key",      "id",
        "--sink-columns",  "id=ce_id,seq=ce_sequence,name=/name",
        "--checkpoint-ms", "300",
    };
    size_t count = 18;
    for (size_t i = 0; further != NULL && further[i] != NULL; i++) {
        arguments[count++] = further[i];
    }
    program_free(&flow->consumer);
    flow->consumer = program_start("onceward-consumer", arguments, failpoints);
}

static void stop(struct flow *flow)
{
    program_signal(flow->consumer, SIGTERM);
    assert_int_equal(program_wait(flow->consumer, WAIT_MS), 0);
}

/* Waits until the query gives this number. */
static void expect(struct flow *flow, const char *sql, long long wanted)
{
    long long number = -1;
    for (int waited_ms = 0; waited_ms < WAIT_MS; waited_ms += 50) {
        number = postgres_fixture_number(flow->postgres, sql);
        if (number == wanted) {
            return;
        }
        sleep_ms(50);
    }
    program_show_log(flow->consumer);
    fprintf(stderr, "%s\n", sql);
    assert_int_equal(number, wanted);
}

static void put(struct flow *flow, int partition, int n, const char *value)
{
    char id[37];
    char key[16];
    kafka_feed_id(n, id);
    snprintf(key, sizeof key, "k%d", n % 7);
    kafka_feed_event(flow->feed, partition, id, n + 1, key, value);
}

static void test_consumer_applies_each_event_once(void **state)
{
    struct flow *flow = *state;
    for (int n = 0; n < 300; n++) {
        put(flow, n % 3, n, "{\"name\":\"a\"}");
        put(flow, (n + 1) % 3, n, "{\"name\":\"a\"}");
    }
    kafka_feed_flush(flow->feed);
    start(flow, NULL, NULL);
    expect(flow, "SELECT coalesce(sum(next_offset), 0) FROM onceward.consumer_state", 600);
    expect(flow, "SELECT count(*) FROM effects WHERE name = 'a'", 300);
    expect(flow, "SELECT count(*) FROM effect_log", 300);
    expect(flow, "SELECT count(*) FROM onceward.inbox WHERE status = 'completed'", 300);
    expect(flow, "SELECT count(*) FROM onceward.dead_letters", 0);
    stop(flow);
}

/* What holds in the end, however often it was killed: every event once, none lost. */
static void expect_each_once(struct flow *flow, int count)
{
    char sql[160];
    expect(flow, "SELECT coalesce(max(lag), 0) FROM (SELECT count(*) - 1 AS lag FROM effect_log GROUP BY id) l", 0);
    expect(flow, "SELECT count(*) FROM effects", count);
    expect(flow, "SELECT count(*) FROM onceward.inbox WHERE status = 'completed'", count);
    snprintf(sql, sizeof sql, "SELECT coalesce(sum(next_offset), 0) FROM onceward.consumer_state");
    expect(flow, sql, 2LL * count);
}

struct crash_case {
    const char *name;
    const char *failpoint;
};

static const struct crash_case crash_cases[] = {
    {"killed after the cursor, before the inbox", "consumer.after_cursor_before_inbox=kill@3"},
    {"killed after the inbox, before the sink", "consumer.after_inbox_before_sink=kill@3"},
    {"killed after the sink, before the commit", "consumer.after_sink_before_commit=kill@3"},
    {"killed after the commit", "consumer.after_commit=kill@3"},
    {"killed after the commit, before the offset hint", "consumer.after_commit_before_hint=kill@3"},
};

static void test_consumer_survives_a_kill(void **state)
{
    const struct crash_case *row = *state;
    void *flow_state = NULL;
    setup(&flow_state);
    struct flow *flow = flow_state;
    for (int n = 0; n < 200; n++) {
        put(flow, n % 3, n, "{\"name\":\"a\"}");
        put(flow, (n + 1) % 3, n, "{\"name\":\"a\"}");
    }
    kafka_feed_flush(flow->feed);
    const char *const small[] = {"--batch-records-max", "40", NULL};
    start(flow, row->failpoint, small);
    if (program_wait(flow->consumer, WAIT_MS) != -SIGKILL) {
        program_show_log(flow->consumer);
        fail_msg("%s: it did not die there", row->name);
    }
    start(flow, NULL, small);
    expect_each_once(flow, 200);
    expect(flow, "SELECT count(*) FROM onceward.dead_letters", 0);
    stop(flow);
    teardown(&flow_state);
}

#define BAD_ID "not-a-uuid"

static void put_bad(struct flow *flow)
{
    static const char *const no_id[] = {"ce_specversion", "1.0", "ce_source", "/onceward", "ce_type", "t", NULL};
    static const char *const bad_id[] = {"ce_specversion", "1.0",     "ce_id", BAD_ID, "ce_source",
                                         "/onceward",      "ce_type", "t",     NULL};
    static const char *const far_id[] = {
        "ce_specversion", "1.0", "ce_id", "7fffffff-ffff-7fff-8fff-ffffffffffff", "ce_source", "/onceward",
        "ce_type",        "t",   NULL};
    static const char *const odd_name[] = {"ce_specversion", "0.3", "\xff\xfe", "x", NULL};
    static const char *const no_sequence[] = {"ce_specversion", "1.0",     "ce_id", "any id 1", "ce_source",
                                              "/elsewhere",     "ce_type", "t",     NULL};
    kafka_feed_put(flow->feed, 0, "k", "{}", NULL);
    kafka_feed_put(flow->feed, 0, "k", "{}", no_id);
    kafka_feed_put(flow->feed, 0, "k", "{}", bad_id);
    kafka_feed_put(flow->feed, 0, "k", "{}", far_id);
    kafka_feed_put(flow->feed, 0, NULL, NULL, odd_name);
    kafka_feed_put(flow->feed, 0, "k", "{}", no_sequence);
}

static long long count_reason(struct flow *flow, const char *code)
{
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM onceward.dead_letters WHERE reason_code = '%s'", code);
    return postgres_fixture_number(flow->postgres, sql);
}

static void test_consumer_sets_aside_every_kind_of_bad_record(void **state)
{
    struct flow *flow = *state;
    for (int n = 0; n < 50; n++) {
        put(flow, n % 3, n, n == 20 ? "{\"name\":\"refused\"}" : n == 30 ? "no json" : "{\"name\":\"a\"}");
    }
    put_bad(flow);
    put(flow, 1, 7, "{\"name\":\"another payload\"}");
    kafka_feed_flush(flow->feed);
    start(flow, NULL, NULL);
    expect(flow, "SELECT coalesce(sum(next_offset), 0) FROM onceward.consumer_state", 57);
    expect(flow, "SELECT count(*) FROM effects WHERE name = 'a'", 48);
    expect(flow, "SELECT count(*) FROM onceward.inbox WHERE status = 'failed'", 2);
    expect(flow, "SELECT count(*) FROM onceward.inbox_foreign WHERE status = 'failed'", 1);
    expect(flow, "SELECT count(*) FROM onceward.dead_letters", 9);
    assert_int_equal(count_reason(flow, "ce_specversion_missing"), 1);
    assert_int_equal(count_reason(flow, "ce_id_missing"), 1);
    assert_int_equal(count_reason(flow, "event_id_invalid"), 1);
    assert_int_equal(count_reason(flow, "event_id_outside_inbox"), 1);
    assert_int_equal(count_reason(flow, "ce_specversion_unsupported"), 1);
    assert_int_equal(count_reason(flow, "ce_sequence_missing"), 1);
    assert_int_equal(count_reason(flow, "payload_differs"), 1);
    assert_int_equal(count_reason(flow, "23514"), 1);
    assert_int_equal(count_reason(flow, "22P02"), 1);
    expect(flow, "SELECT count(*) FROM onceward.dead_letters WHERE value = 'no json' AND key = 'k2'", 1);
    expect(flow, "SELECT count(*) FROM onceward.dead_letters WHERE header_names[2] = '\\xfffe' AND value IS NULL", 1);
    stop(flow);
}

static void test_consumer_waits_for_a_sink_that_is_down(void **state)
{
    struct flow *flow = *state;
    postgres_fixture_exec(flow->postgres, "ALTER TABLE effects RENAME TO away");
    for (int n = 0; n < 20; n++) {
        put(flow, n % 3, n, "{\"name\":\"a\"}");
    }
    kafka_feed_flush(flow->feed);
    start(flow, NULL, NULL);
    assert_true(program_logs(flow->consumer, "sink_table_missing", WAIT_MS));
    postgres_fixture_exec(flow->postgres, "ALTER TABLE away RENAME TO effects");
    expect(flow, "SELECT count(*) FROM effects", 20);
    postgres_fixture_exec(flow->postgres, "REVOKE INSERT ON effects FROM onceward_consumer");
    for (int n = 20; n < 40; n++) {
        put(flow, n % 3, n, "{\"name\":\"a\"}");
    }
    kafka_feed_flush(flow->feed);
    assert_true(program_logs(flow->consumer, "code=42501", WAIT_MS));
    sleep_ms(1000);
    postgres_fixture_exec(flow->postgres, "GRANT INSERT ON effects TO onceward_consumer");
    expect(flow, "SELECT count(*) FROM effects", 40);
    expect(flow, "SELECT count(*) FROM onceward.dead_letters", 0);
    /* However often it tried, each of the two faults is one line, and so is its end. */
    assert_int_equal(program_log_count(flow->consumer, " consumer.suspended"), 2);
    assert_int_equal(program_log_count(flow->consumer, " consumer.running"), 2);
    stop(flow);
}

static void test_consumer_goes_on_when_its_connection_is_cut(void **state)
{
    struct flow *flow = *state;
    start(flow, NULL, NULL);
    for (int n = 0; n < 300; n++) {
        put(flow, n % 3, n, "{\"name\":\"a\"}");
        put(flow, (n + 1) % 3, n, "{\"name\":\"a\"}");
        if (n % 60 == 30) {
            kafka_feed_flush(flow->feed);
            sleep_ms(200);
            postgres_fixture_exec(flow->postgres,
                                  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = "
                                  "'onceward_consumer' AND datname = current_database()");
        }
    }
    kafka_feed_flush(flow->feed);
    expect_each_once(flow, 300);
    stop(flow);
}

static void test_consumer_obeys_a_rewind(void **state)
{
    struct flow *flow = *state;
    for (int n = 0; n < 30; n++) {
        put(flow, n % 3, n, "{\"name\":\"a\"}");
    }
    kafka_feed_flush(flow->feed);
    start(flow, NULL, NULL);
    expect(flow, "SELECT coalesce(sum(next_offset), 0) FROM onceward.consumer_state", 30);
    /* As an operator does it; what was applied and then forgotten is applied again. */
    postgres_fixture_exec(
        flow->postgres,
        "DELETE FROM onceward.inbox; DELETE FROM effects;"
        "INSERT INTO onceward.consumer_progress (consumer, scope, topic, partition, seq, owner, "
        "incarnation, attempt, kind, next_offset, cluster_id) SELECT consumer, scope, topic, partition, "
        "seq + 1, 'operator', gen_random_uuid(), gen_random_uuid(), 'rewound', 0, cluster_id "
        "FROM onceward.consumer_state");
    expect(flow, "SELECT count(*) FROM effects", 30);
    expect(flow, "SELECT coalesce(sum(next_offset), 0) FROM onceward.consumer_state WHERE kind = 'moved'", 30);
    stop(flow);
}

static void test_consumer_halts_before_it_drains_a_topic(void **state)
{
    struct flow *flow = *state;
    const char *const strict[] = {"--dead-letters-in-a-row-max", "5", "--batch-records-max", "10", NULL};
    for (int n = 0; n < 60; n++) {
        put(flow, 0, n, n < 10 ? "{\"name\":\"a\"}" : "{\"name\":\"refused\"}");
    }
    kafka_feed_flush(flow->feed);
    start(flow, NULL, strict);
    assert_true(program_logs(flow->consumer, "consumer.halted", WAIT_MS));
    expect(flow, "SELECT count(*) FROM effects", 10);
    expect(flow, "SELECT count(*) FROM onceward.dead_letters", 5);
    assert_int_equal(program_log_count(flow->consumer, "consumer.dead_letter"), 5);
    expect(flow, "SELECT count(*) FROM onceward.consumer_state WHERE stop_code = 'halted'", 3);
    stop(flow);
}

static void test_consumer_applies_by_a_users_statement(void **state)
{
    struct flow *flow = *state;
    for (int n = 0; n < 30; n++) {
        put(flow, n % 3, n, "{\"name\":\"a\"}");
    }
    kafka_feed_flush(flow->feed);
    const char *arguments[] = {
        "--database",
        postgres_fixture_conninfo_as(flow->postgres, "onceward_consumer"),
        "--kafka",
        kafka_fixture_bootstrap(flow->kafka),
        "--consumer",
        flow->group,
        "--topics",
        kafka_fixture_topic(flow->kafka),
        "--listen",
        "127.0.0.1:0",
        "--sink-sql",
        "with named as (select ce_id, ce_sequence, value ->> 'name' as name from events) "
        "insert into effects (id, seq, name) select * from named",
        NULL,
    };
    flow->consumer = program_start("onceward-consumer", arguments, NULL);
    expect(flow, "SELECT count(*) FROM effects WHERE name = 'a' AND seq > 0", 30);
    stop(flow);
}

static void test_consumer_stops_at_a_topic_made_anew(void **state)
{
    struct flow *flow = *state;
    for (int n = 0; n < 30; n++) {
        put(flow, n % 3, n, "{\"name\":\"a\"}");
    }
    kafka_feed_flush(flow->feed);
    start(flow, NULL, NULL);
    expect(flow, "SELECT count(*) FROM effects", 30);
    assert_true(kafka_fixture_recreate(flow->kafka));
    kafka_feed_free(&flow->feed);
    flow->feed = kafka_feed_new(kafka_fixture_bootstrap(flow->kafka), kafka_fixture_topic(flow->kafka));
    for (int n = 100; n < 160; n++) { /* Refilled past every cursor. */
        put(flow, n % 3, n, "{\"name\":\"b\"}");
    }
    kafka_feed_flush(flow->feed);
    /* A look between the recreation and the refill finds a log that is too short, a later one another record. */
    if (!program_logs(flow->consumer, "consumer.partition_stopped", WAIT_MS) ||
        (!program_logs(flow->consumer, "code=record_differs", 0) &&
         !program_logs(flow->consumer, "code=log_shorter", 0))) {
        program_show_log(flow->consumer);
        fail_msg("the new topic went unseen");
    }
    /* Every partition is stopped, and whoever asks the database or the process is told so. */
    expect(flow, "SELECT count(*) FROM onceward.consumer_state WHERE stop_code IN ('record_differs', 'log_shorter')",
           3);
    assert_true(flow_kit_waits_for_answer(program_port(flow->consumer), "/readyz", "\"reason\":\"3 stopped: "));
    stop(flow);
}

static void test_consumer_stops_where_records_are_gone(void **state)
{
    struct flow *flow = *state;
    for (int n = 0; n < 30; n++) {
        put(flow, n % 3, n, "{\"name\":\"a\"}");
    }
    kafka_feed_flush(flow->feed);
    start(flow, NULL, NULL);
    expect(flow, "SELECT count(*) FROM effects", 30);
    stop(flow);
    for (int n = 30; n < 60; n++) {
        put(flow, n % 3, n, "{\"name\":\"a\"}");
    }
    kafka_feed_flush(flow->feed);
    kafka_feed_truncate(flow->feed, 1, 15);
    start(flow, NULL, NULL);
    if (!program_logs(flow->consumer, "5 records were deleted before they were applied", WAIT_MS)) {
        program_show_log(flow->consumer);
        fail_msg("the gap went unseen");
    }
    expect(flow, "SELECT count(*) FROM effects", 50); /* The other partitions go on. */
    expect(flow, "SELECT count(*) FROM onceward.consumer_state WHERE stop_code = 'records_gone' AND partition = 1", 1);
    postgres_fixture_exec(
        flow->postgres,
        "INSERT INTO onceward.consumer_progress (consumer, scope, topic, partition, seq, owner, "
        "incarnation, attempt, kind, next_offset, cluster_id) SELECT consumer, scope, topic, partition, "
        "seq + 1, 'operator', gen_random_uuid(), gen_random_uuid(), 'rewound', 15, cluster_id "
        "FROM onceward.consumer_state WHERE partition = 1");
    expect(flow, "SELECT count(*) FROM effects", 55);
    expect(flow, "SELECT count(*) FROM onceward.consumer_state WHERE stop_code IS NOT NULL", 0);
    stop(flow);
}

static void test_consumer_goes_on_where_retention_took_what_it_had(void **state)
{
    struct flow *flow = *state;
    for (int n = 0; n < 30; n++) {
        put(flow, n % 3, n, "{\"name\":\"a\"}");
    }
    kafka_feed_flush(flow->feed);
    start(flow, NULL, NULL);
    expect(flow, "SELECT count(*) FROM effects", 30);
    stop(flow);
    kafka_feed_truncate(flow->feed, 0, 10);
    start(flow, NULL, NULL);
    for (int n = 30; n < 60; n++) {
        put(flow, n % 3, n, "{\"name\":\"a\"}");
    }
    kafka_feed_flush(flow->feed);
    expect(flow, "SELECT count(*) FROM effects", 60);
    stop(flow);
}

/* Another member of the same group. */
static struct program *start_member(struct flow *flow, const char *name)
{
    const char *const arguments[] = {"--database",
                                     postgres_fixture_conninfo_as(flow->postgres, "onceward_consumer"),
                                     "--kafka",
                                     kafka_fixture_bootstrap(flow->kafka),
                                     "--consumer",
                                     flow->group,
                                     "--topics",
                                     kafka_fixture_topic(flow->kafka),
                                     "--listen",
                                     "127.0.0.1:0",
                                     "--sink-table",
                                     "effects",
                                     "--sink-key",
                                     "id",
                                     "--sink-columns",
                                     "id=ce_id,seq=ce_sequence,name=/name",
                                     "--batch-records-max",
                                     "50",
                                     "--name",
                                     name,
                                     NULL};
    return program_start("onceward-consumer", arguments, NULL);
}

/* Three members, copies on other partitions, and one of them killed and started again all the while. */
static void test_consumer_applies_once_among_members_that_come_and_go(void **state)
{
    struct flow *flow = *state;
    struct program *members[3];
    char name[16];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "m%d", i);
        members[i] = start_member(flow, name);
    }
    for (int n = 0; n < 2100; n++) {
        put(flow, n % 3, n, "{\"name\":\"a\"}");
        put(flow, (n + 1) % 3, n, "{\"name\":\"a\"}");
        put(flow, (n + 2) % 3, n, "{\"name\":\"a\"}");
        if (n % 700 == 350) {
            kafka_feed_flush(flow->feed);
            sleep_ms(1500);
            snprintf(name, sizeof name, "m%d", n / 700);
            program_signal(members[n / 700], SIGKILL);
            program_free(&members[n / 700]);
            members[n / 700] = start_member(flow, name);
        }
    }
    kafka_feed_flush(flow->feed);
    flow->consumer = members[0];
    expect(flow, "SELECT coalesce(sum(next_offset), 0) FROM onceward.consumer_state", 6300);
    expect(flow, "SELECT count(*) FROM effects", 2100);
    expect(flow, "SELECT count(*) FROM effect_log", 2100);
    expect(flow, "SELECT count(*) FROM onceward.dead_letters", 0);
    for (int i = 0; i < 3; i++) {
        program_signal(members[i], SIGTERM);
        assert_int_equal(program_wait(members[i], WAIT_MS), 0);
    }
    program_free(&members[1]);
    program_free(&members[2]);
}

/* One that was frozen while another took its name applies nothing when it thaws, and ends. */
static void test_consumer_ends_when_another_has_its_name(void **state)
{
    struct flow *flow = *state;
    put(flow, 0, 1, "{\"name\":\"a\"}");
    kafka_feed_flush(flow->feed);
    struct program *frozen = start_member(flow, "twin");
    flow->consumer = frozen;
    expect(flow, "SELECT count(*) FROM effects", 1);
    program_signal(frozen, SIGSTOP);
    flow->consumer = start_member(flow, "twin");
    for (int n = 2; n < 50; n++) {
        put(flow, n % 3, n, "{\"name\":\"a\"}");
    }
    kafka_feed_flush(flow->feed);
    expect(flow, "SELECT count(*) FROM effects", 49);
    program_signal(frozen, SIGCONT);
    int status = program_wait(frozen, WAIT_MS);
    if (status != 1) {
        program_show_log(frozen);
    }
    assert_int_equal(status, 1);
    put(flow, 0, 60, "{\"name\":\"a\"}");
    kafka_feed_flush(flow->feed);
    expect(flow, "SELECT count(*) FROM effects", 50);
    expect(flow, "SELECT count(*) FROM effect_log", 50);
    stop(flow);
    program_free(&frozen);
}

/* Neither the broker nor the database is there at first; it says so and goes on. */
static void test_consumer_starts_while_everything_is_down(void **state)
{
    struct flow *flow = *state;
    const char *const arguments[] = {
        "--database", "host=127.0.0.1 port=1 user=onceward_consumer dbname=x connect_timeout=1",
        "--kafka",    "127.0.0.1:1",
        "--consumer", flow->group,
        "--topics",   "t",
        "--listen",   "127.0.0.1:0",
        "--sink-sql", "insert into x select 1 from events",
        NULL};
    flow->consumer = program_start("onceward-consumer", arguments, NULL);
    assert_true(program_logs(flow->consumer, "consumer.suspended", WAIT_MS));
    char answer[4096];
    int port = program_port(flow->consumer);
    assert_int_equal(program_get(port, "/livez", answer, sizeof answer), 200);
    assert_int_equal(program_get(port, "/readyz", answer, sizeof answer), 503);
    assert_non_null(strstr(answer, "database"));
    assert_non_null(strstr(answer, "kafka"));
    assert_int_equal(program_get(port, "/metrics", answer, sizeof answer), 200);
    assert_non_null(strstr(answer, "onceward_consumer_applied_total 0"));
    stop(flow);
    start(flow, NULL, NULL);
    put(flow, 0, 1, "{\"name\":\"a\"}");
    kafka_feed_flush(flow->feed);
    expect(flow, "SELECT count(*) FROM effects", 1);
    port = program_port(flow->consumer);
    int status = 0;
    for (int i = 0; i < 100 && status != 200; i++) {
        status = program_get(port, "/readyz", answer, sizeof answer);
        sleep_ms(50);
    }
    assert_int_equal(status, 200);
    stop(flow);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_consumer_applies_each_event_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_consumer_sets_aside_every_kind_of_bad_record, setup, teardown),
        cmocka_unit_test_setup_teardown(test_consumer_waits_for_a_sink_that_is_down, setup, teardown),
        cmocka_unit_test_setup_teardown(test_consumer_goes_on_when_its_connection_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_consumer_obeys_a_rewind, setup, teardown),
        cmocka_unit_test_setup_teardown(test_consumer_halts_before_it_drains_a_topic, setup, teardown),
        cmocka_unit_test_setup_teardown(test_consumer_applies_by_a_users_statement, setup, teardown),
        cmocka_unit_test_setup_teardown(test_consumer_stops_at_a_topic_made_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(test_consumer_stops_where_records_are_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_consumer_goes_on_where_retention_took_what_it_had, setup, teardown),
        cmocka_unit_test_setup_teardown(test_consumer_applies_once_among_members_that_come_and_go, setup, teardown),
        cmocka_unit_test_setup_teardown(test_consumer_ends_when_another_has_its_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_consumer_starts_while_everything_is_down, setup, teardown),
    };
    int failed = PROGRAM_HAS_FAILPOINTS ? RUN_CASES("consumer_crash", test_consumer_survives_a_kill, crash_cases) : 0;
    return failed + cmocka_run_group_tests_name("consumer_flow", tests, NULL, NULL);
}
