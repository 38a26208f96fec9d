/* SPDX-License-Identifier: Apache-2.0
 *
 * The group member and the reader beside it, on a real broker.
 */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kafka/kafka_consumer.h"
#include "kafka/kafka_reader.h"
#include "kafka_feed.h"
#include "kafka_fixture.h"

#define WAIT_MS 20000
#define RECORD_COUNT 10

struct broker {
    struct kafka_fixture *kafka;
    struct kafka_feed *feed;
    const char *topics[1];
    char group[80];
};

static int setup(void **state)
{
    static int count;
    struct broker *broker = calloc(1, sizeof *broker);
    assert_non_null(broker);
    *state = broker;
    broker->kafka = kafka_fixture_new(2);
    assert_non_null(broker->kafka);
    broker->topics[0] = kafka_fixture_topic(broker->kafka);
    broker->feed = kafka_feed_new(kafka_fixture_bootstrap(broker->kafka), broker->topics[0]);
    snprintf(broker->group, sizeof broker->group, "%s-%d", broker->topics[0], ++count);
    for (int n = 0; n < RECORD_COUNT; n++) {
        char value[16];
        snprintf(value, sizeof value, "%d", n);
        kafka_feed_put(broker->feed, 0, "k", value, NULL);
        kafka_feed_put(broker->feed, 1, "k", value, NULL);
    }
    kafka_feed_flush(broker->feed);
    return 0;
}

static int teardown(void **state)
{
    struct broker *broker = *state;
    kafka_feed_free(&broker->feed);
    kafka_fixture_free(&broker->kafka);
    free(broker);
    return 0;
}

static struct kafka_consumer_options options_of(const struct broker *broker, const char *instance)
{
    return (struct kafka_consumer_options){
        .brokers = kafka_fixture_bootstrap(broker->kafka),
        .group = broker->group,
        .instance = instance,
        .topics = broker->topics,
        .topic_count = 1,
        .memory_size_max = 4 * 1024 * 1024,
        .session_timeout_ms = 6000,
    };
}

static struct kafka_consumer *open_consumer(const struct broker *broker, const char *instance)
{
    struct kafka_consumer_options options = options_of(broker, instance);
    struct err err = ERR_INIT;
    struct kafka_consumer *consumer = kafka_consumer_open(&options, &err);
    assert_non_null(consumer);
    return consumer;
}

/* The next event of this kind; others are dropped. */
static struct kafka_consumer_event await(struct kafka_consumer *consumer, enum kafka_consumer_event_kind kind)
{
    int64_t deadline_ms = clock_monotonic_ms() + WAIT_MS;
    struct kafka_consumer_event event;
    struct err err = ERR_INIT;
    do {
        assert_true(clock_monotonic_ms() < deadline_ms);
        assert_true(kafka_consumer_poll(consumer, 100, &event, &err));
        if (event.kind == KAFKA_CONSUMER_MESSAGE && kind != KAFKA_CONSUMER_MESSAGE) {
            kafka_message_done(&event.message);
        }
    } while (event.kind != kind);
    return event;
}

/* Waits for the assignment and starts both partitions at this offset. */
static void assign_at(struct kafka_consumer *consumer, int64_t offset)
{
    struct err err = ERR_INIT;
    struct kafka_consumer_event event = await(consumer, KAFKA_CONSUMER_ASSIGNED);
    assert_int_equal(event.place_count, 2);
    struct kafka_place places[2] = {event.places[0], event.places[1]};
    places[0].offset = places[1].offset = offset;
    assert_true(kafka_consumer_assign(consumer, places, 2, &err));
}

/* Reads records of one partition and checks that their offsets follow each other. */
static void expect_records(struct kafka_consumer *consumer, int32_t partition, int64_t first, int64_t end)
{
    for (int64_t offset = first; offset < end;) {
        struct kafka_consumer_event event = await(consumer, KAFKA_CONSUMER_MESSAGE);
        if (event.message.record.partition == partition) {
            assert_int_equal(event.message.record.offset, offset);
            offset++;
        }
        kafka_message_done(&event.message);
    }
}

