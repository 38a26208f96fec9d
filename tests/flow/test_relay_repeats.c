/* SPDX-License-Identifier: Apache-2.0
 *
 * How much a relay repeats that is killed while one key of a lane is slow: its
 * events go out one by one, and everything else of the lane is acknowledged
 * ahead of them. That must not come again, however often the relay dies.
 */
#include "cmocka_all.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "flow_kit.h"
#include "kafka_fixture.h"
#include "postgres_fixture.h"
#include "program.h"
#include "topic_reader.h"

#define OTHER_COUNT 6000
#define LIFE_MS 200       /* From the first record that it publishes. */
#define LIFE_COUNT_MAX 60 /* Three are usual; a busy machine needs more. */

struct repeats {
    struct postgres_fixture *postgres;
    struct kafka_fixture *kafka;
    int slow_count;
};

static int setup(void **state)
{
    struct repeats *repeats = calloc(1, sizeof *repeats);
    char sql[256];
    repeats->postgres = postgres_fixture_new();
    repeats->kafka = kafka_fixture_new(1);
    if (repeats->postgres == NULL || repeats->kafka == NULL) {
        return -1;
    }
    snprintf(sql, sizeof sql, "INSERT INTO onceward.topics (topic) VALUES ('%s')", kafka_fixture_topic(repeats->kafka));
    postgres_fixture_exec(repeats->postgres, sql);
    *state = repeats;
    return 0;
}

static int teardown(void **state)
{
    struct repeats *repeats = *state;
    kafka_fixture_free(&repeats->kafka);
    postgres_fixture_free(&repeats->postgres);
    free(repeats);
    return 0;
}

/* So many events of the slow key, and behind them one each of other keys of its lane. Values number them from 1. */
static void submit(struct repeats *repeats, int slow_count)
{
    char sql[1024];
    repeats->slow_count = slow_count;
    snprintf(sql, sizeof sql,
             "WITH slow AS (SELECT n, 'slow' AS key FROM generate_series(1, %d) n),"
             " other AS (SELECT %d + row_number() OVER () AS n, key FROM"
             "  (SELECT 'other-' || n AS key FROM generate_series(1, %d * 16) n"
             "    WHERE get_byte(sha256(convert_to('other-' || n, 'UTF8')), 0) %% 8"
             "          = get_byte(sha256('slow'), 0) %% 8 LIMIT %d) k)"
             "SELECT count(onceward.publish('%s', key, 't', to_json(n)))"
             "  FROM (SELECT * FROM slow UNION ALL SELECT * FROM other ORDER BY n) e",
             slow_count, slow_count, OTHER_COUNT, OTHER_COUNT, kafka_fixture_topic(repeats->kafka));
    postgres_fixture_exec(repeats->postgres, sql);
}

#define SETTLED "SELECT coalesce(sum(cardinality(settled_ids)), 0) FROM onceward.lane_progress"

static struct program *start_relay(struct repeats *repeats)
{
    return flow_kit_start_relay(postgres_fixture_conninfo_as(repeats->postgres, "onceward_relay"),
                                kafka_fixture_bootstrap(repeats->kafka), "r", flow_kit_free_port(SOCK_STREAM), NULL);
}

static void kill_relay(struct program **relay)
{
    program_signal(*relay, SIGKILL);
    assert_int_equal(program_wait(*relay, FLOW_KIT_WAIT_MS), -SIGKILL);
    program_free(relay);
}

/* Reads the topic: everything is there, the slow key in order. Returns how many came again. */
static size_t count_copies(struct repeats *repeats)
{
    struct topic_record *records = NULL;
    size_t total = (size_t)(repeats->slow_count + OTHER_COUNT);
    bool *is_seen = calloc(total + 1, sizeof *is_seen);
    size_t count =
        topic_reader_read(kafka_fixture_bootstrap(repeats->kafka), kafka_fixture_topic(repeats->kafka), 1, &records);
    size_t seen = 0;
    int newest_slow = 0;
    for (size_t i = 0; i < count; i++) {
        int number = atoi(records[i].value);
        assert_true(number > 0 && (size_t)number <= total);
        if (!is_seen[number] && number <= repeats->slow_count) {
            assert_int_equal(number, newest_slow + 1);
            newest_slow = number;
        }
        seen += !is_seen[number];
        is_seen[number] = true;
    }
    free(records);
    free(is_seen);
    assert_int_equal(seen, total);
    return count - seen;
}

static size_t finish(struct repeats *repeats)
{
    struct program *relay = start_relay(repeats);
    bool is_settled = false;
    for (int tries = 0; tries < 4 && !is_settled; tries++) { /* A busy machine needs more than one. */
        is_settled = flow_kit_waits_for_number(repeats->postgres, SETTLED, repeats->slow_count + OTHER_COUNT);
    }
    assert_true(is_settled);
    program_signal(relay, SIGTERM);
    assert_int_equal(program_wait(relay, FLOW_KIT_WAIT_MS), 0);
    program_free(&relay);
    return count_copies(repeats);
}

static void test_relay_killed_beside_a_slow_key_repeats_only_the_last_moment(void **state)
{
    struct repeats *repeats = *state;
    submit(repeats, 2000);
    struct program *relay = start_relay(repeats);
    while (kafka_fixture_end_offset(repeats->kafka, 0) < OTHER_COUNT) {
        usleep(20000);
    }
    usleep(500000); /* More than twice the interval in which acknowledgements are written down. */
    long long published = kafka_fixture_end_offset(repeats->kafka, 0);
    kill_relay(&relay);
    assert_true(published < repeats->slow_count + OTHER_COUNT); /* The slow key was not done. */
    size_t copies = finish(repeats);
    print_message("%zu came again\n", copies);
    assert_true(copies < 600);
}

static void test_relay_that_keeps_dying_gets_on(void **state)
{
    struct repeats *repeats = *state;
    submit(repeats, 1000);
    int lives = 0;
    while (postgres_fixture_number(repeats->postgres, SETTLED) <= OTHER_COUNT) {
        long long published = kafka_fixture_end_offset(repeats->kafka, 0);
        struct program *relay = start_relay(repeats);
        while (kafka_fixture_end_offset(repeats->kafka, 0) == published) {
            usleep(5000);
        }
        usleep(LIFE_MS * 1000);
        kill_relay(&relay);
        lives++;
        assert_true(lives < LIFE_COUNT_MAX);
    }
    print_message("%d lives\n", lives);
    size_t copies = finish(repeats);
    print_message("%zu came again\n", copies);
    assert_true(copies < 2 * OTHER_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_relay_killed_beside_a_slow_key_repeats_only_the_last_moment, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_relay_that_keeps_dying_gets_on, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
