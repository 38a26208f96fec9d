/* SPDX-License-Identifier: Apache-2.0
 *
 * The relay as a program, on a real database and a real broker: killed,
 * stopped, refused, started too early, shared and raced. After each of these
 * everything that was submitted is on the topic, its first occurrences in
 * order per key, and settled once.
 */
#include "cmocka_all.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "flow_kit.h"
#include "kafka_fixture.h"
#include "postgres_fixture.h"
#include "program.h"
#include "topic_reader.h"

#define PARTITION_COUNT 3
#define KEY_COUNT 40
#define NUMBER_MAX 2000
#define WAIT_MS FLOW_KIT_WAIT_MS

struct flow {
    struct postgres_fixture *postgres;
    struct kafka_fixture *kafka;
    int submitted; /* Per key. */
};

static struct program *start_relay(struct flow *flow, const char *name, int port, const char *failpoints)
{
    return flow_kit_start_relay(postgres_fixture_conninfo_as(flow->postgres, "onceward_relay"),
                                kafka_fixture_bootstrap(flow->kafka), name, port, failpoints);
}

static struct program *start_once(struct flow *flow, const char *name)
{
    const char *const arguments[] = {"--database", postgres_fixture_conninfo_as(flow->postgres, "onceward_relay"),
                                     "--kafka",    kafka_fixture_bootstrap(flow->kafka),
                                     "--name",     name,
                                     "--once",     NULL};
    return program_start("outbox-relay", arguments, NULL);
}

/* ---- Submitting and checking ---- */

/* So many more events of each key, in transactions of several keys. Values are "key number". */
static void submit(struct flow *flow, int count)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             "SELECT onceward.publish('%s', 'key-' || k, 't', to_json(k || ' ' || n)) FROM generate_series(%d, %d) n,"
             " generate_series(0, %d) k ORDER BY n, k",
             kafka_fixture_topic(flow->kafka), flow->submitted + 1, flow->submitted + count, KEY_COUNT - 1);
    postgres_fixture_exec(flow->postgres, sql);
    flow->submitted += count;
}

#define SETTLED "SELECT coalesce(sum(cardinality(settled_ids)), 0) FROM onceward.lane_progress"

static bool waits_until_settled(struct flow *flow)
{
    return flow_kit_waits_for_number(flow->postgres, SETTLED, (long long)flow->submitted * KEY_COUNT);
}

/* Reads the topic: nothing is missing, first occurrences are in order. Returns how many came again. */
static size_t check_topic(struct flow *flow)
{
    struct topic_record *records = NULL;
    static bool is_seen[KEY_COUNT][NUMBER_MAX];
    int next[KEY_COUNT];
    size_t again = 0;
    memset(is_seen, 0, sizeof is_seen);
    for (int key = 0; key < KEY_COUNT; key++) {
        next[key] = 1;
    }
    size_t count = topic_reader_read(kafka_fixture_bootstrap(flow->kafka), kafka_fixture_topic(flow->kafka),
                                     PARTITION_COUNT, &records);
    for (size_t i = 0; i < count; i++) {
        int key = -1;
        int number = -1;
        assert_int_equal(sscanf(records[i].value, "\"%d %d\"", &key, &number), 2);
        assert_true(key >= 0 && key < KEY_COUNT && number > 0 && number < NUMBER_MAX);
        if (is_seen[key][number]) {
            again++;
            continue;
        }
        is_seen[key][number] = true;
        assert_int_equal(number, next[key]);
        next[key]++;
    }
    free(records);
    for (int key = 0; key < KEY_COUNT; key++) {
        assert_int_equal(next[key], flow->submitted + 1);
    }
    return again;
}

static void add_topic(struct flow *flow)
{
    char sql[256];
    snprintf(sql, sizeof sql, "INSERT INTO onceward.topics (topic) VALUES ('%s')", kafka_fixture_topic(flow->kafka));
    postgres_fixture_exec(flow->postgres, sql);
}

static int setup_with(void **state, const char *const *settings)
{
    struct flow *flow = calloc(1, sizeof *flow);
    flow->postgres = postgres_fixture_new();
    flow->kafka = kafka_fixture_new_with(PARTITION_COUNT, settings);
    if (flow->postgres == NULL || flow->kafka == NULL) {
        return -1;
    }
    add_topic(flow);
    *state = flow;
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, NULL);
}

static int setup_small(void **state)
{
    static const char *const settings[] = {"max.message.bytes=2000", NULL};
    return setup_with(state, settings);
}