static void expect_silence(struct kafka_consumer *consumer, int32_t partition, int ms)
{
    int64_t deadline_ms = clock_monotonic_ms() + ms;
    while (clock_monotonic_ms() < deadline_ms) {
        struct kafka_consumer_event event;
        struct err err = ERR_INIT;
        assert_true(kafka_consumer_poll(consumer, 50, &event, &err));
        if (event.kind == KAFKA_CONSUMER_MESSAGE) {
            assert_int_not_equal(event.message.record.partition, partition);
            kafka_message_done(&event.message);
        }
    }
}

static void test_kafka_consumer_reads_from_the_offsets_given(void **state)
{
    const struct broker *broker = *state;
    struct kafka_consumer *consumer = open_consumer(broker, "one");
    assign_at(consumer, 4);
    expect_records(consumer, 0, 4, RECORD_COUNT);
    assert_true(kafka_consumer_close(&consumer, 8000));
    assert_null(consumer);
}

static void test_kafka_consumer_pauses_seeks_and_resumes_without_a_gap(void **state)
{
    const struct broker *broker = *state;
    struct kafka_consumer *consumer = open_consumer(broker, "one");
    struct err err = ERR_INIT;
    assign_at(consumer, 0);
    expect_records(consumer, 0, 0, 3);
    assert_true(kafka_consumer_pause(consumer, broker->topics[0], 0, &err));
    assert_true(kafka_consumer_pause(consumer, broker->topics[0], 0, &err));
    expect_silence(consumer, 0, 300);
    struct kafka_place back = {.topic = broker->topics[0], .partition = 0, .offset = 1};
    assert_true(kafka_consumer_seek(consumer, back, &err));
    assert_true(kafka_consumer_resume(consumer, broker->topics[0], 0, &err));
    assert_true(kafka_consumer_resume(consumer, broker->topics[0], 0, &err));
    expect_records(consumer, 0, 1, RECORD_COUNT);
    assert_int_equal(kafka_consumer_end_known(consumer, broker->topics[0], 0), RECORD_COUNT);
    assert_true(kafka_consumer_close(&consumer, 8000));
}

static void test_kafka_consumer_says_when_an_offset_is_gone(void **state)
{
    const struct broker *broker = *state;
    kafka_feed_truncate(broker->feed, 0, 6);
    struct kafka_consumer *consumer = open_consumer(broker, "one");
    assign_at(consumer, 2);
    struct kafka_consumer_event event = await(consumer, KAFKA_CONSUMER_OUT_OF_RANGE);
    assert_int_equal(event.place_count, 1);
    assert_int_equal(event.places[0].partition, 0);
    const struct kafka_place places[] = {{broker->topics[0], 0, 6}, {broker->topics[0], 1, 0}};
    struct err err = ERR_INIT;
    assert_true(kafka_consumer_assign(consumer, places, 2, &err));
    expect_records(consumer, 0, 6, RECORD_COUNT);
    assert_true(kafka_consumer_close(&consumer, 8000));
}

