/* SPDX-License-Identifier: Apache-2.0
 *
 * A consumer without a group that stops at the ends of all partitions.
 */
#include "topic_reader.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <librdkafka/rdkafka.h>

#define POLL_MS 10000

static rd_kafka_t *open_reader(const char *brokers)
{
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", brokers, why, sizeof why);
    rd_kafka_conf_set(conf, "group.id", "topic_reader", why, sizeof why);
    rd_kafka_conf_set(conf, "enable.partition.eof", "true", why, sizeof why);
    rd_kafka_conf_set(conf, "enable.auto.commit", "false", why, sizeof why);
    rd_kafka_t *reader = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    assert(reader != NULL);
    return reader;
}

static void copy(char *text, size_t size, const void *data, size_t data_size)
{
    size_t copied = data_size < size ? data_size : size - 1;
    memcpy(text, data, copied);
    text[copied] = '\0';
}

static struct topic_record record_of(const rd_kafka_message_t *message)
{
    struct topic_record record = {.partition = message->partition, .offset = message->offset};
    copy(record.key, sizeof record.key, message->key, message->key_len);
    copy(record.value, sizeof record.value, message->payload, message->len);
    rd_kafka_headers_t *headers;
    const void *sequence;
    size_t size;
    if (rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR &&
        rd_kafka_header_get_last(headers, "ce_sequence", &sequence, &size) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        copy(record.sequence, sizeof record.sequence, sequence, size);
    }
    return record;
}

size_t topic_reader_read(const char *brokers, const char *topic, int partition_count, struct topic_record **ret_records)
{
    rd_kafka_t *reader = open_reader(brokers);
    rd_kafka_topic_partition_list_t *places = rd_kafka_topic_partition_list_new(partition_count);
    for (int i = 0; i < partition_count; i++) {
        rd_kafka_topic_partition_list_add(places, topic, i)->offset = 0;
    }
    rd_kafka_resp_err_t code = rd_kafka_assign(reader, places);
    assert(code == RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(places);
    size_t count = 0;
    size_t capacity = 0;
    struct topic_record *records = NULL;
    for (int ended = 0; ended < partition_count;) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(reader, POLL_MS);
        assert(message != NULL);
        ended += message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
        if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            if (count == capacity) {
                capacity = capacity == 0 ? 1024 : 2 * capacity;
                records = realloc(records, capacity * sizeof *records);
                assert(records != NULL);
            }
            records[count++] = record_of(message);
        }
        rd_kafka_message_destroy(message);
    }
    rd_kafka_consumer_close(reader);
    rd_kafka_destroy(reader);
    *ret_records = records;
    return count;
}
