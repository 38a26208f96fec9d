/* SPDX-License-Identifier: Apache-2.0
 *
 * An operator's requests to a real broker.
 */
#include "cmocka_all.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"
#include "kafka/kafka_admin.h"
#include "kafka_fixture.h"

struct fixture {
    struct kafka_fixture *kafka;
    struct kafka_admin *admin;
};

static struct kafka_admin *open_admin(const char *brokers, int timeout_ms)
{
    struct kafka_admin_options options = {.brokers = brokers, .timeout_ms = timeout_ms};
    struct err err = ERR_INIT;
    struct kafka_admin *admin = kafka_admin_open(&options, &err);
    if (admin == NULL) {
        print_error("%s: %s\n", err.code, err.text);
    }
    return admin;
}

static int setup(void **state)
{
    static const char *const settings[] = {"max.message.bytes=2000", NULL};
    struct fixture *fixture = calloc(1, sizeof *fixture);
    *state = fixture;
    fixture->kafka = kafka_fixture_new_with(3, settings);
    if (fixture->kafka == NULL) {
        return -1;
    }
    fixture->admin = open_admin(kafka_fixture_bootstrap(fixture->kafka), 10000);
    return fixture->admin == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    kafka_admin_close(&fixture->admin);
    assert_null(fixture->admin);
    kafka_fixture_free(&fixture->kafka);
    free(fixture);
    return 0;
}

static void test_kafka_admin_reads_what_a_topic_is_like(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    struct kafka_admin_facts facts;
    assert_true(kafka_admin_topic_read(fixture->admin, kafka_fixture_topic(fixture->kafka), &facts, &err));
    assert_true(facts.exists);
    assert_int_equal(facts.partition_count, 3);
    assert_int_equal(facts.replication_factor, 1);
    assert_int_equal(facts.message_bytes_max, 2000);
    int64_t offset = -1;
    assert_true(kafka_admin_log_end(fixture->admin, kafka_fixture_topic(fixture->kafka), 2, &offset, &err));
    assert_int_equal(offset, 0);
    char id[KAFKA_CLUSTER_ID_SIZE];
    assert_true(kafka_admin_cluster_id(fixture->admin, id, &err));
    assert_true(id[0] != '\0');
}

static void test_kafka_admin_says_that_a_topic_is_missing(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    struct kafka_admin_facts facts;
    assert_true(kafka_admin_topic_read(fixture->admin, "nobody.made.this", &facts, &err));
    assert_false(facts.exists);
}

static void test_kafka_admin_leaves_an_existing_topic_alone(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    enum kafka_admin_outcome outcome;
    struct kafka_admin_topic topic = {.topic = kafka_fixture_topic(fixture->kafka), .partition_count = 7};
    assert_true(kafka_admin_topic_make(fixture->admin, &topic, &outcome, &err));
    assert_int_equal(outcome, KAFKA_ADMIN_EXISTED);
    struct kafka_admin_facts facts;
    assert_true(kafka_admin_topic_read(fixture->admin, topic.topic, &facts, &err));
    assert_int_equal(facts.partition_count, 3);
}

struct refusal_case {
    const char *name;
    struct kafka_admin_topic topic;
    const char *code;
};

static const struct kafka_property unknown_setting = {"no.such.setting", "1"};

static const struct refusal_case refusal_cases[] = {
    {"a name that Kafka does not allow", {.topic = "a b"}, "TOPIC_EXCEPTION"},
    {"more replicas than brokers", {.topic = "test.replicas", .replication_factor = 100}, "INVALID_REPLICATION_FACTOR"},
    {"a setting that is none",
     {.topic = "test.setting", .settings = &unknown_setting, .setting_count = 1},
     "INVALID_CONFIG"},
};

static void test_kafka_admin_reports_refusals(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < COUNT_OF(refusal_cases); i++) {
        struct err err = ERR_INIT;
        enum kafka_admin_outcome outcome;
        assert_false(kafka_admin_topic_make(fixture->admin, &refusal_cases[i].topic, &outcome, &err));
        assert_int_equal(err.kind, ERR_PERMANENT);
        assert_string_equal(err.code, refusal_cases[i].code);
    }
}

static void test_kafka_admin_is_transient_without_a_broker(void **state)
{
    (void)state;
    struct kafka_admin *admin = open_admin("127.0.0.1:1", 300);
    assert_non_null(admin);
    struct err err = ERR_INIT;
    enum kafka_admin_outcome outcome;
    struct kafka_admin_topic topic = {.topic = "test.nowhere"};
    assert_false(kafka_admin_topic_make(admin, &topic, &outcome, &err));
    assert_int_equal(err.kind, ERR_TRANSIENT);
    struct kafka_admin_facts facts;
    err_clear(&err);
    assert_false(kafka_admin_topic_read(admin, "test.nowhere", &facts, &err));
    assert_int_equal(err.kind, ERR_TRANSIENT);
    kafka_admin_close(&admin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kafka_admin_reads_what_a_topic_is_like, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kafka_admin_says_that_a_topic_is_missing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kafka_admin_leaves_an_existing_topic_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kafka_admin_reports_refusals, setup, teardown),
        cmocka_unit_test(test_kafka_admin_is_transient_without_a_broker),
    };
    return cmocka_run_group_tests_name("test_kafka_admin", tests, NULL, NULL);
}