static int teardown(void **state)
{
    struct flow *flow = *state;
    kafka_fixture_free(&flow->kafka);
    postgres_fixture_free(&flow->postgres);
    free(flow);
    return 0;
}

/* ---- Killed at every step, and started again ---- */

static const struct kill_case {
    const char *name;
    const char *failpoints;
} kill_cases[] = {
    {"killed between its own xid and the snapshot, the rest comes after", "relay.after_own_xid=kill@2"},
    {"killed before the first record is sent, it is sent after", "relay.before_send=kill@1"},
    {"killed in the middle of sending, the rest is sent after", "relay.before_send=kill@1500"},
    {"killed after publishing, before settling, it is published again", "relay.before_settle=kill@1"},
    {"killed before a row of the log, the next settles", "relay.before_log_insert=kill@2"},
    {"killed after a row of the log, the next goes on from it", "relay.after_log_insert=kill@1"},
    {"killed after reports were collected, they are asked for again", "relay.after_collect=kill@12"},
};

static void test_relay_killed_loses_nothing(void **state)
{
    struct flow *flow = NULL;
    const struct kill_case *row = *state;
    void *made = NULL;
    assert_int_equal(setup(&made), 0);
    flow = made;
    struct program *relay = start_relay(flow, "r", flow_kit_free_port(SOCK_STREAM), row->failpoints);
    assert_true(flow_kit_waits_for_number(flow->postgres, "SELECT count(*) FROM onceward.lanes WHERE owner = 'r'", 8));
    submit(flow, 50);
    submit(flow, 50);
    assert_int_equal(program_wait(relay, WAIT_MS), -SIGKILL);
    program_free(&relay);
    relay = start_relay(flow, "r", flow_kit_free_port(SOCK_STREAM), NULL);
    submit(flow, 10);
    bool is_settled = waits_until_settled(flow);
    program_signal(relay, SIGTERM);
    int code = program_wait(relay, WAIT_MS);
    if (!is_settled || code != 0) {
        program_show_log(relay);
    }
    program_free(&relay);
    assert_true(is_settled);
    assert_int_equal(code, 0);
    print_message("%zu came again\n", check_topic(flow));
    teardown(&made);
}

/* ---- Refused by the broker ---- */

static void test_relay_parks_what_the_broker_refuses_and_holds_its_key(void **state)
{
    struct flow *flow = *state;
    submit(flow, 1);
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT onceward.publish('%s', 'key-7', 't', to_json(repeat('x', 3000)))",
             kafka_fixture_topic(flow->kafka));
    postgres_fixture_exec(flow->postgres, sql);
    submit(flow, 20);
    struct program *relay = start_relay(flow, "r", flow_kit_free_port(SOCK_STREAM), NULL);
    /* key-7: one before the large one, which is parked, and 20 behind it, which are held. */
    assert_true(flow_kit_waits_for_number(flow->postgres, SETTLED, 21 * KEY_COUNT - 20));
    assert_true(
        flow_kit_waits_for_number(flow->postgres,
                                  "SELECT count(*) FROM onceward.deferred WHERE state = 'parked' AND key = 'key-7'"
                                  " AND reason_code = 'MSG_SIZE_TOO_LARGE' AND octet_length(value) = 3002",
                                  1));
    assert_true(flow_kit_waits_for_number(
        flow->postgres, "SELECT count(*) FROM onceward.deferred WHERE state = 'held' AND key = 'key-7'", 20));
    assert_int_equal(postgres_fixture_number(flow->postgres, "SELECT count(*) FROM onceward.deferred"), 21);
    /* The key stays held for whoever takes the lane next. */
    program_signal(relay, SIGTERM);
    assert_int_equal(program_wait(relay, WAIT_MS), 0);
    program_free(&relay);
    relay = start_relay(flow, "r", flow_kit_free_port(SOCK_STREAM), NULL);
    submit(flow, 1);
    assert_true(flow_kit_waits_for_number(
        flow->postgres, "SELECT count(*) FROM onceward.deferred WHERE state = 'held' AND key = 'key-7'", 21));
    assert_true(flow_kit_waits_for_number(flow->postgres, SETTLED, 22 * KEY_COUNT - 21));
    program_free(&relay);
}

/* ---- Started too early ---- */

static int forward_to;
static int forward_at;

static void *forward(void *context)
{
    int *fds = context;
    char bytes[4096];
    ssize_t got;
    while ((got = read(fds[0], bytes, sizeof bytes)) > 0 && write(fds[1], bytes, (size_t)got) == got) {
    }
    shutdown(fds[1], SHUT_WR);
    return NULL;
}

