/* SPDX-License-Identifier: Apache-2.0
 *
 * A lane's window with events whose keys are letters, and what becomes of them.
 */
#ifndef SUPPORT_WINDOW_FIXTURE_H
#define SUPPORT_WINDOW_FIXTURE_H

#include "cmocka_all.h"

#include <stdlib.h>

#include "relay_window.h"

#define EVENT_COUNT 64

struct fixture {
    struct relay_window *window;
    struct relay_snapshot *from;
    struct relay_snapshot *to;
    struct relay_range *range;
    struct event events[EVENT_COUNT];
    char keys[EVENT_COUNT][8];
    int64_t seq; /* Of the log's last row. */
    int in_flight_per_key;
};

static inline int in_flight_per_key(void *context, const char *topic)
{
    (void)topic;
    return ((const struct fixture *)context)->in_flight_per_key;
}

static inline struct relay_snapshot *make_snapshot(const char *text, int64_t floor, int64_t ceiling)
{
    struct err err = ERR_INIT;
    struct relay_snapshot *snapshot = relay_snapshot_new(text, floor, ceiling, &err);
    assert_non_null(snapshot);
    return snapshot;
}

static inline void restart(struct fixture *fixture, bool keeps_done)
{
    const struct relay_point point = {.from = fixture->from};
    relay_window_reset(fixture->window, &point, keeps_done);
    relay_window_begin(fixture->window, fixture->range);
}

static inline int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct err err = ERR_INIT;
    fixture->in_flight_per_key = 1;
    const struct relay_window_options options = {.entry_count_max = EVENT_COUNT,
                                                 .bytes_max = 1024 * 1024,
                                                 .in_flight_per_key = in_flight_per_key,
                                                 .context = fixture};
    fixture->window = relay_window_new(&options, &err);
    fixture->from = make_snapshot("3:3:", 0, 0);
    fixture->to = make_snapshot("900:900:", 1000, 1000);
    fixture->range = relay_range_new(fixture->from, fixture->to, &err);
    assert_non_null(fixture->window);
    assert_non_null(fixture->range);
    restart(fixture, false);
    *state = fixture;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *fixture = *state;
    relay_window_free(&fixture->window);
    relay_range_unref(&fixture->range);
    relay_snapshot_unref(&fixture->from);
    relay_snapshot_unref(&fixture->to);
    free(fixture);
    return 0;
}

/* Reads event id of a key of one letter. */
static inline void add(struct fixture *fixture, int64_t id, char key)
{
    struct err err = ERR_INIT;
    struct event *event = &fixture->events[id];
    fixture->keys[id][0] = key;
    *event = (struct event){.outbox_id = id, .topic = "t", .key = fixture->keys[id], .value = {"v", 1}};
    assert_true(relay_window_add(fixture->window, event, &err));
}

/* Reads as many events as there are letters, with ids from 1. */
static inline void add_all(struct fixture *fixture, const char *keys)
{
    for (int64_t i = 0; keys[i] != '\0'; i++) {
        add(fixture, i + 1, keys[i]);
    }
}

static inline struct relay_entry *send(struct fixture *fixture)
{
    struct relay_entry *entry = relay_window_next(fixture->window, false);
    if (entry != NULL) {
        relay_window_sent(entry, false);
    }
    return entry;
}

static inline struct relay_entry *send_single(struct fixture *fixture)
{
    struct relay_entry *entry = relay_window_next(fixture->window, true);
    if (entry != NULL) {
        relay_window_sent(entry, true);
    }
    return entry;
}

static inline void acknowledge(struct relay_entry *entry)
{
    const struct publish_report report = {.was_acknowledged = true, .partition = 1, .offset = entry->id};
    relay_window_report(entry, &report);
}

static inline void report_failure(struct relay_entry *entry, enum err_kind kind)
{
    struct publish_report report = {.partition = -1};
    err_set(&report.err, kind, "code", "why");
    relay_window_report(entry, &report);
}

static inline size_t settleable(const struct fixture *fixture)
{
    struct relay_entry *first;
    return relay_window_settleable(fixture->window, EVENT_COUNT, &first);
}

/* A row of the log with everything that is acknowledged, and the place behind the first count entries. */
static inline void settle(struct fixture *fixture, size_t count)
{
    for (struct relay_entry *entry = relay_window_unwritten(fixture->window)->first; entry != NULL;
         entry = entry->next_out) {
        entry->is_planned = true;
    }
    relay_window_written(fixture->window, ++fixture->seq);
    relay_window_settled(fixture->window, count);
}

#define WINDOW_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
