/* SPDX-License-Identifier: Apache-2.0
 *
 * Three consumers, each a process, share a topic on which every event stands
 * five times, on all partitions: each event has one effect. The twin is the
 * same consumer with a switch, on an inbox without its key: it looks first and
 * inserts then. It does as well alone, and the same race must find it out.
 */
#include "cmocka_all.h"

#include <unistd.h>

#include "base/clock.h"
#include "flow_kit.h"
#include "kafka_feed.h"
#include "kafka_fixture.h"
#include "postgres_fixture.h"
#include "program.h"

#define RIVAL_COUNT 3
#define PARTITION_COUNT 3
#define COPY_COUNT 5
#define EVENT_COUNT 10000
#define TWIN_EVENT_COUNT 200 /* Enough to be caught. */
#define RUN_COUNT 10
#define CAUGHT_COUNT_MIN 9
#define WAIT_MS 60000

/* The twin differs from the consumer by the switch; the key would mask it. */
static const char TWIN_SWITCH[] = "consumer.check_then_act=error";
static const char TWIN_SCHEMA[] = "ALTER TABLE onceward.inbox DROP CONSTRAINT inbox_pkey;"
                                  "CREATE INDEX ON onceward.inbox (scope_id, event_id)";

struct race {
    struct postgres_fixture *postgres;
    struct kafka_fixture *kafka;
    struct kafka_feed *feed;
    struct program *consumers[RIVAL_COUNT];
    int rival_count;
    int fed_count; /* Events. */
};

/* ---- The consumers ---- */

static void start_consumer(struct race *race, int index, const char *failpoints)
{
    char name[16];
    snprintf(name, sizeof name, "c%d", index);
    const char *const arguments[] = {
        "--database", postgres_fixture_conninfo_as(race->postgres, "onceward_consumer"),
        "--kafka",    kafka_fixture_bootstrap(race->kafka),
        "--topics",   kafka_fixture_topic(race->kafka),
        "--consumer", kafka_fixture_topic(race->kafka),
        "--name",     name,
        "--listen",   "127.0.0.1:0",
        "--sink-sql", "INSERT INTO effects (id) SELECT ce_id FROM events",
        NULL,
    };
    race->consumers[index] = program_start("onceward-consumer", arguments, failpoints);
}

static bool waits_for_number(struct race *race, const char *sql, long long wanted)
{
    int64_t until_ms = clock_monotonic_ms() + WAIT_MS;
    long long number = -1;
    while (clock_monotonic_ms() < until_ms) {
        number = postgres_fixture_number(race->postgres, sql);
        if (number == wanted) {
            return true;
        }
        usleep(20000);
    }
    fprintf(stderr, "%s: %lld\n", sql, number);
    for (int i = 0; i < race->rival_count; i++) {
        program_show_log(race->consumers[i]);
    }
    return false;
}

/* They run, and each has its part of the partitions. */
static void begin(struct race *race, int rival_count, bool is_twin)
{
    *race = (struct race){.postgres = postgres_fixture_new(), .kafka = kafka_fixture_new(PARTITION_COUNT)};
    assert_non_null(race->postgres);
    assert_non_null(race->kafka);
    race->rival_count = rival_count;
    race->feed = kafka_feed_new(kafka_fixture_bootstrap(race->kafka), kafka_fixture_topic(race->kafka));
    postgres_fixture_exec(race->postgres,
                          "CREATE TABLE effects (id text); GRANT SELECT, INSERT ON effects TO onceward_consumer");
    if (is_twin) {
        postgres_fixture_exec(race->postgres, TWIN_SCHEMA);
    }
    for (int i = 0; i < rival_count; i++) {
        start_consumer(race, i, is_twin ? TWIN_SWITCH : NULL);
    }
    assert_true(waits_for_number(
        race, "SELECT count(DISTINCT owner) FROM onceward.consumer_state WHERE kind <> 'registered'", rival_count));
}

