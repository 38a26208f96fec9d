/* SPDX-License-Identifier: Apache-2.0 */
#include "producer_rates.h"

#include "cmocka_all.h"

#include <string.h>

#define NOW_US INT64_C(5000000000)
#define SECOND_US 1000000

static const unsigned char *key_of(uint32_t number)
{
    static unsigned char key[PRODUCER_RATES_KEY_SIZE];
    memcpy(key, &number, sizeof number);
    return key;
}

static int take_all(struct producer_rates *rates, uint32_t number, int64_t now_us)
{
    int count = 0;
    while (count < 10000 && producer_rates_take(rates, key_of(number), now_us)) {
        count++;
    }
    return count;
}

static void test_producer_rates_allow_so_many_at_once_and_so_many_a_second(void **state)
{
    (void)state;
    struct producer_rates *rates = producer_rates_new(10);
    assert_int_equal(take_all(rates, 1, NOW_US), 10);
    assert_false(producer_rates_allow(rates, key_of(1), NOW_US));
    assert_int_equal(take_all(rates, 1, NOW_US + SECOND_US / 10 - 1), 0);
    assert_int_equal(take_all(rates, 1, NOW_US + SECOND_US / 10), 1);
    assert_int_equal(take_all(rates, 1, NOW_US + SECOND_US), 9);
    assert_int_equal(take_all(rates, 1, NOW_US + INT64_C(100) * SECOND_US), 10);
    producer_rates_free(&rates);
}

static void test_producer_rates_are_each_ones_own(void **state)
{
    (void)state;
    struct producer_rates *rates = producer_rates_new(3);
    assert_int_equal(take_all(rates, 1, NOW_US), 3);
    assert_int_equal(take_all(rates, 2, NOW_US), 3);
    assert_true(producer_rates_allow(rates, key_of(3), NOW_US));
    assert_int_equal(take_all(rates, 3, NOW_US), 3);
    producer_rates_free(&rates);
}

static void test_producer_rates_asking_costs_nothing(void **state)
{
    (void)state;
    struct producer_rates *rates = producer_rates_new(1);
    for (int i = 0; i < 100; i++) {
        assert_true(producer_rates_allow(rates, key_of(1), NOW_US));
    }
    assert_int_equal(take_all(rates, 1, NOW_US), 1);
    producer_rates_free(&rates);
}

static void test_producer_rates_remember_the_busy_among_many_others(void **state)
{
    (void)state;
    struct producer_rates *rates = producer_rates_new(1000);
    assert_int_equal(take_all(rates, 1, NOW_US), 1000);
    for (uint32_t other = 2; other < 20000; other++) {
        assert_true(producer_rates_take(rates, key_of(other), NOW_US));
    }
    assert_int_equal(take_all(rates, 1, NOW_US), 0);
    producer_rates_free(&rates);
}

static void test_producer_rates_of_nought_are_no_limit(void **state)
{
    (void)state;
    struct producer_rates *rates = producer_rates_new(0);
    assert_int_equal(take_all(rates, 1, NOW_US), 10000);
    producer_rates_free(&rates);
    producer_rates_free(&rates);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_producer_rates_allow_so_many_at_once_and_so_many_a_second),
        cmocka_unit_test(test_producer_rates_are_each_ones_own),
        cmocka_unit_test(test_producer_rates_asking_costs_nothing),
        cmocka_unit_test(test_producer_rates_remember_the_busy_among_many_others),
        cmocka_unit_test(test_producer_rates_of_nought_are_no_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
