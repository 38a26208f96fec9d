/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages between the library's memory and ours. The invariant: every message
 * that is taken is given back once, and its handle knows how many are out.
 */
#include "kafka/kafka_message.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "kafka/kafka_error.h"
#include "kafka_fetch_private.h"

/* What librdkafka keeps per message beside key, value and headers. */
#define MESSAGE_OVERHEAD 256

static size_t count_headers(rd_kafka_headers_t *headers)
{
    return headers == NULL ? 0 : rd_kafka_header_cnt(headers);
}

static size_t read_headers(rd_kafka_headers_t *headers, size_t count, struct event_header *ret_headers)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        struct event_header *header = &ret_headers[i];
        rd_kafka_resp_err_t code =
            rd_kafka_header_get_all(headers, i, &header->name, &header->value.data, &header->value.size);
        assert(code == RD_KAFKA_RESP_ERR_NO_ERROR);
        size += strlen(header->name) + header->value.size;
    }
    return size;
}

/* Empty and null are different on the wire, and the library tells them apart by the pointer alone. */
static struct bytes bytes_of(const void *data, size_t size)
{
    return (struct bytes){.data = data, .size = data == NULL ? 0 : size};
}

bool kafka_message_take(rd_kafka_event_t *event, const rd_kafka_message_t *raw, const char *topic,
                        struct kafka_message_counter *counter, struct kafka_message *ret_message, struct err *err)
{
    assert(raw->err == RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_headers_t *headers = NULL;
    rd_kafka_resp_err_t code = rd_kafka_message_headers(raw, &headers);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR && code != RD_KAFKA_RESP_ERR__NOENT) {
        return kafka_error_set(err, code, "headers of %s/%d@%lld", topic, raw->partition, (long long)raw->offset);
    }
    size_t count = count_headers(headers);
    struct kafka_record record = {
        .topic = topic,
        .partition = raw->partition,
        .offset = raw->offset,
        .timestamp_ms = rd_kafka_message_timestamp(raw, NULL),
        .key = bytes_of(raw->key, raw->key_len),
        .value = bytes_of(raw->payload, raw->len),
        .header_count = count,
    };
    size_t texts_size = raw->key_len + 1;
    struct event_header *block = malloc(2 * count * sizeof *block + 1);
    if (block == NULL) {
        return err_set(err, ERR_FATAL, "out_of_memory", "%zu headers", count);
    }
    size_t headers_size = read_headers(headers, count, block);
    texts_size += headers_size + count;
    struct event_header *grown = realloc(block, 2 * count * sizeof *block + texts_size);
    if (grown == NULL) {
        free(block);
        return err_set(err, ERR_FATAL, "out_of_memory", "%zu bytes of headers", texts_size);
    }
    record.headers = grown;
    *ret_message = (struct kafka_message){
        .record = record,
        .size = raw->key_len + raw->len + 2 * (headers_size + count * sizeof *block) + MESSAGE_OVERHEAD,
        .handle = event,
        .headers = grown,
        .counter = counter,
    };
    counter->count++;
    return true;
}

bool kafka_message_decode(struct kafka_message *message, struct event *ret_event, struct err *err)
{
    assert(message != NULL && message->handle != NULL);
    struct event_header *further = message->headers + message->record.header_count;
    char *text = (char *)(further + message->record.header_count);
    return kafka_record_decode(&message->record, text, further, ret_event, err);
}

void kafka_message_done(struct kafka_message *message)
{
    assert(message != NULL);
    if (message->handle == NULL) {
        return;
    }
    assert(message->counter->count > 0);
    message->counter->count--;
    free(message->headers);
    rd_kafka_event_destroy(message->handle);
    *message = (struct kafka_message){0};
}
