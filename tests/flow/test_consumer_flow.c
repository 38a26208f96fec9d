/* SPDX-License-Identifier: Apache-2.0
 *
 * The real consumer between a real topic and a real table: each effect once,
 * whatever is repeated, refused, killed or taken away meanwhile.
 */
#include "cmocka_all.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

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

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_consumer_applies_each_event_once, setup, teardown),
    };
    return cmocka_run_group_tests_name("consumer_flow", tests, NULL, NULL);
}
