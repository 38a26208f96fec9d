/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include "base/backoff.h"
#include "cmocka_all.h"

struct time_case {
    const char *name;
    const char *expected; /* Its form in UTC; NULL: refused. */
};

static const struct time_case time_cases[] = {
    {"2026-11-30T06:13:13Z", "2026-11-30T06:13:13.000000Z"},
    {"2026-11-30T06:13:13.1Z", "2026-11-30T06:13:13.100000Z"},
    {"2026-11-30T06:13:13.123456789Z", "2026-11-30T06:13:13.123456Z"},
    {"2026-11-30T06:13:13+02:30", "2026-11-30T03:43:13.000000Z"},
    {"2026-01-01T00:30:00-01:00", "2026-01-01T01:30:00.000000Z"},
    {"1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"},
    {"2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000Z"},
    {"2023-02-29T00:00:00Z", NULL},
    {"2026-13-01T00:00:00Z", NULL},
    {"2026-00-01T00:00:00Z", NULL},
    {"2026-01-00T00:00:00Z", NULL},
    {"2026-01-01T24:00:00Z", NULL},
    {"2026-01-01T00:00:60Z", NULL},
    {"2026-01-01T00:00:00", NULL},
    {"2026-01-01 00:00:00Z", NULL},
    {"2026-01-01T00:00:00.Z", NULL},
    {"2026-01-01T00:00:00.1234567890Z", NULL},
    {"2026-01-01T00:00:00+2:00", NULL},
    {"2026-01-01T00:00:00Z ", NULL},
    {"26-01-01T00:00:00Z", NULL},
    {"", NULL},
};

static void test_time(void **state)
{
    const struct time_case *mine = *state;
    int64_t unix_us;
    assert_int_equal(clock_from_text(mine->name, &unix_us), mine->expected != NULL);
    if (mine->expected != NULL) {
        char text[CLOCK_TEXT_SIZE];
        clock_to_text(unix_us, text);
        assert_string_equal(text, mine->expected);
    }
}

static void test_clock_moves_forward(void **state)
{
    (void)state;
    int64_t before_ms = clock_monotonic_ms();
    assert_true(clock_monotonic_ms() >= before_ms);
    assert_true(clock_realtime_ms() > INT64_C(1700000000000));
    assert_true(clock_realtime_us() / 1000 >= clock_realtime_ms() - 1000);
}

static void test_backoff_doubles_between_half_and_whole_up_to_the_most(void **state)
{
    (void)state;
    struct backoff backoff = {.first_ms = 100, .max_ms = 1000};
    static const int64_t steps[] = {100, 200, 400, 800, 1000, 1000};
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        for (uint32_t random = 0; random < 5000; random += 7) {
            int64_t wait_ms = backoff_next_ms(&backoff, random);
            assert_true(wait_ms >= steps[i] / 2 && wait_ms <= steps[i]);
        }
        assert_int_equal(backoff_next_ms(&backoff, 12345), backoff_next_ms(&backoff, 12345));
        backoff_fail(&backoff);
    }
    backoff.attempt = UINT32_MAX;
    backoff_fail(&backoff);
    assert_true(backoff_next_ms(&backoff, UINT32_MAX) <= 1000);
    backoff_reset(&backoff);
    assert_true(backoff_next_ms(&backoff, 0) <= 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock_moves_forward),
        cmocka_unit_test(test_backoff_doubles_between_half_and_whole_up_to_the_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_CASES("clock_from_text", test_time, time_cases);
}
