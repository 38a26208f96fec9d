/* SPDX-License-Identifier: Apache-2.0
 *
 * When a partition stands still, as a table of what is seen once a second; and
 * what the readiness says of it.
 */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "consumer_lag.h"
#include "http/health.h"
#include "http/metrics.h"
#include "program.h"

#define SECONDS (CONSUMER_LAG_STILL_MS / 1000)

struct lag_case {
    const char *name;
    int64_t lag;
    int64_t fetched;  /* Records in memory. */
    int moves_at;     /* Second at which the cursor moves; 0: never. */
    int seconds;      /* So long it is looked at. */
    bool is_expected; /* To stand still in the end. */
};

static const struct lag_case lag_cases[] = {
    {"records wait for a minute", 100, 0, 0, SECONDS + 1, true},
    {"not yet a minute", 100, 0, 0, SECONDS, false},
    {"it moved meanwhile", 100, 0, 30, SECONDS + 1, false},
    {"it stopped half a minute later", 100, 0, 30, SECONDS + 31, true},
    {"it is at the end", 0, 0, 0, 3 * SECONDS, false},
    {"what is behind it may be markers", CONSUMER_LAG_MARKERS_MAX, 0, 0, 3 * SECONDS, false},
    {"one more cannot be", CONSUMER_LAG_MARKERS_MAX + 1, 0, 0, SECONDS + 1, true},
    {"one that was fetched is none", 1, 1, 0, SECONDS + 1, true},
};

static void test_consumer_lag_stands_still(void **state)
{
    const struct lag_case *row = *state;
    struct consumer_cursor cursor = {.next_offset = 7, .read_offset = 7 + row->fetched};
    bool stands_still = false;
    for (int second = 0; second <= row->seconds; second++) {
        if (second > 0 && second == row->moves_at) {
            cursor.next_offset++;
            cursor.read_offset++;
        }
        stands_still = consumer_lag_stands_still(&cursor, row->lag, 5000 + second * 1000);
    }
    assert_int_equal(stands_still, row->is_expected);
}

static void test_consumer_lag_makes_unready_and_ready_again(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct metrics *metrics = metrics_new(&err);
    assert_non_null(metrics);
    struct health *health = health_new("test", metrics, 0, &err);
    assert_non_null(health);
    assert_true(health_start(health, "127.0.0.1:0", &err));
    const struct consumer_cursor still = {.topic = "orders", .partition = 3, .next_offset = 42, .still_at_ms = 1000};
    char answer[4096];
    consumer_lag_tell(health, &still, 91000);
    assert_int_equal(program_get(health_port(health), "/readyz", answer, sizeof answer), 503);
    assert_non_null(strstr(answer, "\"lag\",\"ready\":false"));
    assert_non_null(strstr(answer, "orders/3 stands still at offset 42 for 90 s, though records wait"));
    consumer_lag_tell(health, NULL, 92000);
    assert_int_equal(program_get(health_port(health), "/readyz", answer, sizeof answer), 200);
    assert_non_null(strstr(answer, "\"lag\",\"ready\":true"));
    health_free(&health);
    metrics_free(&metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_consumer_lag_makes_unready_and_ready_again)};
    return cmocka_run_group_tests_name("consumer_lag", tests, NULL, NULL) +
           RUN_CASES("stands_still", test_consumer_lag_stands_still, lag_cases);
}
