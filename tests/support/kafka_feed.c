/* SPDX-License-Identifier: Apache-2.0
 *
 * A plain producer for tests.
 */
#include "kafka_feed.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>

#define FLUSH_MS 20000

struct kafka_feed {
    rd_kafka_t *handle;
    char *topic;
    bool has_failed;
};

static void on_delivery(rd_kafka_t *handle, const rd_kafka_message_t *message, void *opaque)
{
    (void)handle;
    struct kafka_feed *feed = opaque;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        fprintf(stderr, "kafka_feed: %s\n", rd_kafka_err2str(message->err));
        feed->has_failed = true;
    }
}

struct kafka_feed *kafka_feed_new(const char *brokers, const char *topic)
{
    struct kafka_feed *feed = calloc(1, sizeof *feed);
    assert(feed != NULL);
    feed->topic = strdup(topic);
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", brokers, why, sizeof why);
    rd_kafka_conf_set(conf, "enable.idempotence", "true", why, sizeof why);
    rd_kafka_conf_set(conf, "linger.ms", "2", why, sizeof why);
    rd_kafka_conf_set_opaque(conf, feed);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    feed->handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    assert(feed->handle != NULL);
    return feed;
}

void kafka_feed_free(struct kafka_feed **feedp)
{
    struct kafka_feed *feed = *feedp;
    *feedp = NULL;
    if (feed != NULL) {
        rd_kafka_destroy(feed->handle);
        free(feed->topic);
        free(feed);
    }
}

void kafka_feed_put(struct kafka_feed *feed, int partition, const char *key, const char *value,
                    const char *const *headers)
{
    size_t key_size = key == NULL ? 0 : strlen(key);
    size_t value_size = value == NULL ? 0 : strlen(value);
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__QUEUE_FULL;
    while (code == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
        rd_kafka_headers_t *list = rd_kafka_headers_new(12);
        for (size_t i = 0; headers != NULL && headers[i] != NULL; i += 2) {
            rd_kafka_header_add(list, headers[i], -1, headers[i + 1], -1);
        }
        code = rd_kafka_producev(feed->handle, RD_KAFKA_V_TOPIC(feed->topic), RD_KAFKA_V_PARTITION(partition),
                                 RD_KAFKA_V_KEY(key, key_size), RD_KAFKA_V_VALUE((void *)(uintptr_t)value, value_size),
                                 RD_KAFKA_V_HEADERS(list), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
        if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
            rd_kafka_headers_destroy(list);
            rd_kafka_poll(feed->handle, 50);
        }
    }
    assert(code == RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_poll(feed->handle, 0);
}

void kafka_feed_event(struct kafka_feed *feed, int partition, const char *event_id, int64_t sequence, const char *key,
                      const char *value)
{
    char text[24];
    snprintf(text, sizeof text, "%020" PRId64, sequence);
    const char *const headers[] = {"ce_specversion",
                                   "1.0",
                                   "ce_id",
                                   event_id,
                                   "ce_source",
                                   "/onceward",
                                   "ce_type",
                                   "test.made",
                                   "ce_subject",
                                   key,
                                   "ce_time",
                                   "2026-11-30T06:00:00.000001Z",
                                   "ce_sequence",
                                   text,
                                   "content-type",
                                   "application/json",
                                   "ce_tenantid",
                                   "default",
                                   NULL};
    kafka_feed_put(feed, partition, key, value, headers);
}

void kafka_feed_id(int n, char ret_id[37])
{
    static uint64_t base_ms;
    if (base_ms == 0) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        base_ms = (uint64_t)now.tv_sec * 1000;
    }
    uint64_t ms = base_ms + (uint64_t)n / 4096;
    snprintf(ret_id, 37, "%08x-%04x-7%03x-8%03x-%012x", (unsigned)(ms >> 16), (unsigned)(ms & 0xffff),
             (unsigned)n % 4096, (unsigned)getpid() & 0xfff, (unsigned)n);
}

void kafka_feed_flush(struct kafka_feed *feed)
{
    rd_kafka_resp_err_t code = rd_kafka_flush(feed->handle, FLUSH_MS);
    assert(code == RD_KAFKA_RESP_ERR_NO_ERROR && !feed->has_failed);
}

void kafka_feed_truncate(struct kafka_feed *feed, int partition, int64_t first_offset)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, feed->topic, partition)->offset = first_offset;
    rd_kafka_DeleteRecords_t *request = rd_kafka_DeleteRecords_new(list);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(feed->handle);
    rd_kafka_DeleteRecords(feed->handle, &request, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, FLUSH_MS);
    assert(event != NULL && rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_DeleteRecords_destroy(request);
    rd_kafka_topic_partition_list_destroy(list);
}
