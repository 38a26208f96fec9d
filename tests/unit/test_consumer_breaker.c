/* SPDX-License-Identifier: Apache-2.0
 *
 * The limit on dead letters.
 */
#include "cmocka_all.h"

#include "consumer_breaker.h"

static struct consumer_breaker make(void)
{
    return (struct consumer_breaker){.consecutive_max = 10, .percent_max = 50};
}

static void feed(struct consumer_breaker *breaker, int count, bool is_dead)
{
    for (int i = 0; i < count; i++) {
        consumer_breaker_feed(breaker, is_dead);
    }
}

static void test_consumer_breaker_opens_by_a_run(void **state)
{
    (void)state;
    struct consumer_breaker breaker = make();
    feed(&breaker, 10, true);
    assert_false(breaker.is_open);
    feed(&breaker, 1, true);
    assert_true(breaker.is_open);
    feed(&breaker, 5000, false);
    assert_true(breaker.is_open);
}

static void test_consumer_breaker_opens_by_ratio(void **state)
{
    (void)state;
    struct consumer_breaker breaker = make();
    for (int i = 0; i < 300 && !breaker.is_open; i++) {
        feed(&breaker, 2, true);
        feed(&breaker, 1, false);
    }
    assert_true(breaker.is_open);
    assert_in_range(breaker.window_count, 100, 110);
}

static void test_consumer_breaker_bears_a_few(void **state)
{
    (void)state;
    struct consumer_breaker breaker = make();
    for (int i = 0; i < 2000; i++) {
        feed(&breaker, 2, true);
        feed(&breaker, 3, false);
    }
    assert_false(breaker.is_open);
    assert_true(breaker.window_count <= CONSUMER_BREAKER_WINDOW);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_consumer_breaker_opens_by_a_run),
        cmocka_unit_test(test_consumer_breaker_opens_by_ratio),
        cmocka_unit_test(test_consumer_breaker_bears_a_few),
    };
    return cmocka_run_group_tests_name("consumer_breaker", tests, NULL, NULL);
}