/* The broker's first address, once it is "up": later connections go where the broker says it is. */
static void *serve_forwarding(void *context)
{
    (void)context;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)forward_at)};
    int one = 1;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    int bound = bind(listener, (struct sockaddr *)&address, sizeof address);
    assert(bound == 0 && listen(listener, 8) == 0);
    for (;;) {
        int client = accept(listener, NULL, NULL);
        int broker = flow_kit_dial(forward_to);
        if (client < 0 || broker < 0) {
            return NULL;
        }
        int *there = malloc(2 * sizeof *there);
        int *back = malloc(2 * sizeof *back);
        pthread_t threads[2];
        there[0] = back[1] = client;
        there[1] = back[0] = broker;
        pthread_create(&threads[0], NULL, forward, there);
        pthread_create(&threads[1], NULL, forward, back);
    }
}

static void test_relay_waits_for_a_broker_that_is_down_at_its_start(void **state)
{
    struct flow *flow = *state;
    int port = flow_kit_free_port(SOCK_STREAM);
    char brokers[32];
    forward_at = flow_kit_free_port(SOCK_STREAM);
    forward_to = atoi(strrchr(kafka_fixture_bootstrap(flow->kafka), ':') + 1);
    snprintf(brokers, sizeof brokers, "127.0.0.1:%d", forward_at);
    submit(flow, 5);
    postgres_fixture_exec(flow->postgres, "UPDATE onceward.outbox SET time = time - interval '2 minutes'");
    struct program *relay =
        flow_kit_start_relay(postgres_fixture_conninfo_as(flow->postgres, "onceward_relay"), brokers, "r", port, NULL);
    assert_true(flow_kit_waits_for_answer(port, "/readyz", "\"database\",\"ready\":true"));
    assert_true(flow_kit_waits_for_answer(port, "/readyz", "\"kafka\",\"ready\":false"));
    assert_true(flow_kit_waits_for_answer(port, "/readyz", "\"backlog\",\"ready\":false"));
    assert_true(flow_kit_waits_for_answer(port, "/livez", " 200 "));
    assert_int_equal(postgres_fixture_number(flow->postgres, SETTLED), 0);
    pthread_t server;
    pthread_create(&server, NULL, serve_forwarding, NULL);
    pthread_detach(server);
    assert_true(flow_kit_waits_for_answer(port, "/readyz", " 200 "));
    assert_true(waits_until_settled(flow));
    program_signal(relay, SIGTERM);
    assert_int_equal(program_wait(relay, WAIT_MS), 0);
    program_free(&relay);
    assert_int_equal(check_topic(flow), 0);
}

/* ---- Stopped, shared, raced ---- */

static void test_relay_drains_on_sigterm(void **state)
{
    struct flow *flow = *state;
    struct program *relay = start_relay(flow, "r", flow_kit_free_port(SOCK_STREAM), NULL);
    assert_true(flow_kit_waits_for_number(flow->postgres, "SELECT count(*) FROM onceward.lanes WHERE owner = 'r'", 8));
    submit(flow, 300);
    while (postgres_fixture_number(flow->postgres, SETTLED) == 0) {
        usleep(5000);
    }
    program_signal(relay, SIGTERM);
    assert_int_equal(program_wait(relay, WAIT_MS), 0);
    program_free(&relay);
    assert_int_equal(postgres_fixture_number(flow->postgres, "SELECT count(*) FROM onceward.lanes WHERE owner IS NULL"),
                     8);
    assert_int_equal(postgres_fixture_number(flow->postgres, "SELECT count(*) FROM onceward.relays"), 0);
    struct topic_record *records = NULL;
    size_t count = topic_reader_read(kafka_fixture_bootstrap(flow->kafka), kafka_fixture_topic(flow->kafka),
                                     PARTITION_COUNT, &records);
    free(records);
    long long settled = postgres_fixture_number(flow->postgres, SETTLED);
    print_message("stopped with %lld of %d settled\n", settled, flow->submitted * KEY_COUNT);
    assert_int_equal(settled, count);
    relay = start_once(flow, "o");
    assert_int_equal(program_wait(relay, WAIT_MS), 0);
    program_free(&relay);
    assert_int_equal(check_topic(flow), 0);
}

