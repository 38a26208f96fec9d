/* SPDX-License-Identifier: Apache-2.0
 *
 * Headers and bytes to an event. Not responsible for whose id it is and
 * whether it was seen before. The invariant: whatever the bytes, the answer is
 * an event whose texts are terminated, valid UTF-8 without control characters,
 * or the name of the rule that the record breaks.
 */
#include "kafka/kafka_record.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

#define STRUCTURED_MODE "application/cloudevents"

/* How an attribute that is there but not as it should be is treated. */
enum attribute_need {
    NEED_REQUIRED, /* Must be there, once, and be text. */
    NEED_OPTIONAL, /* May be absent; if it is there, once and text. */
    NEED_LENIENT,  /* The first one that is text; anything else counts as absent. */
};

/* The fixed headers, in the order of the enum. */
enum attribute {
    ATTRIBUTE_SPECVERSION,
    ATTRIBUTE_ID,
    ATTRIBUTE_SOURCE,
    ATTRIBUTE_TYPE,
    ATTRIBUTE_SUBJECT,
    ATTRIBUTE_TIME,
    ATTRIBUTE_SEQUENCE,
    ATTRIBUTE_DATASCHEMA,
    ATTRIBUTE_CONTENT_TYPE,
    ATTRIBUTE_TENANT,
    ATTRIBUTE_TRACEPARENT,
    ATTRIBUTE_CE_TRACEPARENT,
    ATTRIBUTE_COUNT,
};

struct attribute_rule {
    const char *header;
    const char *name; /* In the codes of errors. */
    enum attribute_need need;
};

static const struct attribute_rule rules[ATTRIBUTE_COUNT] = {
    [ATTRIBUTE_SPECVERSION] = {"ce_specversion", "ce_specversion", NEED_REQUIRED},
    [ATTRIBUTE_ID] = {"ce_id", "ce_id", NEED_REQUIRED},
    [ATTRIBUTE_SOURCE] = {"ce_source", "ce_source", NEED_REQUIRED},
    [ATTRIBUTE_TYPE] = {"ce_type", "ce_type", NEED_REQUIRED},
    [ATTRIBUTE_SUBJECT] = {"ce_subject", "ce_subject", NEED_OPTIONAL},
    [ATTRIBUTE_TIME] = {"ce_time", "ce_time", NEED_OPTIONAL},
    [ATTRIBUTE_SEQUENCE] = {"ce_sequence", "ce_sequence", NEED_OPTIONAL},
    [ATTRIBUTE_DATASCHEMA] = {"ce_dataschema", "ce_dataschema", NEED_OPTIONAL},
    [ATTRIBUTE_CONTENT_TYPE] = {"content-type", "content_type", NEED_OPTIONAL},
    [ATTRIBUTE_TENANT] = {"ce_tenantid", "ce_tenantid", NEED_OPTIONAL},
    [ATTRIBUTE_TRACEPARENT] = {"traceparent", "traceparent", NEED_LENIENT},
    [ATTRIBUTE_CE_TRACEPARENT] = {"ce_traceparent", "ce_traceparent", NEED_LENIENT},
};

static bool is_plain_text(struct bytes bytes)
{
    const unsigned char *at = bytes.data;
    for (size_t i = 0; i < bytes.size; i++) {
        if (at[i] < 0x20 || at[i] == 0x7F) {
            return false;
        }
    }
    return text_is_utf8(bytes.data, bytes.size, NULL);
}

static bool is_attribute_text(struct bytes bytes)
{
    return bytes.data != NULL && bytes.size > 0 && bytes.size <= KAFKA_RECORD_ATTRIBUTE_SIZE_MAX &&
           is_plain_text(bytes);
}

/* Which fixed attribute a header is; ATTRIBUTE_COUNT for none. */
static enum attribute attribute_of(const char *header)
{
    for (enum attribute i = 0; i < ATTRIBUTE_COUNT; i++) {
        if (strcmp(rules[i].header, header) == 0) {
            return i;
        }
    }
    return ATTRIBUTE_COUNT;
}

static bool refuse(struct err *err, enum attribute attribute, const char *how, const char *text)
{
    char code[ERR_CODE_SIZE];
    bool fits = text_format(code, sizeof code, "%s%s", rules[attribute].name, how);
    assert(fits);
    return err_set(err, ERR_PERMANENT, code, "the header %s %s", rules[attribute].header, text);
}

/* Sorts the headers into the fixed ones and the rest. */
static bool collect(const struct kafka_record *record, struct bytes *ret_values, bool *ret_present,
                    struct event_header *ret_headers, size_t *ret_header_count, struct err *err)
{
    size_t further_count = 0;
    for (size_t i = 0; i < record->header_count; i++) {
        const struct event_header *header = &record->headers[i];
        enum attribute attribute = attribute_of(header->name);
        if (attribute == ATTRIBUTE_COUNT) {
            ret_headers[further_count++] = *header;
            continue;
        }
        bool is_lenient = rules[attribute].need == NEED_LENIENT;
        if (is_lenient && (ret_present[attribute] || !is_attribute_text(header->value))) {
            continue;
        }
        if (ret_present[attribute]) {
            return refuse(err, attribute, "_duplicate", "is there more than once");
        }
        ret_present[attribute] = true;
        ret_values[attribute] = header->value;
    }
    *ret_header_count = further_count;
    return true;
}

