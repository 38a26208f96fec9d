/* SPDX-License-Identifier: Apache-2.0
 *
 * The relay and a database that is down when it starts and crashes while it
 * works. The server is the test's own, so that nobody else is hit.
 */
#include "cmocka_all.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flow_kit.h"
#include "kafka_fixture.h"
#include "postgres_fixture.h"
#include "program.h"
#include "topic_reader.h"

#define EVENT_COUNT 3000

static char state_dir[64] = "/tmp/onceward-restart-XXXXXX";
static int database_port;

static void postgres(const char *arguments)
{
    char command[512];
    snprintf(command, sizeof command, "%s/deploy/local/postgres %s --state %s > /dev/null", ONCEWARD_SOURCE_DIR,
             arguments, state_dir);
    assert_int_equal(system(command), 0);
}

static void start_postgres(void)
{
    char arguments[64];
    snprintf(arguments, sizeof arguments, "start --fast --port %d", database_port);
    postgres(arguments);
}

static int setup(void **state)
{
    (void)state;
    char conninfo[128];
    if (mkdtemp(state_dir) == NULL || chmod(state_dir, 0755) != 0) {
        return -1;
    }
    database_port = flow_kit_free_port(SOCK_STREAM);
    start_postgres();
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%d user=postgres dbname=postgres", database_port);
    return setenv("ONCEWARD_TEST_DATABASE", conninfo, 1);
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    postgres("stop --immediate");
    snprintf(command, sizeof command, "rm -rf %s", state_dir);
    return system(command);
}

static void submit(struct postgres_fixture *fixture, const char *topic)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "SELECT onceward.publish('%s', 'key-' || n %% 50, 't', to_json(n)) FROM generate_series(1, %d) n", topic,
             EVENT_COUNT);
    postgres_fixture_exec(fixture, sql);
}

static void test_relay_waits_for_a_database_and_outlives_its_crash(void **state)
{
    (void)state;
    struct kafka_fixture *kafka = kafka_fixture_new(1);
    struct postgres_fixture *fixture = postgres_fixture_new();
    assert_non_null(kafka);
    assert_non_null(fixture);
    const char *topic = kafka_fixture_topic(kafka);
    char sql[256];
    snprintf(sql, sizeof sql, "INSERT INTO onceward.topics (topic) VALUES ('%s')", topic);
    postgres_fixture_exec(fixture, sql);
    submit(fixture, topic);
    char conninfo[256];
    snprintf(conninfo, sizeof conninfo, "%s", postgres_fixture_conninfo_as(fixture, "onceward_relay"));
    postgres("stop");

    int port = flow_kit_free_port(SOCK_STREAM);
    struct program *relay = flow_kit_start_relay(conninfo, kafka_fixture_bootstrap(kafka), "r", port, NULL);
    assert_true(flow_kit_waits_for_answer(port, "/readyz", "\"database\",\"ready\":false"));
    assert_true(flow_kit_waits_for_answer(port, "/livez", " 200 "));
    start_postgres();
    assert_true(flow_kit_waits_for_answer(port, "/readyz", " 200 "));
    postgres("restart --immediate"); /* In the middle of it, or soon after. */
    assert_true(flow_kit_waits_for_answer(port, "/readyz", " 200 "));

    struct topic_record *records = NULL;
    bool is_seen[EVENT_COUNT + 1] = {false};
    size_t seen_count = 0;
    for (int tries = 0; tries < 100 && seen_count < EVENT_COUNT; tries++) {
        size_t count = topic_reader_read(kafka_fixture_bootstrap(kafka), topic, 1, &records);
        for (size_t i = 0; i < count; i++) {
            int number = atoi(records[i].value);
            assert_true(number > 0 && number <= EVENT_COUNT);
            seen_count += !is_seen[number];
            is_seen[number] = true;
        }
        free(records);
        usleep(100000);
    }
    assert_int_equal(seen_count, EVENT_COUNT);
    program_signal(relay, SIGTERM);
    assert_int_equal(program_wait(relay, FLOW_KIT_WAIT_MS), 0);
    program_free(&relay);
    postgres_fixture_free(&fixture);
    kafka_fixture_free(&kafka);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relay_waits_for_a_database_and_outlives_its_crash),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