static void test_kafka_consumer_shares_with_a_second_member(void **state)
{
    const struct broker *broker = *state;
    struct err err = ERR_INIT;
    struct kafka_consumer *one = open_consumer(broker, "one");
    assign_at(one, 0);
    struct kafka_consumer *other = open_consumer(broker, "other");
    await(one, KAFKA_CONSUMER_REVOKED);
    assert_true(kafka_consumer_unassign(one, &err));
    /* Both must poll for the group to settle. */
    size_t one_count = 0;
    size_t other_count = 0;
    int64_t deadline_ms = clock_monotonic_ms() + WAIT_MS;
    while (one_count == 0 || other_count == 0) {
        assert_true(clock_monotonic_ms() < deadline_ms);
        struct kafka_consumer *members[] = {one, other};
        for (size_t i = 0; i < 2; i++) {
            struct kafka_consumer_event event;
            assert_true(kafka_consumer_poll(members[i], 50, &event, &err));
            if (event.kind == KAFKA_CONSUMER_ASSIGNED) {
                *(i == 0 ? &one_count : &other_count) = event.place_count;
                assert_true(kafka_consumer_assign(members[i], event.places, event.place_count, &err));
            } else if (event.kind == KAFKA_CONSUMER_REVOKED) {
                assert_true(kafka_consumer_unassign(members[i], &err));
            }
        }
    }
    assert_int_equal(one_count, 1);
    assert_int_equal(other_count, 1);
    assert_true(kafka_consumer_close(&one, 8000));
    assert_true(kafka_consumer_close(&other, 8000));
}

static void test_kafka_consumer_is_spent_when_another_has_its_name(void **state)
{
    const struct broker *broker = *state;
    struct err err = ERR_INIT;
    struct kafka_consumer *one = open_consumer(broker, "one");
    assign_at(one, 0);
    struct kafka_consumer *twin = open_consumer(broker, "one");
    assign_at(twin, 0);
    int64_t deadline_ms = clock_monotonic_ms() + WAIT_MS;
    bool is_good = true;
    while (is_good) {
        assert_true(clock_monotonic_ms() < deadline_ms);
        struct kafka_consumer_event event;
        is_good = kafka_consumer_poll(one, 100, &event, &err);
        if (is_good && event.kind == KAFKA_CONSUMER_MESSAGE) {
            kafka_message_done(&event.message);
        }
    }
    assert_int_equal(err.kind, ERR_FATAL);
    assert_string_equal(err.code, "FENCED_INSTANCE_ID");
    assert_true(kafka_consumer_close(&one, 8000));
    assert_true(kafka_consumer_close(&twin, 8000));
}

static void test_kafka_consumer_refuses_what_it_depends_on(void **state)
{
    const struct broker *broker = *state;
    static const struct kafka_property properties[] = {{"auto.offset.reset", "latest"}};
    struct kafka_consumer_options options = options_of(broker, "one");
    options.properties = properties;
    options.property_count = 1;
    struct err err = ERR_INIT;
    assert_null(kafka_consumer_open(&options, &err));
    assert_string_equal(err.code, "kafka_property_fixed");
}

static enum kafka_reader_outcome read_at(struct kafka_reader *reader, const char *topic, int64_t offset,
                                         struct kafka_message *ret_message)
{
    struct err err = ERR_INIT;
    enum kafka_reader_outcome outcome = KAFKA_READER_PENDING;
    struct kafka_place place = {.topic = topic, .partition = 1, .offset = offset};
    assert_true(kafka_reader_start(reader, place, &err));
    for (int i = 0; i < WAIT_MS / 100 && outcome == KAFKA_READER_PENDING; i++) {
        assert_true(kafka_reader_poll(reader, 100, &outcome, ret_message, &err));
    }
    return outcome;
}

