/* SPDX-License-Identifier: Apache-2.0
 *
 * librdkafka by itself, with records like those of the relay: what the programs
 * are compared with, and what a topic is filled and watched with.
 *
 *   bench_kafka BROKERS make TOPIC PARTITIONS
 *   bench_kafka BROKERS drop TOPIC
 *   bench_kafka BROKERS produce TOPIC COUNT BYTES    all at once, until the last is acknowledged
 *   bench_kafka BROKERS ack TOPIC COUNT BYTES        one after another
 *   bench_kafka BROKERS watch TOPIC FILE             "EVENT_ID MICROSECONDS" of each new record, until SIGTERM
 */
#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>

#include "bench_samples.h"

#define TIMEOUT_MS 60000
#define POLL_MS 20
#define ID_SIZE 37

static volatile sig_atomic_t is_stopping;

static void on_signal(int signal_number)
{
    (void)signal_number;
    is_stopping = 1;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK) {
        fprintf(stderr, "bench_kafka: %s\n", why);
        exit(1);
    }
}

static rd_kafka_t *open_handle(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
    char why[256];
    rd_kafka_t *handle = rd_kafka_new(type, conf, why, sizeof why);
    if (handle == NULL) {
        fprintf(stderr, "bench_kafka: %s\n", why);
        exit(1);
    }
    return handle;
}

/* ---- Topics ---- */

static int finish_admin(rd_kafka_queue_t *queue)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
    const rd_kafka_topic_result_t **results = NULL;
    size_t count = 0;
    if (event != NULL && rd_kafka_event_type(event) == RD_KAFKA_EVENT_CREATETOPICS_RESULT) {
        results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    } else if (event != NULL) {
        results = rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count);
    }
    rd_kafka_resp_err_t code = count == 1 ? rd_kafka_topic_result_error(results[0]) : RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        fprintf(stderr, "bench_kafka: %s\n", rd_kafka_err2str(code));
    }
    rd_kafka_event_destroy(event);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : 1;
}

static int change_topic(rd_kafka_conf_t *conf, const char *topic, int partition_count)
{
    rd_kafka_t *handle = open_handle(RD_KAFKA_PRODUCER, conf);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(handle);
    if (partition_count > 0) {
        char why[256];
        rd_kafka_NewTopic_t *created = rd_kafka_NewTopic_new(topic, partition_count, -1, why, sizeof why);
        rd_kafka_CreateTopics(handle, &created, 1, NULL, queue);
        rd_kafka_NewTopic_destroy(created);
    } else {
        rd_kafka_DeleteTopic_t *deleted = rd_kafka_DeleteTopic_new(topic);
        rd_kafka_DeleteTopics(handle, &deleted, 1, NULL, queue);
        rd_kafka_DeleteTopic_destroy(deleted);
    }
    int code = finish_admin(queue);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(handle);
    return code;
}

/* ---- Producing ---- */

struct feed {
    rd_kafka_t *handle;
    const char *topic;
    size_t failure_count;
    size_t report_count;
    struct bench_samples samples;
    int64_t id_base_ms;
};

