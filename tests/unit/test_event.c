/* SPDX-License-Identifier: Apache-2.0 */
#include "domain/event.h"

#include <stdlib.h>

#include "cmocka_all.h"

static struct event good_event(void)
{
    return (struct event){.outbox_id = 1,
                          .event_id = "01890a5d-ac96-774b-bcce-b302099a8057",
                          .tenant = "default",
                          .topic = "orders",
                          .key = "k",
                          .type = "t",
                          .source = "/onceward",
                          .time = "2026-11-30T06:13:13.123456Z",
                          .value = {"{}", 2}};
}

static void spoil_key(struct event *event)
{
    static char key[EVENT_KEY_SIZE_MAX + 2];
    memset(key, 'k', EVENT_KEY_SIZE_MAX + 1);
    event->key = key;
}

static void empty_key(struct event *event)
{
    event->key = "";
}

static void drop_topic(struct event *event)
{
    event->topic = NULL;
}

static void drop_value(struct event *event)
{
    event->value = (struct bytes){0};
}

static void add_headers(struct event *event)
{
    event->header_count = EVENT_HEADER_COUNT_MAX + 1;
}

static void empty_value(struct event *event)
{
    event->value.size = 0;
}

struct event_case {
    const char *name;
    void (*spoil)(struct event *event);
    const char *code; /* "": accepted. */
};

static const struct event_case cases[] = {
    {"an empty value", empty_value, ""},
    {"a key too long", spoil_key, "event_key_invalid"},
    {"an empty key", empty_key, "event_key_invalid"},
    {"no topic", drop_topic, "event_attribute_missing"},
    {"no value", drop_value, "event_value_missing"},
    {"too many headers", add_headers, "event_headers_too_many"},
};

static void test_check(void **state)
{
    const struct event_case *mine = *state;
    struct event event = good_event();
    struct err err = ERR_INIT;
    assert_true(event_check(&event, &err));
    mine->spoil(&event);
    assert_int_equal(event_check(&event, &err), mine->code[0] == '\0');
    assert_string_equal(err.code, mine->code);
}

static void test_event_wire_size_counts_every_part(void **state)
{
    (void)state;
    struct event event = good_event();
    size_t before = event_wire_size(&event);
    assert_in_range(before, 200, 600);
    event.value.size += 1000;
    assert_int_equal(event_wire_size(&event), before + 1000);
    const struct event_header headers[] = {{"name", {"value", 5}}};
    event.headers = headers;
    event.header_count = 1;
    assert_true(event_wire_size(&event) >= before + 1000 + 9);
}

/* The original's memory is spoiled, so that whatever the copy still borrowed would show. */
static void test_event_copy_borrows_nothing(void **state)
{
    (void)state;
    char key[] = "key";
    char name[] = "name";
    char bytes[] = {'a', '\0', 'b'};
    char value[] = "value";
    struct event_header headers[] = {{name, {bytes, sizeof bytes}}, {name, {NULL, 0}}};
    struct event event = good_event();
    event.key = key;
    event.subject = NULL;
    event.headers = headers;
    event.header_count = 2;
    event.value = (struct bytes){value, 5};
    struct event *copy = event_copy(&event);
    assert_non_null(copy);
    size_t size = event_wire_size(&event);
    key[0] = name[0] = bytes[0] = value[0] = '?';
    headers[0] = (struct event_header){NULL, {NULL, 0}};
    assert_int_equal(event_wire_size(copy), size);
    assert_string_equal(copy->key, "key");
    assert_null(copy->subject);
    assert_string_equal(copy->event_id, event.event_id);
    assert_string_equal(copy->headers[0].name, "name");
    assert_int_equal(copy->headers[0].value.size, 3);
    assert_memory_equal(copy->headers[0].value.data, "a\0b", 3);
    assert_null(copy->headers[1].value.data);
    assert_memory_equal(copy->value.data, "value", 5);
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_event_wire_size_counts_every_part),
                                       cmocka_unit_test(test_event_copy_borrows_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_CASES("event_check", test_check, cases);
}
