/* SPDX-License-Identifier: Apache-2.0
 *
 * Records to events: a table of what lies on a topic and what it decodes to.
 */
#include "cmocka_all.h"

#include <stdlib.h>

#include "kafka/kafka_record.h"

#define TEXT(literal)                                                                                                  \
    {                                                                                                                  \
        .data = (literal), .size = sizeof(literal) - 1                                                                 \
    }
#define NOTHING                                                                                                        \
    {                                                                                                                  \
        .data = NULL, .size = 0                                                                                        \
    }
#define ID "019ad3a0-0000-7000-8000-000000000001"

#define GOOD_START                                                                                                     \
    {"ce_specversion", TEXT("1.0")},                                                                                   \
    {                                                                                                                  \
        "ce_id", TEXT(ID)                                                                                              \
    }
#define GOOD                                                                                                           \
    GOOD_START, {"ce_source", TEXT("/onceward")},                                                                      \
    {                                                                                                                  \
        "ce_type", TEXT("example.submitted")                                                                           \
    }

struct decode_case {
    const char *name;
    const char *code; /* NULL: decodes. */
    struct event_header headers[10];
    struct bytes key;
    struct bytes value;
    int64_t outbox_id;
    size_t further_count;
    const char *traceparent;
};

static const struct decode_case cases[] = {
    {"the required attributes alone", NULL, {GOOD}, TEXT("k"), TEXT("{}"), 0, 0, NULL},
    {"a null key", NULL, {GOOD}, NOTHING, TEXT("{}"), 0, 0, NULL},
    {"an empty value", NULL, {GOOD}, TEXT("k"), TEXT(""), 0, 0, NULL},
    {"a sequence", NULL, {GOOD, {"ce_sequence", TEXT("00000000000000000042")}}, TEXT("k"), TEXT("{}"), 42, 0, NULL},
    {"a sequence of others", NULL, {GOOD, {"ce_sequence", TEXT("a42")}}, TEXT("k"), TEXT("{}"), 0, 0, NULL},
    {"a sequence beyond int64",
     NULL,
     {GOOD, {"ce_sequence", TEXT("99999999999999999999")}},
     TEXT("k"),
     TEXT("{}"),
     0,
     0,
     NULL},
    {"further headers, a null and a repeated one",
     NULL,
     {GOOD, {"x", NOTHING}, {"x", TEXT("1")}, {"Ce_Id", TEXT("y")}},
     TEXT("k"),
     TEXT("{}"),
     0,
     3,
     NULL},
    {"a traceparent",
     NULL,
     {GOOD, {"traceparent", TEXT("00-a")}, {"traceparent", TEXT("00-b")}},
     TEXT("k"),
     TEXT("{}"),
     0,
     0,
     "00-a"},
    {"a traceparent of the event when the transport's is garbage",
     NULL,
     {GOOD, {"traceparent", TEXT("\xff")}, {"ce_traceparent", TEXT("00-c")}},
     TEXT("k"),
     TEXT("{}"),
     0,
     0,
     "00-c"},
    {"a time with an offset",
     NULL,
     {GOOD, {"ce_time", TEXT("2026-11-30T06:00:00.5+01:00")}},
     TEXT("k"),
     TEXT("{}"),
     0,
     0,
     NULL},
    {"no headers", "ce_specversion_missing", {{NULL, NOTHING}}, TEXT("k"), TEXT("{}"), 0, 0, NULL},
    {"another specversion",
     "ce_specversion_unsupported",
     {{"ce_specversion", TEXT("0.3")}, {"ce_id", TEXT(ID)}, {"ce_source", TEXT("/s")}, {"ce_type", TEXT("t")}},
     TEXT("k"),
     TEXT("{}"),
     0,
     0,
     NULL},
    {"no id",
     "ce_id_missing",
     {{"ce_specversion", TEXT("1.0")}, {"ce_source", TEXT("/s")}},
     TEXT("k"),
     TEXT("{}"),
     0,
     0,
     NULL},
    {"two ids", "ce_id_duplicate", {GOOD, {"ce_id", TEXT(ID)}}, TEXT("k"), TEXT("{}"), 0, 0, NULL},
    {"a null id",
     "ce_id_null",
     {{"ce_specversion", TEXT("1.0")}, {"ce_id", NOTHING}},
     TEXT("k"),
     TEXT("{}"),
     0,
     0,
     NULL},
    {"an empty id",
     "ce_id_invalid",
     {{"ce_specversion", TEXT("1.0")}, {"ce_id", TEXT("")}},
     TEXT("k"),
     TEXT("{}"),
     0,
     0,
     NULL},
    {"an id with a NUL",
     "ce_id_invalid",
     {{"ce_specversion", TEXT("1.0")}, {"ce_id", TEXT("a\0b")}},
     TEXT("k"),
     TEXT("{}"),
     0,
     0,
     NULL},
    {"no source", "ce_source_missing", {GOOD_START}, TEXT("k"), TEXT("{}"), 0, 0, NULL},
    {"no type", "ce_type_missing", {GOOD_START, {"ce_source", TEXT("/s")}}, TEXT("k"), TEXT("{}"), 0, 0, NULL},
    {"a subject that is no UTF-8",
     "ce_subject_invalid",
     {GOOD, {"ce_subject", TEXT("\xc3")}},
     TEXT("k"),
     TEXT("{}"),
     0,
     0,
     NULL},
    {"a time that is none",
     "ce_time_invalid",
     {GOOD, {"ce_time", TEXT("yesterday")}},
     TEXT("k"),
     TEXT("{}"),
     0,
     0,
     NULL},
    {"the structured mode",
     "structured_mode",
     {{"content-type", TEXT("application/cloudevents+json")}},
     TEXT("k"),
     TEXT("{}"),
     0,
     0,
     NULL},
    {"a null value", "value_null", {GOOD}, TEXT("k"), NOTHING, 0, 0, NULL},
    {"a key of bytes", "key_invalid", {GOOD}, TEXT("\x01\x02"), TEXT("{}"), 0, 0, NULL},
};