static void test_kafka_reader_reads_again_and_answers(void **state)
{
    const struct broker *broker = *state;
    struct kafka_consumer_options options = options_of(broker, "one");
    const char *topic = broker->topics[0];
    struct err err = ERR_INIT;
    struct kafka_reader *reader = kafka_reader_open(&options, &err);
    assert_non_null(reader);
    kafka_feed_truncate(broker->feed, 1, 3);
    struct kafka_message message;
    assert_int_equal(read_at(reader, topic, 7, &message), KAFKA_READER_MESSAGE);
    assert_int_equal(message.record.offset, 7);
    assert_memory_equal(message.record.value.data, "7", 1);
    kafka_message_done(&message);
    assert_int_equal(read_at(reader, topic, 1, &message), KAFKA_READER_OUT_OF_RANGE);
    assert_int_equal(read_at(reader, topic, RECORD_COUNT + 5, &message), KAFKA_READER_OUT_OF_RANGE);
    int64_t first = -1;
    int64_t next = -1;
    assert_true(kafka_reader_log_ends(reader, topic, 1, WAIT_MS, &first, &next, &err));
    assert_int_equal(first, 3);
    assert_int_equal(next, RECORD_COUNT);
    int32_t count = -1;
    assert_true(kafka_reader_partition_count(reader, topic, WAIT_MS, &count, &err));
    assert_int_equal(count, 2);
    count = 0;
    assert_true(kafka_reader_partition_count(reader, "no.such.topic", WAIT_MS, &count, &err));
    assert_int_equal(count, 0);
    int64_t offset = -1;
    assert_true(kafka_reader_offset_at(reader, topic, 0, 1, WAIT_MS, &offset, &err));
    assert_int_equal(offset, 0);
    int64_t future_ms = clock_realtime_ms() + 3600000;
    assert_true(kafka_reader_offset_at(reader, topic, 0, future_ms, WAIT_MS, &offset, &err));
    assert_int_equal(offset, RECORD_COUNT);
    char cluster_id[KAFKA_CLUSTER_ID_SIZE];
    assert_true(kafka_reader_cluster_id(reader, WAIT_MS, cluster_id, &err));
    assert_true(cluster_id[0] != '\0');
    assert_true(kafka_reader_close(&reader, 5000));
}

#define MANY_RECORDS 30000
#define SLEEP_MS 700 /* Of the second that the library would sleep. */

static void feed_many(struct broker *broker)
{
    char value[120] = {0};
    memset(value, 'v', sizeof value - 1);
    for (int n = 0; n < MANY_RECORDS; n++) {
        kafka_feed_put(broker->feed, 0, "k", value, NULL);
    }
    kafka_feed_flush(broker->feed);
}

/* A queue of 1024 records and answers of 128 KiB: full after each of them, and soon empty. Counts how often nothing
 * comes for long between the first record and the last. */
static int count_sleeps(struct kafka_consumer *consumer)
{
    int sleep_count = 0;
    int64_t last_ms = 0;
    for (int n = 0; n < MANY_RECORDS; n++) {
        struct kafka_consumer_event event = await(consumer, KAFKA_CONSUMER_MESSAGE);
        int64_t now_ms = clock_monotonic_ms();
        sleep_count += n > 0 && now_ms - last_ms >= SLEEP_MS;
        last_ms = now_ms;
        kafka_message_done(&event.message);
    }
    return sleep_count;
}

/* Before 2.2 librdkafka looks at a queue that was full only a second later; see kafka_waker.c. */
static void test_kafka_consumer_does_not_sleep_on_a_full_queue(void **state)
{
    struct broker *broker = *state;
    feed_many(broker);
    struct kafka_consumer_options options = options_of(broker, "hungry");
    options.memory_size_max = 1024 * 1024;
    struct err err = ERR_INIT;
    struct kafka_consumer *consumer = kafka_consumer_open(&options, &err);
    assert_non_null(consumer);
    assign_at(consumer, 0);
    int sleep_count = count_sleeps(consumer);
    print_message("%d sleeps\n", sleep_count);
    assert_true(sleep_count <= 1); /* What stands still on a busy machine may look alike. */
    assert_true(kafka_consumer_close(&consumer, 5000));
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kafka_consumer_reads_from_the_offsets_given, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kafka_consumer_pauses_seeks_and_resumes_without_a_gap, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kafka_consumer_says_when_an_offset_is_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kafka_consumer_shares_with_a_second_member, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kafka_consumer_is_spent_when_another_has_its_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kafka_consumer_refuses_what_it_depends_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kafka_consumer_does_not_sleep_on_a_full_queue, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kafka_reader_reads_again_and_answers, setup, teardown),
    };
    return cmocka_run_group_tests_name("kafka_consumer", tests, NULL, NULL);
}
