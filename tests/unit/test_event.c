/* SPDX-License-Identifier: Apache-2.0 */
#include "domain/event.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_event_wire_size_counts_every_part)};
    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_CASES("event_check", test_check, cases);
}
