/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/wire_canonical.h"

#include "cmocka_all.h"

struct canonical_case {
    const char *name;
    const char *left;
    const char *right;
    bool is_equal;
};

static const struct canonical_case cases[] = {
    {"order of members", "{\"b\":1,\"a\":[2, 3]}", " {\"a\" : [2,3],\n\"b\":1}", true},
    {"order of items", "[1,2]", "[2,1]", false},
    {"nested order", "[{\"x\":{\"b\":1,\"a\":2}}]", "[{\"x\":{\"a\":2,\"b\":1}}]", true},
    {"a name that begins another", "{\"a\":1,\"ab\":2}", "{\"ab\":2,\"a\":1}", true},
    {"1 and 1.0", "1", "1.0", true},
    {"1 and 1e0", "1", "1e0", true},
    {"1 and 10e-1", "1", "10e-1", true},
    {"1 and 0.01E+2", "1", "0.01E+2", true},
    {"100 and 1e2", "100", "1e2", true},
    {"1 and 10", "1", "10", false},
    {"1 and -1", "1", "-1", false},
    {"0 and -0", "0", "-0", true},
    {"0 and 0.000e7", "0", "0.000e7", true},
    {"0.1 and 0.10", "0.1", "0.10", true},
    {"0.1 and 0.01", "0.1", "0.01", false},
    {"10.01 and 1001e-2", "10.01", "1001e-2", true},
    {"1.001 and 1.01", "1.001", "1.01", false},
    {"numbers that are one double", "0.1000000000000000055511151231257827", "0.1", false},
    {"big decimals", "123456789012345678901234567890.5", "1234567890123456789012345678905e-1", true},
    {"big decimals that differ in the last digit", "12345678901234567890.1", "12345678901234567890.2", false},
    {"exponents with leading zeros", "1e007", "1e7", true},
    {"an exponent that is too long to count with", "1e-99999999999999999999", "1e-99999999999999999999", true},
    {"a number and its text", "1", "\"1\"", false},
    {"escapes", "\"\\u00e9\\/\\u0041\"", "\"\xc3\xa9/A\"", true},
    {"escapes in names", "{\"\\u0062\":1,\"a\":2}", "{\"a\":2,\"b\":1}", true},
    {"a quote in a text", "\"a\\\"b\"", "\"a\\u0022b\"", true},
    {"control characters", "\"\\n\\u0001\"", "\"\\u000a\\u0001\"", true},
    {"null and nothing", "{\"a\":null}", "{}", false},
    {"empty object and array", "{}", "[]", false},
    {"true and false", "true", "false", false},
    {"split of names and values", "{\"a\":\"b\"}", "{\"a\\\":\\\"b\":\"\"}", false},
};

static void append(const char *text, struct buf *out)
{
    struct wire_value value;
    struct err err = ERR_INIT;
    buf_init(out, 10000);
    if (!wire_json_check(text, strlen(text), &value, &err)) {
        fail_msg("%s: %s", text, err.text);
    }
    wire_canonical_append(&value, out);
}

static void test_canonical(void **state)
{
    const struct canonical_case *mine = *state;
    struct buf left;
    struct buf right;
    append(mine->left, &left);
    append(mine->right, &right);
    if (mine->is_equal) {
        assert_string_equal(left.data, right.data);
    } else {
        assert_string_not_equal(left.data, right.data);
    }
    buf_done(&left);
    buf_done(&right);
}

/* Stored fingerprints hang on this form. */
static void test_canonical_form_never_changes(void **state)
{
    (void)state;
    struct buf out;
    append("{\"z\":[1,-2.50,1e3,0,null,true],\"a\\n\":\"\\u00e9\\t\",\"m\":{}}", &out);
    assert_string_equal(out.data, "{\"a\\n\":\"\xc3\xa9\\t\",\"m\":{},\"z\":[0.1e1,-0.25e1,0.1e4,0,null,true]}");
    buf_done(&out);
}

/* Whatever the room, it says that it was too little, and keeps to it. */
static void test_canonical_keeps_to_its_room(void **state)
{
    (void)state;
    static const char text[] = "{\"z\":{\"b\":[1,2,{\"y\":1,\"x\":2}],\"a\":\"t\"},\"a\":null,\"\":[]}";
    struct wire_value value;
    struct err err = ERR_INIT;
    assert_true(wire_json_check(text, sizeof text - 1, &value, &err));
    struct buf whole;
    append(text, &whole);
    for (size_t room = 0; room < whole.size; room++) {
        struct buf out;
        buf_init(&out, room);
        wire_canonical_append(&value, &out);
        assert_true(out.has_overflowed && out.size <= room);
        buf_done(&out);
    }
    buf_done(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_canonical_form_never_changes),
                                       cmocka_unit_test(test_canonical_keeps_to_its_room)};
    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_CASES("canonical", test_canonical, cases);
}
