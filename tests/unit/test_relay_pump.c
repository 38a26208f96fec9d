/* SPDX-License-Identifier: Apache-2.0
 *
 * The pump with a publisher that fails on demand: for every n, the n-th
 * publish fails, each kind of failure in each way, and all that is innocent
 * is acknowledged once in the order of its key.
 */
#include "cmocka_all.h"

#include <stdio.h>

#include "fake_publisher.h"
#include "relay_pump.h"

#define KEY_COUNT 5
#define EVENT_COUNT 30

struct bench {
    struct fake_publisher_options options; /* Of publishers that are opened from now on. */
    int opened_count;
    int64_t last_acknowledged[KEY_COUNT];
    int acknowledged_count[EVENT_COUNT + 1];
    struct relay_pump *pump;
    struct relay_window *window;
    struct relay_snapshot *from;
    struct relay_snapshot *to;
    struct relay_range *range;
    struct event events[EVENT_COUNT + 1];
    char keys[KEY_COUNT][8];
};

static void acknowledged(void *context, const struct event *event)
{
    struct bench *bench = context;
    int64_t *last = &bench->last_acknowledged[event->outbox_id % KEY_COUNT];
    assert_true(event->outbox_id > *last);
    *last = event->outbox_id;
    bench->acknowledged_count[event->outbox_id]++;
}

static struct publisher *open_fake(void *context, bool is_single, struct err *err)
{
    struct bench *bench = context;
    (void)is_single;
    (void)err;
    struct fake_publisher_options options = bench->options;
    if (bench->opened_count++ > 0) {
        options.fail_at = 0; /* Only the first one fails. */
    }
    return fake_publisher_new(&options);
}

static int one(void *context, const char *topic)
{
    (void)context;
    (void)topic;
    return 1;
}

static void begin(struct bench *bench, const struct fake_publisher_options *options)
{
    struct err err = ERR_INIT;
    *bench = (struct bench){.options = *options};
    bench->options.acknowledged = acknowledged;
    bench->options.context = bench;
    const struct relay_pump_options pump = {.open = open_fake, .context = bench, .outstanding_count_max = 100};
    const struct relay_window_options window = {
        .entry_count_max = 1000, .bytes_max = 1024 * 1024, .in_flight_per_key = one};
    bench->pump = relay_pump_new(&pump, &err);
    bench->window = relay_window_new(&window, &err);
    bench->from = relay_snapshot_new("3:3:", 0, 0, &err);
    bench->to = relay_snapshot_new("9:9:", 100, 100, &err);
    bench->range = relay_range_new(bench->from, bench->to, &err);
    const struct relay_point point = {.from = bench->from};
    relay_window_reset(bench->window, &point, false);
    relay_window_begin(bench->window, bench->range);
    for (int64_t id = 1; id <= EVENT_COUNT; id++) {
        char *key = bench->keys[id % KEY_COUNT];
        snprintf(key, sizeof bench->keys[0], "key-%d", (int)(id % KEY_COUNT));
        bench->events[id] = (struct event){.outbox_id = id, .topic = "t", .key = key, .value = {"v", 1}};
        assert_true(relay_window_add(bench->window, &bench->events[id], &err));
    }
}

static void end(struct bench *bench)
{
    relay_pump_free(&bench->pump);
    relay_window_free(&bench->window);
    relay_range_unref(&bench->range);
    relay_snapshot_unref(&bench->from);
    relay_snapshot_unref(&bench->to);
}

static size_t settleable(struct bench *bench)
{
    struct relay_entry *first;
    return relay_window_settleable(bench->window, EVENT_COUNT, &first);
}

/* Turns until everything can be settled. */
static void run(struct bench *bench)
{
    struct err err = ERR_INIT;
    struct err why = ERR_INIT;
    for (int turn = 0; settleable(bench) < EVENT_COUNT; turn++) {
        assert_true(turn < 1000);
        if (relay_pump_is_spent(bench->pump)) {
            assert_true(relay_pump_reopen(bench->pump, &err));
        }
        relay_window_retry(bench->window);
        assert_true(relay_pump_send(bench->pump, bench->window, &why, &err));
        (void)relay_pump_collect(bench->pump, 0);
    }
}

