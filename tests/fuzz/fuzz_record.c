/* SPDX-License-Identifier: Apache-2.0
 *
 * A record's key, value and headers to an event. What was accepted is plain
 * text, and the publisher's headers of it are the same event again.
 *
 * Input: a line with the key, one with the value, then one "name: value" for each header. "-" is null, and so is a
 * header without a colon.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "fuzz_kit.h"
#include "kafka/kafka_record.h"
#include "kafka_private.h"

#define HEADER_COUNT_MAX 64
#define LINE_SIZE_MAX 8192

struct parts {
    struct buf bytes[HEADER_COUNT_MAX + 2]; /* Key, value, headers as name NUL value. */
    struct event_header headers[HEADER_COUNT_MAX];
    struct kafka_record record;
};

static struct bytes bytes_of(const struct buf *buf)
{
    bool is_null = buf->size == 1 && buf->data[0] == '-';
    return is_null ? (struct bytes){NULL, 0} : (struct bytes){buf->data, buf->size};
}

static void add_header(struct parts *parts, struct buf *line)
{
    struct event_header *header = &parts->headers[parts->record.header_count++];
    char *separator = memmem(line->data, line->size, ": ", 2);
    header->name = line->data;
    header->value = (struct bytes){NULL, 0};
    if (separator != NULL) {
        *separator = '\0';
        header->value = (struct bytes){separator + 2, line->size - (size_t)(separator + 2 - line->data)};
    }
}

static void read_parts(struct fuzz_input input, struct parts *parts)
{
    parts->record = (struct kafka_record){.topic = "topic", .offset = 7, .timestamp_ms = -1, .headers = parts->headers};
    for (size_t i = 0; i < HEADER_COUNT_MAX + 2; i++) {
        buf_init(&parts->bytes[i], LINE_SIZE_MAX);
        if (fuzz_line(&input, &parts->bytes[i]) && i > 1) {
            add_header(parts, &parts->bytes[i]);
        }
    }
    parts->record.key = bytes_of(&parts->bytes[0]);
    parts->record.value = bytes_of(&parts->bytes[1]);
}

static void parts_done(struct parts *parts)
{
    for (size_t i = 0; i < HEADER_COUNT_MAX + 2; i++) {
        buf_done(&parts->bytes[i]);
    }
}

static void check_plain(const struct event *event)
{
    const char *const required[] = {event->event_id, event->topic, event->type, event->source};
    const char *const optional[] = {event->tenant,     event->key,         event->subject, event->content_type,
                                    event->dataschema, event->traceparent, event->time};
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        assert(required[i] != NULL && required[i][0] != '\0' && fuzz_is_plain(required[i]));
    }
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++) {
        assert(optional[i] == NULL || fuzz_is_plain(optional[i]));
    }
    assert(event->outbox_id >= 0 && event->lane == -1 && event->value.data != NULL);
}

static void check_bytes(struct bytes left, struct bytes right)
{
    assert((left.data == NULL) == (right.data == NULL) && left.size == right.size);
    assert(left.size == 0 || memcmp(left.data, right.data, left.size) == 0);
}

static void check_same(const struct event *a, const struct event *b)
{
    assert(a->outbox_id == b->outbox_id && text_is_equal(a->event_id, b->event_id));
    assert(text_is_equal(a->tenant, b->tenant) && text_is_equal(a->key, b->key) && text_is_equal(a->type, b->type));
    assert(text_is_equal(a->source, b->source) && text_is_equal(a->subject, b->subject));
    assert(text_is_equal(a->content_type, b->content_type) && text_is_equal(a->dataschema, b->dataschema));
    assert(text_is_equal(a->traceparent, b->traceparent) && text_is_equal(a->time, b->time));
    check_bytes(a->value, b->value);
    assert(a->header_count == b->header_count);
    for (size_t i = 0; i < a->header_count; i++) {
        assert(strcmp(a->headers[i].name, b->headers[i].name) == 0);
        check_bytes(a->headers[i].value, b->headers[i].value);
    }
}

static bool decode(const struct kafka_record *record, char **ret_text, struct event_header *ret_headers,
                   struct event *ret_event)
{
    struct err err = ERR_INIT;
    *ret_text = malloc(kafka_record_text_size(record));
    assert(*ret_text != NULL);
    bool is_event = kafka_record_decode(record, *ret_text, ret_headers, ret_event, &err);
    if (!is_event) {
        fuzz_check_refusal(&err);
    }
    return is_event;
}

/* The record as the publisher makes it and the library hands it out. */
static void check_round_trip(const struct event *event)
{
    struct event_header headers[HEADER_COUNT_MAX + KAFKA_PUBLISHER_HEADER_COUNT];
    struct event_header further[HEADER_COUNT_MAX + KAFKA_PUBLISHER_HEADER_COUNT];
    rd_kafka_headers_t *made = kafka_publisher_headers(event);
    struct kafka_record record = {.topic = event->topic,
                                  .timestamp_ms = -1,
                                  .key = {event->key, event->key == NULL ? 0 : strlen(event->key)},
                                  .value = event->value,
                                  .headers = headers,
                                  .header_count = rd_kafka_header_cnt(made)};
    size_t size = record.key.size + record.value.size;
    for (size_t i = 0; i < record.header_count; i++) {
        rd_kafka_resp_err_t code =
            rd_kafka_header_get_all(made, i, &headers[i].name, &headers[i].value.data, &headers[i].value.size);
        assert(code == RD_KAFKA_RESP_ERR_NO_ERROR);
        size += strlen(headers[i].name) + headers[i].value.size;
    }
    assert(event_wire_size(event) >= size);
    struct event again;
    char *text;
    bool is_event = decode(&record, &text, further, &again);
    assert(is_event);
    check_same(event, &again);
    free(text);
    rd_kafka_headers_destroy(made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct parts parts;
    struct event_header further[HEADER_COUNT_MAX];
    struct event event;
    char *text;
    read_parts(fuzz_input_of(data, size), &parts);
    if (decode(&parts.record, &text, further, &event)) {
        check_plain(&event);
        check_round_trip(&event);
    }
    free(text);
    parts_done(&parts);
    return 0;
}