static void test_kafka_record_decodes(void **state)
{
    const struct decode_case *row = *state;
    size_t header_count = 0;
    while (header_count < COUNT_OF(row->headers) && row->headers[header_count].name != NULL) {
        header_count++;
    }
    struct kafka_record record = {
        .topic = "t", .key = row->key, .value = row->value, .headers = row->headers, .header_count = header_count};
    char *text = malloc(kafka_record_text_size(&record));
    struct event_header *further = calloc(header_count + 1, sizeof *further);
    assert_non_null(text);
    assert_non_null(further);
    struct event event;
    struct err err = ERR_INIT;
    bool is_event = kafka_record_decode(&record, text, further, &event, &err);
    if (row->code != NULL) {
        assert_false(is_event);
        assert_int_equal(err.kind, ERR_PERMANENT);
        assert_string_equal(err.code, row->code);
    } else {
        assert_true(is_event);
        assert_string_equal(event.event_id, ID);
        assert_string_equal(event.type, "example.submitted");
        assert_string_equal(event.source, "/onceward");
        assert_int_equal(event.outbox_id, row->outbox_id);
        assert_int_equal(event.header_count, row->further_count);
        assert_int_equal(event.value.size, row->value.size);
        assert_true((event.key == NULL) == (row->key.data == NULL));
        if (row->traceparent != NULL) {
            assert_string_equal(event.traceparent, row->traceparent);
        }
    }
    free(further);
    free(text);
}

static void test_kafka_record_refuses_a_key_that_is_too_large(void **state)
{
    (void)state;
    static const struct event_header headers[] = {GOOD};
    static char key[EVENT_KEY_SIZE_MAX + 1];
    memset(key, 'k', sizeof key);
    struct kafka_record record = {.topic = "t",
                                  .key = {.data = key, .size = sizeof key},
                                  .value = TEXT("{}"),
                                  .headers = headers,
                                  .header_count = COUNT_OF(headers)};
    char text[2048];
    struct event_header further[COUNT_OF(headers)];
    struct event event;
    struct err err = ERR_INIT;
    assert_true(kafka_record_text_size(&record) <= sizeof text);
    assert_false(kafka_record_decode(&record, text, further, &event, &err));
    assert_string_equal(err.code, "key_too_large");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kafka_record_refuses_a_key_that_is_too_large),
    };
    int failed = RUN_CASES("kafka_record_decode", test_kafka_record_decodes, cases);
    return failed + cmocka_run_group_tests_name("kafka_record", tests, NULL, NULL);
}