static void test_relays_share_the_lanes_and_one_follows_the_other(void **state)
{
    struct flow *flow = *state;
    struct program *one = start_relay(flow, "one", flow_kit_free_port(SOCK_STREAM), NULL);
    assert_true(
        flow_kit_waits_for_number(flow->postgres, "SELECT count(*) FROM onceward.lanes WHERE owner = 'one'", 8));
    struct program *two = start_relay(flow, "two", flow_kit_free_port(SOCK_STREAM), NULL);
    submit(flow, 20);
    assert_true(
        flow_kit_waits_for_number(flow->postgres, "SELECT count(*) FROM onceward.lanes WHERE owner = 'two'", 4));
    assert_true(
        flow_kit_waits_for_number(flow->postgres, "SELECT count(*) FROM onceward.lanes WHERE owner = 'one'", 4));
    submit(flow, 20);
    assert_true(waits_until_settled(flow));
    assert_int_equal(check_topic(flow), 0); /* A hand-over repeats nothing. */
    program_signal(two, SIGKILL);
    submit(flow, 20);
    assert_true(waits_until_settled(flow)); /* As soon as the lease has run out. */
    assert_int_equal(postgres_fixture_number(flow->postgres, "SELECT count(*) FROM onceward.lanes WHERE owner = 'one'"),
                     8);
    program_free(&two);
    program_free(&one);
    (void)check_topic(flow);
}

/* It died with every lane in its name, and comes back while another is there that may have half of them. */
static void test_relay_that_comes_back_leaves_no_lane_under_its_name_alone(void **state)
{
    struct flow *flow = *state;
    struct program *one = start_relay(flow, "one", flow_kit_free_port(SOCK_STREAM), NULL);
    assert_true(
        flow_kit_waits_for_number(flow->postgres, "SELECT count(*) FROM onceward.lanes WHERE owner = 'one'", 8));
    program_signal(one, SIGKILL);
    program_wait(one, WAIT_MS);
    program_free(&one);
    struct program *two = start_relay(flow, "two", flow_kit_free_port(SOCK_STREAM), NULL);
    assert_true(
        flow_kit_waits_for_number(flow->postgres, "SELECT count(*) FROM onceward.relays WHERE relay = 'two'", 1));
    one = start_relay(flow, "one", flow_kit_free_port(SOCK_STREAM), NULL);
    submit(flow, 20);
    assert_true(waits_until_settled(flow));
    assert_true(
        flow_kit_waits_for_number(flow->postgres, "SELECT count(*) FROM onceward.lanes WHERE owner = 'two'", 4));
    program_signal(one, SIGTERM);
    program_signal(two, SIGTERM);
    assert_int_equal(program_wait(one, WAIT_MS), 0);
    assert_int_equal(program_wait(two, WAIT_MS), 0);
    program_free(&one);
    program_free(&two);
    check_topic(flow);
}

static void test_racing_passes_claim_each_event_once(void **state)
{
    struct flow *flow = *state;
    struct program *passes[4];
    static const char *const names[] = {"a", "b", "c", "d"};
    submit(flow, 100);
    for (int i = 0; i < 4; i++) {
        passes[i] = start_once(flow, names[i]);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(program_wait(passes[i], WAIT_MS), 0);
        program_free(&passes[i]);
    }
    assert_int_equal(postgres_fixture_number(flow->postgres, SETTLED), flow->submitted * KEY_COUNT);
    assert_int_equal(check_topic(flow), 0);
    assert_int_equal(postgres_fixture_number(flow->postgres, "SELECT count(*) FROM onceward.lanes WHERE owner IS NULL"),
                     8);
}

/* It stops at the failpoint; a process of the same name takes over; it wakes. */
static void check_fence(struct flow *flow, const char *failpoint)
{
    struct program *sleeper = start_relay(flow, "r", flow_kit_free_port(SOCK_STREAM), failpoint);
    assert_true(flow_kit_waits_for_number(flow->postgres, "SELECT count(*) FROM onceward.lanes WHERE owner = 'r'", 8));
    submit(flow, 20);
    usleep(700000);
    assert_int_equal(postgres_fixture_number(flow->postgres, SETTLED), 0);
    struct program *follower = start_relay(flow, "r", flow_kit_free_port(SOCK_STREAM), NULL);
    assert_true(waits_until_settled(flow));
    postgres_fixture_exec(
        flow->postgres,
        "DELETE FROM onceward.lane_progress p WHERE seq < (SELECT max(seq) FROM onceward.lane_progress l"
        " WHERE l.lane = p.lane) AND settled_ids IS NULL");
    program_signal(sleeper, SIGCONT);
    assert_int_equal(program_wait(sleeper, WAIT_MS), 1);
    /* By the lane's log, or, where its lease's thread was sooner, by its name. */
    assert_true(program_logs(sleeper, "relay.fenced", 0) || program_logs(sleeper, "relay.lease_lost", 0));
    assert_int_equal(postgres_fixture_number(flow->postgres, "SELECT count(DISTINCT incarnation) FROM"
                                                             " onceward.lane_progress WHERE kind = 'moved'"),
                     1);
    assert_true(waits_until_settled(flow));
    program_free(&sleeper);
    program_free(&follower);
    (void)check_topic(flow);
}