static void on_delivery(rd_kafka_t *handle, const rd_kafka_message_t *message, void *opaque)
{
    (void)handle;
    struct feed *feed = opaque;
    feed->report_count++;
    feed->failure_count += message->err != RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* A UUIDv7 of this moment that counts, so that no two are alike. */
static void make_id(const struct feed *feed, size_t n, char ret_id[ID_SIZE])
{
    uint64_t ms = (uint64_t)feed->id_base_ms + n / 4096;
    snprintf(ret_id, ID_SIZE, "%08x-%04x-7%03x-8%03x-%012x", (unsigned)(ms >> 16), (unsigned)(ms & 0xffff),
             (unsigned)n % 4096, (unsigned)getpid() & 0xfff, (unsigned)n);
}

/* A value of so many bytes, as a submission has it. */
static char *make_value(size_t size)
{
    static const char head[] = "{\"request_id\":\"019ad3a0-0000-7000-8000-000000000001\",\"tenant\":\"default\","
                               "\"type\":\"example.submitted\",\"submitted_at\":\"2026-11-30T06:00:00.000001Z\","
                               "\"data\":{\"name\":\"";
    static const char tail[] = "\"},\"documents\":[]}";
    assert(size > sizeof head + sizeof tail);
    char *value = malloc(size + 1);
    assert(value != NULL);
    memset(value, 'n', size);
    memcpy(value, head, sizeof head - 1);
    memcpy(value + size - (sizeof tail - 1), tail, sizeof tail);
    return value;
}

static rd_kafka_headers_t *make_headers(const char *id, size_t n)
{
    char sequence[24];
    snprintf(sequence, sizeof sequence, "%020zu", n + 1);
    const char *const headers[][2] = {
        {"ce_specversion", "1.0"},  {"ce_id", id},
        {"ce_source", "/onceward"}, {"ce_type", "example.submitted"},
        {"ce_subject", id},         {"ce_time", "2026-11-30T06:00:00.000001Z"},
        {"ce_sequence", sequence},  {"content-type", "application/json"},
        {"ce_tenantid", "default"},
    };
    size_t count = sizeof headers / sizeof headers[0];
    rd_kafka_headers_t *list = rd_kafka_headers_new(count);
    for (size_t i = 0; i < count; i++) {
        rd_kafka_header_add(list, headers[i][0], -1, headers[i][1], -1);
    }
    return list;
}

static void put(struct feed *feed, size_t n, const char *value, size_t value_size)
{
    char id[ID_SIZE];
    make_id(feed, n, id);
    for (;;) {
        rd_kafka_headers_t *headers = make_headers(id, n);
        rd_kafka_resp_err_t code =
            rd_kafka_producev(feed->handle, RD_KAFKA_V_TOPIC(feed->topic), RD_KAFKA_V_KEY(id, ID_SIZE - 1),
                              RD_KAFKA_V_VALUE((void *)(uintptr_t)value, value_size), RD_KAFKA_V_HEADERS(headers),
                              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
            return;
        }
        rd_kafka_headers_destroy(headers);
        assert(code == RD_KAFKA_RESP_ERR__QUEUE_FULL);
        rd_kafka_poll(feed->handle, POLL_MS);
    }
}

static void produce_all(struct feed *feed, size_t count, const char *value, size_t value_size)
{
    for (size_t n = 0; n < count; n++) {
        put(feed, n, value, value_size);
        rd_kafka_poll(feed->handle, 0);
    }
    while (feed->report_count < count) {
        rd_kafka_poll(feed->handle, POLL_MS);
    }
}

static void produce_singly(struct feed *feed, size_t count, const char *value, size_t value_size)
{
    for (size_t n = 0; n < count; n++) {
        int64_t sent_us = bench_monotonic_us();
        put(feed, n, value, value_size);
        while (feed->report_count <= n) {
            rd_kafka_poll(feed->handle, POLL_MS);
        }
        bench_samples_add(&feed->samples, bench_monotonic_us() - sent_us);
    }
}

static int produce(rd_kafka_conf_t *conf, const char *topic, size_t count, size_t value_size, int is_single)
{
    struct feed feed = {.topic = topic, .id_base_ms = bench_wall_us() / 1000};
    bench_samples_init(&feed.samples, is_single ? count : 0);
    set(conf, "enable.idempotence", "true");
    set(conf, "acks", "all");
    set(conf, "partitioner", "murmur2_random");
    set(conf, "linger.ms", is_single ? "0" : "5");
    set(conf, "message.max.bytes", "67108864");
    rd_kafka_conf_set_opaque(conf, &feed);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    feed.handle = open_handle(RD_KAFKA_PRODUCER, conf);
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(feed.handle, topic, NULL);
    if (rd_kafka_metadata(feed.handle, 0, handle, &metadata, TIMEOUT_MS) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_metadata_destroy(metadata);
    }
    char *value = make_value(value_size);
    int64_t begun_us = bench_monotonic_us();
    if (is_single) {
        produce_singly(&feed, count, value, value_size);
    } else {
        produce_all(&feed, count, value, value_size);
    }
    bench_print(count, (double)(bench_monotonic_us() - begun_us) / 1e6, &feed.samples, feed.failure_count);
    rd_kafka_topic_destroy(handle);
    rd_kafka_destroy(feed.handle);
    bench_samples_done(&feed.samples);
    free(value);
    return feed.failure_count == 0 ? 0 : 1;
}

/* ---- Watching ---- */

/* All partitions, from their ends on. */
static int assign_all(rd_kafka_t *handle, const char *topic)
{
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_topic_t *asked = rd_kafka_topic_new(handle, topic, NULL);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    int count = 0;
    if (rd_kafka_metadata(handle, 0, asked, &metadata, TIMEOUT_MS) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        count = metadata->topics[0].partition_cnt;
        for (int i = 0; i < count; i++) {
            int64_t low;
            int64_t high;
            rd_kafka_query_watermark_offsets(handle, topic, i, &low, &high, TIMEOUT_MS);
            rd_kafka_topic_partition_list_add(list, topic, i)->offset = high;
        }
        rd_kafka_metadata_destroy(metadata);
    }
    rd_kafka_assign(handle, list);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_topic_destroy(asked);
    return count > 0;
}

static void write_record(FILE *out, const rd_kafka_message_t *message, int64_t seen_us)
{
    rd_kafka_headers_t *headers = NULL;
    const void *id = NULL;
    size_t size = 0;
    if (rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR &&
        rd_kafka_header_get_last(headers, "ce_id", &id, &size) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        fprintf(out, "%.*s %" PRId64 "\n", (int)size, (const char *)id, seen_us);
    }
}

static int watch(rd_kafka_conf_t *conf, const char *topic, const char *path)
{
    FILE *out = fopen(path, "we");
    assert(out != NULL);
    setvbuf(out, NULL, _IOLBF, 0); /* Whoever waits for the last one counts the lines. */
    set(conf, "group.id", "bench_watch");
    set(conf, "enable.auto.commit", "false");
    set(conf, "fetch.wait.max.ms", "100");
    rd_kafka_t *handle = open_handle(RD_KAFKA_CONSUMER, conf);
    rd_kafka_poll_set_consumer(handle);
    if (!assign_all(handle, topic)) {
        return 1;
    }
    printf("watching\n");
    fflush(stdout);
    while (!is_stopping) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(handle, POLL_MS);
        if (message != NULL && message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            write_record(out, message, bench_wall_us());
        }
        if (message != NULL) {
            rd_kafka_message_destroy(message);
        }
    }
    rd_kafka_consumer_close(handle);
    rd_kafka_destroy(handle);
    return fclose(out) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 3 ? argv[2] : "";
    signal(SIGTERM, on_signal);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", argc > 3 ? argv[1] : "");
    if (strcmp(verb, "make") == 0 && argc == 5) {
        return change_topic(conf, argv[3], (int)strtol(argv[4], NULL, 10));
    }
    if (strcmp(verb, "drop") == 0 && argc == 4) {
        return change_topic(conf, argv[3], 0);
    }
    if ((strcmp(verb, "produce") == 0 || strcmp(verb, "ack") == 0) && argc == 6) {
        return produce(conf, argv[3], strtoul(argv[4], NULL, 10), strtoul(argv[5], NULL, 10), verb[0] == 'a');
    }
    if (strcmp(verb, "watch") == 0 && argc == 5) {
        return watch(conf, argv[3], argv[4]);
    }
    fprintf(stderr, "usage: bench_kafka BROKERS make TOPIC PARTITIONS | drop TOPIC | produce TOPIC COUNT BYTES | "
                    "ack TOPIC COUNT BYTES | watch TOPIC FILE\n");
    return 2;
}
