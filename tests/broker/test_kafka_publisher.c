/* SPDX-License-Identifier: Apache-2.0
 *
 * The publisher against the library's mock cluster, whose errors are made to
 * order, and against a real broker where ONCEWARD_TEST_KAFKA names one.
 */
#include "cmocka_all.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "kafka/kafka_publisher.h"
#include "kafka_private.h"

#define PRODUCE_API 0
#define WAIT_MS 20000

static const struct event event_of_orders = {
    .outbox_id = 42,
    .lane = 0,
    .event_id = "0198c0de-0000-7000-8000-000000000001",
    .tenant = "default",
    .topic = "orders",
    .key = "0198c0de-0000-7000-8000-00000000000a",
    .type = "order.submitted",
    .source = "/onceward",
    .content_type = "application/json",
    .time = "2026-11-30T06:00:00.000000Z",
    .value = {"{}", 2},
};

static struct publisher *open_mock_with(size_t outstanding_count_max, size_t outstanding_bytes_max)
{
    static const struct kafka_property mock = {"test.mock.num.brokers", "1"};
    struct kafka_publisher_options options = {.brokers = "",
                                              .properties = &mock,
                                              .property_count = 1,
                                              .outstanding_count_max = outstanding_count_max,
                                              .outstanding_bytes_max = outstanding_bytes_max};
    struct err err = ERR_INIT;
    struct publisher *publisher = kafka_publisher_open(&options, &err);
    assert_string_equal(err.text, "");
    assert_non_null(publisher);
    return publisher;
}

static struct publisher *open_mock(size_t outstanding_count_max)
{
    return open_mock_with(outstanding_count_max, 0);
}

static rd_kafka_mock_cluster_t *mock_of(struct publisher *publisher)
{
    return rd_kafka_handle_mock_cluster(kafka_publisher_handle(publisher));
}

/* Publishes as the relay does: while the topic is not known yet, again. */
static void publish_when_available(struct publisher *publisher, const struct event *event, uint64_t ticket)
{
    for (int waited_ms = 0; waited_ms < WAIT_MS; waited_ms += 10) {
        struct err err = ERR_INIT;
        enum publish_outcome outcome;
        if (publisher->ops->publish(publisher, event, ticket, &outcome, &err)) {
            assert_int_equal(outcome, PUBLISH_QUEUED);
            return;
        }
        assert_string_equal(err.code, "topic_unavailable");
        usleep(10000);
    }
    fail_msg("topic %s never became available", event->topic);
}

static struct publish_report collect_one(struct publisher *publisher)
{
    struct publish_report report = {.ticket = 0};
    for (int waited_ms = 0; waited_ms < WAIT_MS; waited_ms += 100) {
        if (publisher->ops->collect(publisher, &report, 1, 100) == 1) {
            return report;
        }
    }
    fail_msg("no report came");
    return report;
}

static void test_kafka_publisher_reports_place_and_ticket_of_what_was_acknowledged(void **state)
{
    (void)state;
    struct publisher *publisher = open_mock(10);
    rd_kafka_mock_topic_create(mock_of(publisher), "orders", 1, 1);
    publish_when_available(publisher, &event_of_orders, UINT64_C(0x0123456789abcdef));
    assert_int_equal(publisher->ops->outstanding_count(publisher), 1);
    struct publish_report report = collect_one(publisher);
    assert_true(report.was_acknowledged);
    assert_true(report.ticket == UINT64_C(0x0123456789abcdef));
    assert_int_equal(report.partition, 0);
    assert_int_equal(report.offset, 0);
    assert_int_equal(publisher->ops->outstanding_count(publisher), 0);
    assert_true(kafka_publisher_is_reachable(publisher));
    publisher->ops->close(publisher);
}

static void test_kafka_publisher_goes_on_after_a_passing_error_of_the_broker(void **state)
{
    (void)state;
    struct publisher *publisher = open_mock(10);
    rd_kafka_mock_topic_create(mock_of(publisher), "orders", 1, 1);
    rd_kafka_mock_push_request_errors(mock_of(publisher), PRODUCE_API, 2, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
                                      RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT);
    publish_when_available(publisher, &event_of_orders, 7);
    struct publish_report report = collect_one(publisher);
    assert_true(report.was_acknowledged);
    publisher->ops->close(publisher);
}

