/* SPDX-License-Identifier: Apache-2.0
 *
 * The tests' own topics: fresh, with leaders, empty again after a new start.
 */
#include "kafka_fixture.h"

#include <stdlib.h>

#include "cmocka_all.h"

static void test_kafka_fixture_gives_each_test_its_own_empty_topic(void **state)
{
    (void)state;
    struct kafka_fixture *first = kafka_fixture_new(3);
    struct kafka_fixture *second = kafka_fixture_new(1);
    assert_non_null(first);
    assert_non_null(second);
    assert_string_not_equal(kafka_fixture_topic(first), kafka_fixture_topic(second));
    assert_int_equal(kafka_fixture_end_offset(first, 2), 0);
    kafka_fixture_free(&first);
    kafka_fixture_free(&second);
    assert_null(first);
}

static void test_kafka_fixture_makes_the_topic_again_with_its_settings(void **state)
{
    (void)state;
    static const char *const settings[] = {"max.message.bytes=1000", NULL};
    struct kafka_fixture *fixture = kafka_fixture_new_with(2, settings);
    assert_non_null(fixture);
    assert_true(kafka_fixture_recreate(fixture));
    assert_int_equal(kafka_fixture_end_offset(fixture, 1), 0);
    kafka_fixture_free(&fixture);
}

static void test_kafka_fixture_refuses_a_setting_that_the_broker_does_not_know(void **state)
{
    (void)state;
    static const char *const settings[] = {"no.such.setting=1", NULL};
    assert_null(kafka_fixture_new_with(1, settings));
}

static void test_kafka_fixture_is_null_without_an_address(void **state)
{
    (void)state;
    const char *bootstrap = getenv("ONCEWARD_TEST_KAFKA");
    assert_non_null(bootstrap);
    char *kept = strdup(bootstrap);
    unsetenv("ONCEWARD_TEST_KAFKA");
    assert_null(kafka_fixture_new(1));
    setenv("ONCEWARD_TEST_KAFKA", kept, 1);
    free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kafka_fixture_gives_each_test_its_own_empty_topic),
        cmocka_unit_test(test_kafka_fixture_makes_the_topic_again_with_its_settings),
        cmocka_unit_test(test_kafka_fixture_refuses_a_setting_that_the_broker_does_not_know),
        cmocka_unit_test(test_kafka_fixture_is_null_without_an_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