static int count_of(struct bench *bench, enum relay_entry_state state)
{
    struct relay_entry *entry;
    int count = 0;
    (void)relay_window_settleable(bench->window, EVENT_COUNT, &entry);
    for (; entry != NULL; entry = entry->next) {
        count += entry->state == state;
    }
    return count;
}

static const struct failure_case {
    const char *name;
    enum err_kind kind;
    bool is_refusal_at_once;
    bool is_parked; /* In the end; else acknowledged. */
} failure_cases[] = {
    {"a transient report is tried again", ERR_TRANSIENT, false, false},
    {"a transient refusal at once is tried again", ERR_TRANSIENT, true, false},
    {"a permanent report is tried singly, and passes", ERR_PERMANENT, false, false},
    {"a permanent refusal at once is a verdict", ERR_PERMANENT, true, true},
    {"a fatal report makes a new publisher", ERR_FATAL, false, false},
    {"a fatal refusal at once makes a new publisher", ERR_FATAL, true, false},
};

static void test_relay_pump_brings_everything_through(void **state)
{
    const struct failure_case *row = *state;
    size_t published = SIZE_MAX;
    for (size_t fail_at = 1; fail_at <= published; fail_at++) {
        struct bench bench;
        const struct fake_publisher_options options = {
            .fail_at = fail_at, .kind = row->kind, .is_refusal_at_once = row->is_refusal_at_once};
        begin(&bench, &options);
        run(&bench);
        published = (size_t)relay_pump_counts(bench.pump)->published;
        int parked = count_of(&bench, RELAY_PARKED);
        int done = count_of(&bench, RELAY_DONE);
        assert_true(done + parked + count_of(&bench, RELAY_HELD) == EVENT_COUNT);
        if (!row->is_parked) {
            assert_int_equal(done, EVENT_COUNT);
        }
        for (int64_t id = 1; id <= EVENT_COUNT; id++) {
            assert_true(bench.acknowledged_count[id] <= 1);
        }
        end(&bench);
    }
}

static void test_relay_pump_parks_what_is_refused_singly_too_and_holds_its_key(void **state)
{
    (void)state;
    struct bench bench;
    const struct fake_publisher_options options = {.refused_key = "key-2"};
    begin(&bench, &options);
    run(&bench);
    assert_int_equal(bench.opened_count, 2); /* One for batches, one for suspects. */
    assert_int_equal(count_of(&bench, RELAY_PARKED), 1);
    assert_int_equal(count_of(&bench, RELAY_HELD), EVENT_COUNT / KEY_COUNT - 1);
    assert_int_equal(count_of(&bench, RELAY_DONE), EVENT_COUNT - EVENT_COUNT / KEY_COUNT);
    assert_int_equal(relay_pump_counts(bench.pump)->refused, 1);
    end(&bench);
}

static void test_relay_pump_gives_everything_back_when_it_is_purged(void **state)
{
    (void)state;
    struct bench bench;
    struct err err = ERR_INIT;
    struct err why = ERR_INIT;
    const struct fake_publisher_options options = {.is_silent = true};
    begin(&bench, &options);
    assert_true(relay_pump_send(bench.pump, bench.window, &why, &err));
    assert_int_equal(relay_pump_outstanding_count(bench.pump), KEY_COUNT);
    relay_pump_purge(bench.pump, "lease_lost", "the lease has run out");
    relay_pump_purge(bench.pump, "server_changed", "a later reason");
    assert_true(relay_pump_is_spent(bench.pump));
    why = relay_pump_spent_why(bench.pump);
    assert_string_equal(why.code, "lease_lost");
    assert_true(fake_publisher_is_purged(relay_pump_publisher(bench.pump)));
    assert_true(relay_pump_send(bench.pump, bench.window, &why, &err));
    assert_int_equal(relay_pump_counts(bench.pump)->published, KEY_COUNT); /* Nothing more goes out. */
    bench.options.is_silent = false;
    run(&bench);
    assert_int_equal(count_of(&bench, RELAY_DONE), EVENT_COUNT);
    end(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relay_pump_parks_what_is_refused_singly_too_and_holds_its_key),
        cmocka_unit_test(test_relay_pump_gives_everything_back_when_it_is_purged),
    };
    int failed = RUN_CASES("failures", test_relay_pump_brings_everything_through, failure_cases);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
