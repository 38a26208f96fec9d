/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules that hold for every event, whoever made it.
 */
#include "domain/event.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Greatest framing of a record batch v2 record and of one header in it (Kafka protocol, "Record"). */
#define RECORD_FRAMING_MAX 128
#define HEADER_FRAMING_MAX 10

static size_t text_size(const char *text)
{
    return text == NULL ? 0 : strlen(text);
}

bool event_check(const struct event *event, struct err *err)
{
    assert(event != NULL && err != NULL);
    size_t key_size = text_size(event->key);
    if (key_size == 0 || key_size > EVENT_KEY_SIZE_MAX) {
        return err_set(err, ERR_PERMANENT, "event_key_invalid", "key of %zu bytes, allowed are 1 to %d", key_size,
                       EVENT_KEY_SIZE_MAX);
    }
    if (text_size(event->topic) == 0 || text_size(event->type) == 0 || text_size(event->source) == 0) {
        return err_set(err, ERR_PERMANENT, "event_attribute_missing", "topic, type and source must not be empty");
    }
    if (event->header_count > EVENT_HEADER_COUNT_MAX) {
        return err_set(err, ERR_PERMANENT, "event_headers_too_many", "%zu headers, allowed are %d", event->header_count,
                       EVENT_HEADER_COUNT_MAX);
    }
    if (event->value.data == NULL) {
        return err_set(err, ERR_PERMANENT, "event_value_missing", "an event's value is never null");
    }
    return true;
}

/* ---- Copies ---- */

#define TEXT_COUNT 11

/* The members that are texts, in one table, so that none is forgotten. */
static void list_texts(struct event *event, const char **ret_texts[TEXT_COUNT])
{
    const char **const texts[TEXT_COUNT] = {
        &event->event_id, &event->tenant,       &event->topic,      &event->key,         &event->type, &event->source,
        &event->subject,  &event->content_type, &event->dataschema, &event->traceparent, &event->time,
    };
    memcpy(ret_texts, texts, sizeof texts);
}

static size_t copy_size(struct event *event)
{
    const char **texts[TEXT_COUNT];
    size_t size = sizeof *event + event->header_count * sizeof *event->headers + event->value.size;
    list_texts(event, texts);
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        size += *texts[i] == NULL ? 0 : strlen(*texts[i]) + 1;
    }
    for (size_t i = 0; i < event->header_count; i++) {
        size += strlen(event->headers[i].name) + 1 + event->headers[i].value.size;
    }
    return size;
}

/* Puts it at *placep, which moves on. */
static const void *put(char **placep, const void *data, size_t size)
{
    char *place = *placep;
    memcpy(place, data, size);
    *placep += size;
    return place;
}

struct event *event_copy(const struct event *event)
{
    struct event shallow = *event;
    const char **texts[TEXT_COUNT];
    struct event *copy = malloc(copy_size(&shallow));
    if (copy == NULL) {
        return NULL;
    }
    *copy = shallow;
    struct event_header *headers = (struct event_header *)(copy + 1);
    char *place = (char *)(headers + event->header_count);
    list_texts(copy, texts);
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        *texts[i] = *texts[i] == NULL ? NULL : put(&place, *texts[i], strlen(*texts[i]) + 1);
    }
    for (size_t i = 0; i < event->header_count; i++) {
        const struct event_header *header = &event->headers[i];
        headers[i].name = put(&place, header->name, strlen(header->name) + 1);
        headers[i].value = header->value;
        if (header->value.data != NULL) {
            headers[i].value.data = put(&place, header->value.data, header->value.size);
        }
    }
    copy->headers = headers;
    if (event->value.data != NULL) {
        copy->value.data = put(&place, event->value.data, event->value.size);
    }
    return copy;
}

/* ---- Sizes ---- */

size_t event_wire_size(const struct event *event)
{
    assert(event != NULL);
    static const size_t fixed_names_size = sizeof "ce_specversionce_idce_sourcece_typece_subjectce_timece_sequence"
                                                  "ce_dataschemacontent-typece_tenantidce_traceparenttraceparent1.0";
    size_t size = RECORD_FRAMING_MAX + fixed_names_size + 12 * HEADER_FRAMING_MAX + EVENT_SEQUENCE_DIGITS;
    size += text_size(event->event_id) + text_size(event->source) + text_size(event->type) + text_size(event->subject);
    size += text_size(event->time) + text_size(event->dataschema) + text_size(event->content_type);
    size += text_size(event->tenant) + 2 * text_size(event->traceparent) + text_size(event->key) + event->value.size;
    for (size_t i = 0; i < event->header_count; i++) {
        size += text_size(event->headers[i].name) + event->headers[i].value.size + HEADER_FRAMING_MAX;
    }
    return size;
}