static bool bytes_start_with(struct bytes bytes, const char *text)
{
    size_t size = strlen(text);
    return bytes.size >= size && memcmp(bytes.data, text, size) == 0;
}

static bool check_attributes(const struct bytes *values, const bool *present, struct err *err)
{
    struct bytes content_type = values[ATTRIBUTE_CONTENT_TYPE];
    if (content_type.data != NULL && bytes_start_with(content_type, STRUCTURED_MODE)) {
        return err_set(err, ERR_PERMANENT, "structured_mode",
                       "an event in structured or batch mode; only binary mode is read");
    }
    for (enum attribute i = 0; i < ATTRIBUTE_COUNT; i++) {
        if (!present[i] && rules[i].need == NEED_REQUIRED) {
            return refuse(err, i, "_missing", "is missing");
        }
        if (present[i] && values[i].data == NULL) {
            return refuse(err, i, "_null", "is null");
        }
        if (present[i] && !is_attribute_text(values[i])) {
            return refuse(err, i, "_invalid", "is empty, too long, or not plain UTF-8 text");
        }
        if (i == ATTRIBUTE_SPECVERSION && (values[i].size != 3 || memcmp(values[i].data, "1.0", 3) != 0)) {
            return err_set(err, ERR_PERMANENT, "ce_specversion_unsupported", "the specversion is not 1.0");
        }
    }
    return true;
}

/* A positive number of at most EVENT_SEQUENCE_DIGITS digits that an int64 holds; 0 for anything else. */
static int64_t sequence_number(const char *text)
{
    if (text == NULL || strlen(text) > EVENT_SEQUENCE_DIGITS || strspn(text, "0123456789") != strlen(text)) {
        return 0;
    }
    int64_t number = 0;
    for (const char *at = text; *at != '\0'; at++) {
        if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, *at - '0', &number)) {
            return 0;
        }
    }
    return number;
}

static const char *copy_text(struct bytes bytes, char **cursor)
{
    if (bytes.data == NULL) {
        return NULL;
    }
    char *text = *cursor;
    memcpy(text, bytes.data, bytes.size);
    text[bytes.size] = '\0';
    *cursor += bytes.size + 1;
    return text;
}

static bool check_key_and_value(const struct kafka_record *record, struct err *err)
{
    if (record->value.data == NULL) {
        return err_set(err, ERR_PERMANENT, "value_null", "the record's value is null: a tombstone is no event");
    }
    if (record->key.data != NULL && record->key.size > EVENT_KEY_SIZE_MAX) {
        return err_set(err, ERR_PERMANENT, "key_too_large", "a key of %zu bytes, allowed are %d", record->key.size,
                       EVENT_KEY_SIZE_MAX);
    }
    if (record->key.data != NULL && !is_plain_text(record->key)) {
        return err_set(err, ERR_PERMANENT, "key_invalid", "the key is not plain UTF-8 text");
    }
    return true;
}

size_t kafka_record_text_size(const struct kafka_record *record)
{
    assert(record != NULL);
    size_t size = record->key.size + 1;
    for (size_t i = 0; i < record->header_count; i++) {
        if (attribute_of(record->headers[i].name) != ATTRIBUTE_COUNT) {
            size += record->headers[i].value.size + 1;
        }
    }
    return size;
}

bool kafka_record_decode(const struct kafka_record *record, char *ret_text, struct event_header *ret_headers,
                         struct event *ret_event, struct err *err)
{
    assert(record != NULL && record->topic != NULL && ret_text != NULL && ret_event != NULL);
    assert(ret_headers != NULL || record->header_count == 0);
    struct bytes values[ATTRIBUTE_COUNT] = {0};
    bool present[ATTRIBUTE_COUNT] = {false};
    size_t further_count = 0;
    if (!collect(record, values, present, ret_headers, &further_count, err) ||
        !check_attributes(values, present, err) || !check_key_and_value(record, err)) {
        return false;
    }
    char *cursor = ret_text;
    const char *texts[ATTRIBUTE_COUNT];
    for (enum attribute i = 0; i < ATTRIBUTE_COUNT; i++) {
        texts[i] = copy_text(values[i], &cursor);
    }
    int64_t unix_us = 0;
    if (texts[ATTRIBUTE_TIME] != NULL && !clock_from_text(texts[ATTRIBUTE_TIME], &unix_us)) {
        return refuse(err, ATTRIBUTE_TIME, "_invalid", "is no RFC 3339 time");
    }
    const char *traceparent = texts[ATTRIBUTE_TRACEPARENT];
    *ret_event = (struct event){
        .outbox_id = sequence_number(texts[ATTRIBUTE_SEQUENCE]),
        .lane = -1,
        .event_id = texts[ATTRIBUTE_ID],
        .tenant = texts[ATTRIBUTE_TENANT],
        .topic = record->topic,
        .key = copy_text(record->key, &cursor),
        .type = texts[ATTRIBUTE_TYPE],
        .source = texts[ATTRIBUTE_SOURCE],
        .subject = texts[ATTRIBUTE_SUBJECT],
        .content_type = texts[ATTRIBUTE_CONTENT_TYPE],
        .dataschema = texts[ATTRIBUTE_DATASCHEMA],
        .traceparent = traceparent != NULL ? traceparent : texts[ATTRIBUTE_CE_TRACEPARENT],
        .time = texts[ATTRIBUTE_TIME],
        .headers = ret_headers,
        .header_count = further_count,
        .value = record->value,
    };
    return true;
}
