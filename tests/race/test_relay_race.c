/* SPDX-License-Identifier: Apache-2.0
 *
 * Six relays, each a process in a single pass, drain fifty events: each event
 * is claimed once. The twin is six sessions that take a lane by a select and
 * then an update; by one update that also looks they do as well as the relays.
 */
#include "cmocka_all.h"

#include <stdlib.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "base/clock.h"
#include "kafka_fixture.h"
#include "postgres_fixture.h"
#include "program.h"
#include "topic_reader.h"

#define RIVAL_COUNT 6
#define EVENT_COUNT 50
#define PARTITION_COUNT 3
#define RUN_COUNT 10
#define CAUGHT_COUNT_MIN 9
#define PROCESS_RUN_COUNT 3
#define WAIT_MS 30000

struct race {
    struct postgres_fixture *postgres;
    struct kafka_fixture *kafka;
};

static const char *topic_of(const struct race *race)
{
    return race->kafka == NULL ? "orders" : kafka_fixture_topic(race->kafka);
}

static void submit(struct race *race)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             "INSERT INTO onceward.topics (topic) VALUES ('%s');"
             "SELECT onceward.publish('%s', 'key-' || n, 't', to_json(n)) FROM generate_series(1, %d) n",
             topic_of(race), topic_of(race), EVENT_COUNT);
    postgres_fixture_exec(race->postgres, sql);
}

/* The check that the relays and the twin are put to: claims is a query of one row per claim. */
static bool is_each_claimed_once(struct race *race, const char *claims)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM (SELECT o.id FROM onceward.outbox o LEFT JOIN (%s) c ON c.id = o.id GROUP BY o.id"
             " HAVING count(c.id) = 1) once",
             claims);
    return postgres_fixture_number(race->postgres, sql) == EVENT_COUNT;
}

/* ---- The barrier: nobody gets past the table until all wait for it ---- */

static void close_barrier(struct race *race, const char *table)
{
    char sql[128];
    snprintf(sql, sizeof sql, "BEGIN; LOCK TABLE %s IN ACCESS EXCLUSIVE MODE", table);
    postgres_fixture_exec(race->postgres, sql);
}

static void open_barrier(struct race *race, int count)
{
    int64_t until_ms = clock_monotonic_ms() + WAIT_MS;
    while (postgres_fixture_number(race->postgres, "SELECT count(*) FROM pg_locks l JOIN pg_database d"
                                                   " ON d.oid = l.database WHERE d.datname = current_database()"
                                                   " AND NOT l.granted") < count) {
        assert_true(clock_monotonic_ms() < until_ms);
        usleep(5000);
    }
    postgres_fixture_exec(race->postgres, "COMMIT");
}

/* ---- The relays ---- */

static struct program *start_relay(struct race *race, int index)
{
    char name[24];
    snprintf(name, sizeof name, "relay-%d", index);
    const char *const arguments[] = {"--database", postgres_fixture_conninfo_as(race->postgres, "onceward_relay"),
                                     "--kafka",    kafka_fixture_bootstrap(race->kafka),
                                     "--name",     name,
                                     "--once",     NULL};
    return program_start("outbox-relay", arguments, NULL);
}

static void run_relays(struct race *race, int count)
{
    struct program *relays[RIVAL_COUNT];
    close_barrier(race, "onceward.relays");
    for (int i = 0; i < count; i++) {
        relays[i] = start_relay(race, i);
    }
    open_barrier(race, count);
    for (int i = 0; i < count; i++) {
        int code = program_wait(relays[i], WAIT_MS);
        if (code != 0) {
            program_show_log(relays[i]);
        }
        program_free(&relays[i]);
        assert_int_equal(code, 0);
    }
}

static void test_six_relays_claim_each_event_once(void **state)
{
    (void)state;
    for (int run = 0; run < PROCESS_RUN_COUNT; run++) {
        struct race race = {.postgres = postgres_fixture_new(), .kafka = kafka_fixture_new(PARTITION_COUNT)};
        struct topic_record *records = NULL;
        assert_non_null(race.postgres);
        assert_non_null(race.kafka);
        submit(&race);
        run_relays(&race, RIVAL_COUNT);
        assert_true(is_each_claimed_once(&race, "SELECT unnest(settled_ids) AS id FROM onceward.lane_progress"));
        assert_int_equal(
            topic_reader_read(kafka_fixture_bootstrap(race.kafka), topic_of(&race), PARTITION_COUNT, &records),
            EVENT_COUNT);
        free(records);
        kafka_fixture_free(&race.kafka);
        postgres_fixture_free(&race.postgres);
    }
}

