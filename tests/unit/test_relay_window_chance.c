/* SPDX-License-Identifier: Apache-2.0
 *
 * The window of a lane under chance: sending, reports, rows of the log, resets
 * and takeovers in any order, checked against its rules at every step.
 */
#include "window_fixture.h"

#define KEY_COUNT 4
#define CHANCE_COUNT 60

struct chance {
    struct fixture *fixture;
    unsigned seed;
    struct relay_entry *sent[EVENT_COUNT];
    size_t sent_count;
    int64_t settled_to;
    int64_t newest_sent[KEY_COUNT];
    bool is_acknowledged[EVENT_COUNT];
    int64_t written_seq[EVENT_COUNT]; /* What the log says: each event is in one row. */
    int64_t seq;
};

static void read_rest(struct chance *chance)
{
    for (int64_t id = chance->settled_to + 1; id <= CHANCE_COUNT; id++) {
        add(chance->fixture, id, (char)('a' + id % KEY_COUNT));
    }
}

static void step_send(struct chance *chance)
{
    struct relay_entry *entry = send(chance->fixture);
    if (entry == NULL) {
        relay_window_retry(chance->fixture->window);
        return;
    }
    for (size_t i = 0; i < chance->sent_count; i++) {
        assert_true(chance->sent[i]->id % KEY_COUNT != entry->id % KEY_COUNT);
    }
    assert_false(chance->is_acknowledged[entry->id]);
    int64_t *newest = &chance->newest_sent[entry->id % KEY_COUNT];
    assert_true(entry->id <= *newest + KEY_COUNT); /* None of the key is skipped. */
    *newest = entry->id > *newest ? entry->id : *newest;
    chance->sent[chance->sent_count++] = entry;
}

static void step_report(struct chance *chance)
{
    if (chance->sent_count == 0) {
        return;
    }
    size_t place = (size_t)rand_r(&chance->seed) % chance->sent_count;
    struct relay_entry *entry = chance->sent[place];
    chance->sent[place] = chance->sent[--chance->sent_count];
    if (rand_r(&chance->seed) % 4 == 0) {
        report_failure(entry, ERR_TRANSIENT);
    } else {
        chance->is_acknowledged[entry->id] = true;
        acknowledge(entry);
    }
}

/* A row has at least what its place passes, and by chance more. */
static void step_settle(struct chance *chance)
{
    struct relay_window *window = chance->fixture->window;
    size_t count = settleable(chance->fixture);
    chance->seq++;
    chance->settled_to += (int64_t)count;
    for (struct relay_entry *entry = relay_window_unwritten(window)->first; entry != NULL; entry = entry->next_out) {
        assert_true(chance->is_acknowledged[entry->id]);
        if (entry->id <= chance->settled_to || rand_r(&chance->seed) % 2 == 0) {
            assert_int_equal(chance->written_seq[entry->id], 0);
            entry->is_planned = true;
            chance->written_seq[entry->id] = chance->seq;
        }
    }
    relay_window_written(window, chance->seq);
    relay_window_settled(window, count);
    size_t ahead_count = 0;
    int64_t least = INT64_MAX;
    for (int64_t id = 1; id <= CHANCE_COUNT; id++) {
        assert_true(id > chance->settled_to || chance->written_seq[id] != 0);
        if (id > chance->settled_to && chance->written_seq[id] != 0) {
            ahead_count++;
            least = chance->written_seq[id] < least ? chance->written_seq[id] : least;
        }
    }
    assert_int_equal(relay_window_written_count(window), ahead_count);
    assert_int_equal(relay_window_written_from(window, 0), least);
}

/* Another process takes the lane: it knows what the log says, and nothing else. */
static void step_take_over(struct chance *chance)
{
    struct err err = ERR_INIT;
    while (chance->sent_count > 0) {
        report_failure(chance->sent[--chance->sent_count], ERR_TRANSIENT);
    }
    restart(chance->fixture, false);
    for (int64_t id = 1; id <= CHANCE_COUNT; id++) {
        chance->is_acknowledged[id] = chance->written_seq[id] != 0;
        if (id > chance->settled_to && chance->written_seq[id] != 0) {
            assert_true(relay_window_know(chance->fixture->window, id, 1, id, chance->written_seq[id], &err));
        }
    }
    read_rest(chance);
}

static void test_relay_window_keeps_its_rules_under_chance(void **state)
{
    for (unsigned seed = 1; seed <= 200; seed++) {
        void *made = NULL;
        assert_int_equal(setup(&made), 0);
        struct chance chance = {.fixture = made, .seed = seed};
        read_rest(&chance);
        for (int step = 0; chance.settled_to < CHANCE_COUNT; step++) {
            assert_true(step < 100000);
            switch (rand_r(&chance.seed) % 16) {
            case 0:
                restart(chance.fixture, true);
                read_rest(&chance);
                break;
            case 1:
                if (rand_r(&chance.seed) % 8 == 0) {
                    step_take_over(&chance);
                } else {
                    step_settle(&chance);
                }
                break;
            case 2:
            case 3:
            case 4:
            case 5:
            case 6: step_report(&chance); break;
            default: step_send(&chance); break;
            }
        }
        assert_int_equal(teardown(&made), 0);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relay_window_keeps_its_rules_under_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