static void test_kafka_publisher_reports_a_refusal_as_permanent(void **state)
{
    (void)state;
    struct publisher *publisher = open_mock(10);
    rd_kafka_mock_topic_create(mock_of(publisher), "orders", 1, 1);
    rd_kafka_mock_push_request_errors(mock_of(publisher), PRODUCE_API, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    publish_when_available(publisher, &event_of_orders, 7);
    struct publish_report report = collect_one(publisher);
    assert_false(report.was_acknowledged);
    assert_int_equal(report.ticket, 7);
    assert_int_equal(report.err.kind, ERR_PERMANENT);
    assert_string_equal(report.err.code, "MSG_SIZE_TOO_LARGE");
    publisher->ops->close(publisher);
}

static void test_kafka_publisher_hands_nothing_over_for_a_partition_without_leader(void **state)
{
    (void)state;
    struct publisher *publisher = open_mock(10);
    rd_kafka_mock_topic_create(mock_of(publisher), "orders", 1, 1);
    rd_kafka_mock_partition_set_leader(mock_of(publisher), "orders", 0, -1);
    for (int i = 0; i < 30; i++) {
        struct err err = ERR_INIT;
        enum publish_outcome outcome;
        assert_false(publisher->ops->publish(publisher, &event_of_orders, 1, &outcome, &err));
        assert_int_equal(err.kind, ERR_TRANSIENT);
        usleep(10000);
    }
    rd_kafka_mock_partition_set_leader(mock_of(publisher), "orders", 0, 1);
    publish_when_available(publisher, &event_of_orders, 2);
    assert_true(collect_one(publisher).was_acknowledged);
    publisher->ops->close(publisher);
}

static void test_kafka_publisher_reports_every_ticket_after_a_purge(void **state)
{
    (void)state;
    struct publisher *publisher = open_mock(10);
    rd_kafka_mock_topic_create(mock_of(publisher), "orders", 1, 1);
    publish_when_available(publisher, &event_of_orders, 1);
    assert_true(collect_one(publisher).was_acknowledged);
    rd_kafka_mock_broker_set_down(mock_of(publisher), 1);
    usleep(100000);
    for (uint64_t ticket = 2; ticket <= 5; ticket++) {
        publish_when_available(publisher, &event_of_orders, ticket);
    }
    publisher->ops->purge(publisher);
    unsigned reported = 0; /* In any order: what was in flight and what was queued are purged apart. */
    for (int i = 2; i <= 5; i++) {
        struct publish_report report = collect_one(publisher);
        assert_false(report.was_acknowledged);
        assert_in_range(report.ticket, 2, 5);
        assert_int_equal(report.err.kind, ERR_TRANSIENT);
        reported |= 1U << report.ticket;
    }
    assert_int_equal(reported, 0x3c);
    struct err err = ERR_INIT;
    enum publish_outcome outcome;
    assert_false(publisher->ops->publish(publisher, &event_of_orders, 6, &outcome, &err));
    assert_string_equal(err.code, "publisher_purged");
    publisher->ops->close(publisher);
}

static void test_kafka_publisher_reports_fatal_when_the_handle_is_spent(void **state)
{
    (void)state;
    struct publisher *publisher = open_mock(10);
    rd_kafka_mock_topic_create(mock_of(publisher), "orders", 1, 1);
    rd_kafka_mock_push_request_errors(mock_of(publisher), PRODUCE_API, 3, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
                                      RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT);
    publish_when_available(publisher, &event_of_orders, 1);
    rd_kafka_test_fatal_error(kafka_publisher_handle(publisher), RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, "test");
    struct publish_report report = collect_one(publisher);
    if (!report.was_acknowledged) {
        assert_int_equal(report.err.kind, ERR_FATAL);
    }
    struct err err = ERR_INIT;
    enum publish_outcome outcome;
    assert_false(publisher->ops->publish(publisher, &event_of_orders, 2, &outcome, &err));
    assert_int_equal(err.kind, ERR_FATAL);
    publisher->ops->close(publisher);
}

static void test_kafka_publisher_is_full_at_its_limit(void **state)
{
    (void)state;
    struct publisher *publisher = open_mock(2);
    rd_kafka_mock_topic_create(mock_of(publisher), "orders", 1, 1);
    publish_when_available(publisher, &event_of_orders, 1);
    publish_when_available(publisher, &event_of_orders, 2);
    struct err err = ERR_INIT;
    enum publish_outcome outcome;
    assert_true(publisher->ops->publish(publisher, &event_of_orders, 3, &outcome, &err));
    assert_int_equal(outcome, PUBLISH_FULL);
    assert_int_equal(collect_one(publisher).ticket, 1);
    publish_when_available(publisher, &event_of_orders, 3);
    publisher->ops->close(publisher);
}

static void test_kafka_publisher_is_full_at_its_limit_in_bytes(void **state)
{
    (void)state;
    struct publisher *publisher = open_mock_with(100, 1); /* Less than any event: each goes alone. */
    rd_kafka_mock_topic_create(mock_of(publisher), "orders", 1, 1);
    for (uint64_t ticket = 1; ticket <= 3; ticket++) {
        struct err err = ERR_INIT;
        enum publish_outcome outcome;
        publish_when_available(publisher, &event_of_orders, ticket);
        assert_true(publisher->ops->publish(publisher, &event_of_orders, ticket, &outcome, &err));
        assert_int_equal(outcome, PUBLISH_FULL);
        assert_int_equal(collect_one(publisher).ticket, ticket);
    }
    publisher->ops->close(publisher);
}

static void test_kafka_publisher_refuses_properties_that_carry_its_promise(void **state)
{
    (void)state;
    static const struct {
        struct kafka_property property;
        const char *code;
    } cases[] = {
        {{"acks", "1"}, "kafka_property_fixed"},
        {{"enable.idempotence", "false"}, "kafka_property_fixed"},
        {{"message.timeout.ms", "5"}, "kafka_property_fixed"},
        {{"no.such.property", "5"}, "kafka_property_invalid"},
        {{"linger.ms", "soon"}, "kafka_property_invalid"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kafka_publisher_options options = {.brokers = "127.0.0.1:1",
                                                  .properties = &cases[i].property,
                                                  .property_count = 1,
                                                  .outstanding_count_max = 1};
        struct err err = ERR_INIT;
        assert_null(kafka_publisher_open(&options, &err));
        assert_int_equal(err.kind, ERR_PERMANENT);
        assert_string_equal(err.code, cases[i].code);
        assert_non_null(strstr(err.text, cases[i].property.name));
    }
}

static void test_kafka_publisher_opens_without_a_broker_and_says_so(void **state)
{
    (void)state;
    struct kafka_publisher_options options = {.brokers = "127.0.0.1:1", .outstanding_count_max = 1};
    struct err err = ERR_INIT;
    struct publisher *publisher = kafka_publisher_open(&options, &err);
    assert_non_null(publisher);
    char id[KAFKA_CLUSTER_ID_SIZE];
    assert_false(kafka_publisher_cluster_id(publisher, 50, id, &err));
    assert_int_equal(err.kind, ERR_TRANSIENT);
    assert_false(kafka_publisher_is_reachable(publisher));
    publisher->ops->close(publisher);
}

/* ---- A real broker ---- */

static void make_topic(struct publisher *publisher, const char *name, const char *limit)
{
    rd_kafka_t *handle = kafka_publisher_handle(publisher);
    char why[256];
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, 2, 1, why, sizeof why);
    assert_int_equal(rd_kafka_NewTopic_set_config(topic, "max.message.bytes", limit), 0);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(handle);
    rd_kafka_CreateTopics(handle, &topic, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, WAIT_MS);
    assert_non_null(event);
    assert_int_equal(rd_kafka_event_error(event), 0);
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_NewTopic_destroy(topic);
}

static void header_is(rd_kafka_headers_t *headers, size_t index, const char *name, const char *value)
{
    const char *got_name;
    const void *got_value;
    size_t size;
    assert_int_equal(rd_kafka_header_get_all(headers, index, &got_name, &got_value, &size), 0);
    assert_string_equal(got_name, name);
    assert_int_equal(size, strlen(value));
    assert_memory_equal(got_value, value, size);
}

static void check_record(const rd_kafka_message_t *message, const struct event *event)
{
    assert_int_equal(message->err, 0);
    assert_int_equal(message->key_len, strlen(event->key));
    assert_memory_equal(message->key, event->key, message->key_len);
    assert_int_equal(message->len, event->value.size);
    assert_memory_equal(message->payload, event->value.data, message->len);
    rd_kafka_headers_t *headers;
    assert_int_equal(rd_kafka_message_headers(message, &headers), 0);
    assert_int_equal(rd_kafka_header_cnt(headers), 13);
    size_t index = 0;
    header_is(headers, index++, "ce_specversion", "1.0");
    header_is(headers, index++, "ce_id", event->event_id);
    header_is(headers, index++, "ce_source", event->source);
    header_is(headers, index++, "ce_type", event->type);
    header_is(headers, index++, "ce_subject", event->subject);
    header_is(headers, index++, "ce_time", event->time);
    header_is(headers, index++, "ce_sequence", "00000000000000000042");
    header_is(headers, index++, "ce_dataschema", event->dataschema);
    header_is(headers, index++, "content-type", event->content_type);
    header_is(headers, index++, "ce_tenantid", event->tenant);
    header_is(headers, index++, "ce_traceparent", event->traceparent);
    header_is(headers, index++, "traceparent", event->traceparent);
    header_is(headers, index++, "extra", "\xff\x01");
}

/* Reads the record back with a consumer of its own. */
static void check_on_broker(const char *brokers, const struct event *event, int32_t partition, int64_t offset)
{
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    assert_int_equal(rd_kafka_conf_set(conf, "bootstrap.servers", brokers, why, sizeof why), 0);
    assert_int_equal(rd_kafka_conf_set(conf, "group.id", "test_kafka_publisher", why, sizeof why), 0);
    rd_kafka_t *reader = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    assert_non_null(reader);
    rd_kafka_topic_partition_list_t *places = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(places, event->topic, partition)->offset = offset;
    assert_int_equal(rd_kafka_assign(reader, places), 0);
    rd_kafka_topic_partition_list_destroy(places);
    rd_kafka_message_t *message = rd_kafka_consumer_poll(reader, WAIT_MS);
    assert_non_null(message);
    check_record(message, event);
    rd_kafka_message_destroy(message);
    rd_kafka_consumer_close(reader);
    rd_kafka_destroy(reader);
}

static void test_kafka_publisher_writes_the_record_of_the_contract_to_a_real_broker(void **state)
{
    (void)state;
    const char *brokers = getenv("ONCEWARD_TEST_KAFKA");
    assert_non_null(brokers); /* A test without its broker fails: a skipped one looks green. */
    struct kafka_publisher_options options = {.brokers = brokers, .outstanding_count_max = 1000};
    struct err err = ERR_INIT;
    struct publisher *publisher = kafka_publisher_open(&options, &err);
    assert_non_null(publisher);
    char id[KAFKA_CLUSTER_ID_SIZE];
    assert_true(kafka_publisher_cluster_id(publisher, WAIT_MS, id, &err));
    print_message("cluster id %s, librdkafka %s\n", id, rd_kafka_version_str());

    char topic[64];
    snprintf(topic, sizeof topic, "publisher.%ld.%d", (long)time(NULL), (int)getpid());
    make_topic(publisher, topic, "1000");
    struct event_header extra = {"extra", {"\xff\x01", 2}};
    struct event event = event_of_orders;
    event.topic = topic;
    event.subject = "order/1";
    event.dataschema = "https://example.org/schema";
    event.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    event.headers = &extra;
    event.header_count = 1;
    publish_when_available(publisher, &event, 9);
    struct publish_report report = collect_one(publisher);
    assert_true(report.was_acknowledged);
    check_on_broker(brokers, &event, report.partition, report.offset);

    char large[2000];
    memset(large, 'x', sizeof large);
    event.value = (struct bytes){large, sizeof large};
    publish_when_available(publisher, &event, 10);
    report = collect_one(publisher);
    assert_false(report.was_acknowledged);
    assert_int_equal(report.err.kind, ERR_PERMANENT);
    assert_string_equal(report.err.code, "MSG_SIZE_TOO_LARGE");
    publisher->ops->close(publisher);
}

static void test_kafka_publisher_judges_each_record_by_itself_when_single(void **state)
{
    (void)state;
    const char *brokers = getenv("ONCEWARD_TEST_KAFKA");
    assert_non_null(brokers); /* A test without its broker fails: a skipped one looks green. */
    struct kafka_publisher_options options = {.brokers = brokers, .outstanding_count_max = 100, .is_single = true};
    struct err err = ERR_INIT;
    struct publisher *publisher = kafka_publisher_open(&options, &err);
    assert_non_null(publisher);
    char topic[64];
    snprintf(topic, sizeof topic, "publisher.single.%ld.%d", (long)time(NULL), (int)getpid());
    make_topic(publisher, topic, "1000");
    struct event event = event_of_orders;
    event.topic = topic;
    for (uint64_t ticket = 0; ticket < 30; ticket++) {
        publish_when_available(publisher, &event, ticket);
    }
    for (uint64_t ticket = 0; ticket < 30; ticket++) {
        assert_true(collect_one(publisher).was_acknowledged);
    }
    publisher->ops->close(publisher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kafka_publisher_reports_place_and_ticket_of_what_was_acknowledged),
        cmocka_unit_test(test_kafka_publisher_goes_on_after_a_passing_error_of_the_broker),
        cmocka_unit_test(test_kafka_publisher_reports_a_refusal_as_permanent),
        cmocka_unit_test(test_kafka_publisher_hands_nothing_over_for_a_partition_without_leader),
        cmocka_unit_test(test_kafka_publisher_reports_every_ticket_after_a_purge),
        cmocka_unit_test(test_kafka_publisher_reports_fatal_when_the_handle_is_spent),
        cmocka_unit_test(test_kafka_publisher_is_full_at_its_limit),
        cmocka_unit_test(test_kafka_publisher_is_full_at_its_limit_in_bytes),
        cmocka_unit_test(test_kafka_publisher_refuses_properties_that_carry_its_promise),
        cmocka_unit_test(test_kafka_publisher_opens_without_a_broker_and_says_so),
        cmocka_unit_test(test_kafka_publisher_writes_the_record_of_the_contract_to_a_real_broker),
        cmocka_unit_test(test_kafka_publisher_judges_each_record_by_itself_when_single),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