/* ---- The twin ---- */

/* The switch is is_two_steps. The same pause stands before both updates, so that a busy machine, which lets one session
 * run through before the next one wakes, does not hide the race. */
static const char TWIN[] =
    "CREATE TABLE gate (); CREATE TABLE claims (id bigint, relay text);"
    "CREATE FUNCTION twin_take(wanted smallint, relay text, is_two_steps boolean) RETURNS boolean LANGUAGE plpgsql AS "
    "$$"
    "BEGIN"
    " IF is_two_steps THEN"
    "  IF NOT EXISTS (SELECT FROM onceward.lanes l WHERE l.lane = wanted AND l.owner IS NULL) THEN RETURN false; END "
    "IF;"
    "  PERFORM pg_sleep(0.01);"
    "  UPDATE onceward.lanes l SET owner = relay WHERE l.lane = wanted;"
    " ELSE"
    "  PERFORM pg_sleep(0.01);"
    "  UPDATE onceward.lanes l SET owner = relay WHERE l.lane = wanted AND l.owner IS NULL;"
    " END IF;"
    " RETURN FOUND;"
    "END $$;"
    "CREATE FUNCTION twin_pass(relay text, is_two_steps boolean) RETURNS void LANGUAGE plpgsql AS $$"
    "BEGIN"
    " PERFORM FROM gate;"
    " FOR wanted IN 0..7 LOOP"
    "  IF twin_take(wanted::smallint, relay, is_two_steps) THEN"
    "   INSERT INTO claims SELECT o.id, relay FROM onceward.outbox o WHERE o.lane = wanted;"
    "  END IF;"
    " END LOOP;"
    "END $$";

static void run_twins(struct race *race, int count, bool is_two_steps)
{
    PGconn *twins[RIVAL_COUNT];
    for (int i = 0; i < count; i++) {
        twins[i] = PQconnectdb(postgres_fixture_conninfo(race->postgres));
        assert_int_equal(PQstatus(twins[i]), CONNECTION_OK);
    }
    close_barrier(race, "gate");
    for (int i = 0; i < count; i++) {
        char sql[128];
        snprintf(sql, sizeof sql, "SELECT twin_pass('twin-%d', %s)", i, is_two_steps ? "true" : "false");
        assert_int_equal(PQsendQuery(twins[i], sql), 1);
    }
    open_barrier(race, count);
    for (int i = 0; i < count; i++) {
        PGresult *result = PQgetResult(twins[i]);
        assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
        PQclear(result);
        PQfinish(twins[i]);
    }
}

/* In how many runs it was not so that each event was claimed once. */
static int count_caught(int rival_count, bool is_two_steps)
{
    struct race race = {.postgres = postgres_fixture_new()};
    int caught_count = 0;
    assert_non_null(race.postgres);
    submit(&race);
    postgres_fixture_exec(race.postgres, TWIN);
    for (int run = 0; run < RUN_COUNT; run++) {
        run_twins(&race, rival_count, is_two_steps);
        caught_count += !is_each_claimed_once(&race, "SELECT id FROM claims");
        postgres_fixture_exec(race.postgres, "DELETE FROM claims; UPDATE onceward.lanes SET owner = NULL");
    }
    postgres_fixture_free(&race.postgres);
    return caught_count;
}

static void test_the_twin_does_well_alone_and_with_one_step(void **state)
{
    (void)state;
    assert_int_equal(count_caught(1, true), 0);
    assert_int_equal(count_caught(RIVAL_COUNT, false), 0);
}

static void test_a_lane_taken_by_select_then_update_is_caught(void **state)
{
    (void)state;
    int caught_count = count_caught(RIVAL_COUNT, true);
    print_message("caught in %d of %d runs\n", caught_count, RUN_COUNT);
    assert_true(caught_count >= CAUGHT_COUNT_MIN);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_six_relays_claim_each_event_once),
        cmocka_unit_test(test_the_twin_does_well_alone_and_with_one_step),
        cmocka_unit_test(test_a_lane_taken_by_select_then_update_is_caught),
    };
    return cmocka_run_group_tests_name("relay_race", tests, NULL, NULL);
}