static void end(struct race *race)
{
    for (int i = 0; i < race->rival_count; i++) {
        program_free(&race->consumers[i]);
    }
    kafka_feed_free(&race->feed);
    kafka_fixture_free(&race->kafka);
    postgres_fixture_free(&race->postgres);
}

/* ---- The race ---- */

static void feed(struct race *race, int count)
{
    for (int n = race->fed_count; n < race->fed_count + count; n++) {
        char id[37];
        char key[16];
        kafka_feed_id(n, id);
        snprintf(key, sizeof key, "k%d", n % 7);
        for (int copy = 0; copy < COPY_COUNT; copy++) {
            kafka_feed_event(race->feed, (n + copy) % PARTITION_COUNT, id, n + 1, key, "{}");
        }
    }
    race->fed_count += count;
    kafka_feed_flush(race->feed);
}

/* The barrier: nobody gets at the inbox until all of them want to. Who waits too long begins anew, and waits again. */
static void feed_behind_barrier(struct race *race, int count)
{
    postgres_fixture_exec(race->postgres, "BEGIN; LOCK TABLE onceward.inbox IN ACCESS EXCLUSIVE MODE");
    feed(race, count);
    bool is_full = waits_for_number(race,
                                    "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
                                    " WHERE d.datname = current_database() AND NOT l.granted"
                                    " AND l.relation = 'onceward.inbox'::regclass",
                                    race->rival_count);
    postgres_fixture_exec(race->postgres, "COMMIT");
    assert_true(is_full);
}

/* Gives the number of effects beyond the first, over all events of this round. Each has had one at least. */
static long long run_once(struct race *race, int count)
{
    postgres_fixture_exec(race->postgres, "TRUNCATE effects");
    feed_behind_barrier(race, count);
    assert_true(waits_for_number(race, "SELECT sum(next_offset)::bigint FROM onceward.consumer_state",
                                 (long long)race->fed_count * COPY_COUNT));
    assert_int_equal(postgres_fixture_number(race->postgres, "SELECT count(DISTINCT id) FROM effects"), count);
    assert_int_equal(postgres_fixture_number(race->postgres, "SELECT count(*) FROM onceward.dead_letters"), 0);
    return postgres_fixture_number(race->postgres, "SELECT count(*) - count(DISTINCT id) FROM effects");
}

static void test_each_event_has_one_effect(void **state)
{
    (void)state;
    struct race race;
    begin(&race, RIVAL_COUNT, false);
    int64_t begun_ms = clock_monotonic_ms();
    assert_int_equal(run_once(&race, EVENT_COUNT), 0);
    print_message("%d events, each %d times, in %lld ms\n", EVENT_COUNT, COPY_COUNT,
                  (long long)(clock_monotonic_ms() - begun_ms));
    for (int run = 0; run < RUN_COUNT; run++) {
        assert_int_equal(run_once(&race, TWIN_EVENT_COUNT), 0);
    }
    end(&race);
}

static void test_the_twin_does_well_alone(void **state)
{
    (void)state;
    struct race race;
    begin(&race, 1, true);
    assert_int_equal(run_once(&race, TWIN_EVENT_COUNT), 0);
    assert_int_equal(run_once(&race, TWIN_EVENT_COUNT), 0);
    end(&race);
}

static void test_a_select_then_insert_is_caught(void **state)
{
    (void)state;
    struct race race;
    int caught_count = 0;
    begin(&race, RIVAL_COUNT, true);
    for (int run = 0; run < RUN_COUNT; run++) {
        caught_count += run_once(&race, TWIN_EVENT_COUNT) > 0;
    }
    print_message("caught in %d of %d runs\n", caught_count, RUN_COUNT);
    assert_true(caught_count >= CAUGHT_COUNT_MIN);
    end(&race);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_event_has_one_effect),
        cmocka_unit_test(test_the_twin_does_well_alone),
        cmocka_unit_test(test_a_select_then_insert_is_caught),
    };
    return cmocka_run_group_tests_name("consumer_race", tests, NULL, NULL);
}
