/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/wire_body.h"

#include "cmocka_all.h"

struct body_case {
    const char *name;
    const char *text;
    const char *expected; /* NULL: accepted. */
};

static const struct body_case cases[] = {
    {"all members", "{\"type\":\"t\",\"data\":{\"x\": 1.0 },\"count\":null}", NULL},
    {"only what is required", "{\"type\":\"t\"}", NULL},
    {"a name with escapes", "{\"t\\u0079pe\":\"t\"}", NULL},
    {"a required member missing", "{}", "/p/type: is missing"},
    {"another kind", "{\"type\":1}", "/p/type: is a number, not a string"},
    {"another kind where two are allowed", "{\"type\":\"t\",\"count\":\"1\"}",
     "/p/count: is a string, not null or a number"},
    {"an unknown member", "{\"type\":\"t\",\"a/b~c\":1}", "/p/a~1b~0c: no member of this name is known"},
    {"a text of the greatest size", "{\"type\":\"12345678\"}", NULL},
    {"a text of the greatest size with escapes", "{\"type\":\"1234567\\u0038\"}", NULL},
    {"a text too long", "{\"type\":\"123456789\"}", "/p/type: more than 8 bytes"},
    {"no object", "[1]", "/p: is an array, not an object"},
};

static void test_body(void **state)
{
    const struct body_case *mine = *state;
    struct wire_value root;
    struct wire_value type;
    struct wire_value data;
    struct wire_value count;
    const struct wire_member members[] = {
        {.name = "type", .kinds = WIRE_STRING, .is_required = true, .text_size_max = 8, .ret_value = &type},
        {.name = "data", .kinds = WIRE_OBJECT, .ret_value = &data},
        {.name = "count", .kinds = WIRE_NUMBER | WIRE_NULL, .ret_value = &count},
    };
    struct err err = ERR_INIT;
    assert_true(wire_json_check(mine->text, strlen(mine->text), &root, &err));
    bool ok = wire_body_members(&root, "/p", members, COUNT_OF(members), &err);
    assert_int_equal(ok, mine->expected == NULL);
    assert_string_equal(err.text, mine->expected == NULL ? "" : mine->expected);
    assert_string_equal(err.code, mine->expected == NULL ? "" : "body_invalid");
    if (mine == &cases[0]) {
        assert_int_equal(data.size, strlen("{\"x\": 1.0 }"));
        assert_memory_equal(data.text, "{\"x\": 1.0 }", data.size);
        assert_int_equal(count.kind, WIRE_NULL);
    }
}

int main(void)
{
    return RUN_CASES("wire_body_members", test_body, cases);
}
