/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of Kafka's errors: each row by its name and number in the protocol.
 */
#include "cmocka_all.h"

#include "kafka/kafka_error.h"

struct error_case {
    const char *name;
    int code;
    enum err_kind kind;
};

static const struct error_case cases[] = {
    {"MSG_SIZE_TOO_LARGE", 10, ERR_PERMANENT},
    {"INVALID_MSG_SIZE", 4, ERR_PERMANENT},
    {"RECORD_LIST_TOO_LARGE", 18, ERR_PERMANENT},
    {"TOPIC_EXCEPTION", 17, ERR_PERMANENT},
    {"TOPIC_AUTHORIZATION_FAILED", 29, ERR_PERMANENT},
    {"INVALID_TIMESTAMP", 32, ERR_PERMANENT},
    {"POLICY_VIOLATION", 44, ERR_PERMANENT},
    {"INVALID_RECORD", 87, ERR_PERMANENT},
    {"OFFSET_OUT_OF_RANGE", 1, ERR_PERMANENT},
    {"_AUTO_OFFSET_RESET", -140, ERR_PERMANENT},
    {"_FATAL", -150, ERR_FATAL},
    {"_FENCED", -144, ERR_FATAL},
    {"OUT_OF_ORDER_SEQUENCE_NUMBER", 45, ERR_FATAL},
    {"INVALID_PRODUCER_EPOCH", 47, ERR_FATAL},
    {"PRODUCER_FENCED", 90, ERR_FATAL},
    {"FENCED_INSTANCE_ID", 82, ERR_FATAL},
    {"_TRANSPORT", -195, ERR_TRANSIENT},
    {"_MSG_TIMED_OUT", -192, ERR_TRANSIENT},
    {"_ALL_BROKERS_DOWN", -187, ERR_TRANSIENT},
    {"_QUEUE_FULL", -184, ERR_TRANSIENT},
    {"_PURGE_QUEUE", -152, ERR_TRANSIENT},
    {"_PURGE_INFLIGHT", -151, ERR_TRANSIENT},
    {"_UNKNOWN_TOPIC", -188, ERR_TRANSIENT},
    {"_AUTHENTICATION", -169, ERR_TRANSIENT},
    {"UNKNOWN_TOPIC_OR_PART", 3, ERR_TRANSIENT},
    {"INVALID_MSG", 2, ERR_TRANSIENT},
    {"NOT_ENOUGH_REPLICAS", 19, ERR_TRANSIENT},
    {"CLUSTER_AUTHORIZATION_FAILED", 31, ERR_TRANSIENT},
    {"UNSUPPORTED_COMPRESSION_TYPE", 76, ERR_TRANSIENT},
    {"UNKNOWN", -1, ERR_TRANSIENT},
};

static void test_kafka_error_gives_each_code_its_kind(void **state)
{
    const struct error_case *row = *state;
    assert_string_equal(kafka_error_name(row->code), row->name);
    assert_int_equal(kafka_error_kind(row->code), row->kind);
}

static void test_kafka_error_of_a_newer_broker_is_transient(void **state)
{
    (void)state;
    assert_int_equal(kafka_error_kind(9999), ERR_TRANSIENT);
}

static void test_kafka_error_set_names_what_failed(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_false(kafka_error_set(&err, 10, "publish to %s", "orders"));
    assert_int_equal(err.kind, ERR_PERMANENT);
    assert_string_equal(err.code, "MSG_SIZE_TOO_LARGE");
    assert_memory_equal(err.text, "publish to orders: ", 19);
}

int main(void)
{
    enum { CASE_COUNT = sizeof cases / sizeof cases[0] };
    struct CMUnitTest tests[CASE_COUNT + 2];
    for (size_t i = 0; i < CASE_COUNT; i++) {
        tests[i] = (struct CMUnitTest){.name = cases[i].name,
                                       .test_func = test_kafka_error_gives_each_code_its_kind,
                                       .initial_state = (void *)(uintptr_t)&cases[i]};
    }
    tests[CASE_COUNT] = (struct CMUnitTest)cmocka_unit_test(test_kafka_error_of_a_newer_broker_is_transient);
    tests[CASE_COUNT + 1] = (struct CMUnitTest)cmocka_unit_test(test_kafka_error_set_names_what_failed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