/* Between its decision and its insert. */
static void test_relay_that_was_stopped_is_fenced_when_it_wakes(void **state)
{
    check_fence(*state, "relay.before_log_insert=stop@1");
}

/* Between its last check and the send: what it then sends comes again, and is not settled. */
static void test_relay_that_was_stopped_before_it_sends_is_fenced(void **state)
{
    check_fence(*state, "relay.before_send=stop@1");
}

/* Connections are cut again and again; the server stays. What was acknowledged is not published again. */
static void test_relay_goes_on_after_its_connections_are_cut(void **state)
{
    struct flow *flow = *state;
    struct program *relay = start_relay(flow, "r", flow_kit_free_port(SOCK_STREAM), NULL);
    assert_true(flow_kit_waits_for_number(flow->postgres, "SELECT count(*) FROM onceward.lanes WHERE owner = 'r'", 8));
    for (int i = 0; i < 8; i++) {
        submit(flow, 20);
        usleep((useconds_t)(50 + 40 * i) * 1000);
        postgres_fixture_exec(flow->postgres, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                                              " WHERE usename = 'onceward_relay' AND datname = current_database()");
    }
    assert_true(waits_until_settled(flow));
    program_signal(relay, SIGTERM);
    assert_int_equal(program_wait(relay, WAIT_MS), 0);
    if (check_topic(flow) != 0) {
        program_show_log(relay);
    }
    assert_int_equal(check_topic(flow), 0);
    program_free(&relay);
}

/* With polls that are far apart, a datagram is what makes it prompt. */
static void test_relay_publishes_at_once_after_a_hint(void **state)
{
    struct flow *flow = *state;
    char hint[32];
    int port = flow_kit_free_port(SOCK_DGRAM);
    snprintf(hint, sizeof hint, "127.0.0.1:%d", port);
    const char *const arguments[] = {"--database",
                                     postgres_fixture_conninfo_as(flow->postgres, "onceward_relay"),
                                     "--kafka",
                                     kafka_fixture_bootstrap(flow->kafka),
                                     "--name",
                                     "r",
                                     "--hint-listen",
                                     hint,
                                     "--poll-min-ms",
                                     "10000",
                                     "--poll-max-ms",
                                     "10000",
                                     "--listen",
                                     "127.0.0.1:0",
                                     NULL};
    struct program *relay = program_start("outbox-relay", arguments, NULL);
    assert_true(flow_kit_waits_for_number(flow->postgres, "SELECT count(*) FROM onceward.lanes WHERE owner = 'r'", 8));
    usleep(1000000); /* The first look at the outbox is over, and the topic not even known. */
    int64_t begun_ms = clock_monotonic_ms();
    submit(flow, 1);
    flow_kit_hint(port);
    assert_true(waits_until_settled(flow));
    assert_true(clock_monotonic_ms() - begun_ms < 5000);
    program_free(&relay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_relay_parks_what_the_broker_refuses_and_holds_its_key, setup_small,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_relay_waits_for_a_broker_that_is_down_at_its_start, setup, teardown),
        cmocka_unit_test_setup_teardown(test_relay_drains_on_sigterm, setup, teardown),
        cmocka_unit_test_setup_teardown(test_relays_share_the_lanes_and_one_follows_the_other, setup, teardown),
        cmocka_unit_test_setup_teardown(test_relay_that_comes_back_leaves_no_lane_under_its_name_alone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_racing_passes_claim_each_event_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_relay_goes_on_after_its_connections_are_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_relay_publishes_at_once_after_a_hint, setup, teardown),
    };
    const struct CMUnitTest failpoint_tests[] = {
        cmocka_unit_test_setup_teardown(test_relay_that_was_stopped_is_fenced_when_it_wakes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_relay_that_was_stopped_before_it_sends_is_fenced, setup, teardown),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (PROGRAM_HAS_FAILPOINTS) {
        failed += RUN_CASES("killed", test_relay_killed_loses_nothing, kill_cases);
        failed += cmocka_run_group_tests_name("stopped", failpoint_tests, NULL, NULL);
    }
    return failed;
}
