/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/wire_base64.h"

#include "cmocka_all.h"

struct decode_case {
    const char *name;
    const char *text;
    const char *expected; /* NULL: refused. */
};

/* The first rows are RFC 4648, section 10. */
static const struct decode_case cases[] = {
    {"empty", "", ""},
    {"f", "Zg==", "f"},
    {"fo", "Zm8=", "fo"},
    {"foo", "Zm9v", "foo"},
    {"foob", "Zm9vYg==", "foob"},
    {"fooba", "Zm9vYmE=", "fooba"},
    {"foobar", "Zm9vYmFy", "foobar"},
    {"the last characters of the alphabet", "+/+/", "\xfb\xff\xbf"},
    {"no padding", "Zg", NULL},
    {"padding too short", "Zg=", NULL},
    {"padding too long", "Zm9vYg====", NULL},
    {"padding inside", "Zg==Zg==", NULL},
    {"padding alone", "====", NULL},
    {"three of padding", "Z===", NULL},
    {"set bits behind the last byte", "Zh==", NULL},
    {"set bits behind the last byte of two", "Zm9=", NULL},
    {"white space", "Zm9v\n", NULL},
    {"white space inside", "Zm 9", NULL},
    {"the alphabet for URLs", "-_-_", NULL},
};

static void test_decode(void **state)
{
    const struct decode_case *mine = *state;
    struct buf out;
    struct err err = ERR_INIT;
    buf_init(&out, 100);
    bool ok = wire_base64_decode(mine->text, strlen(mine->text), &out, &err);
    assert_int_equal(ok, mine->expected != NULL);
    assert_string_equal(out.data, mine->expected == NULL ? "" : mine->expected);
    if (ok) {
        struct buf again;
        buf_init(&again, 100);
        wire_base64_encode(out.data, out.size, &again);
        assert_string_equal(again.data, mine->text);
        buf_done(&again);
    } else {
        assert_string_equal(err.code, "base64_invalid");
    }
    buf_done(&out);
}

static void test_wire_base64_decode_needs_no_more_room_than_the_bytes(void **state)
{
    (void)state;
    struct buf out;
    struct err err = ERR_INIT;
    buf_init(&out, 1);
    assert_true(wire_base64_decode("Zg==", 4, &out, &err));
    assert_string_equal(out.data, "f");
    buf_done(&out);
}

static void test_wire_base64_decode_says_when_there_is_no_room(void **state)
{
    (void)state;
    struct buf out;
    struct err err = ERR_INIT;
    buf_init(&out, 2);
    assert_false(wire_base64_decode("Zm9v", 4, &out, &err));
    assert_string_equal(err.code, "too_large");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wire_base64_decode_needs_no_more_room_than_the_bytes),
                                       cmocka_unit_test(test_wire_base64_decode_says_when_there_is_no_room)};
    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_CASES("wire_base64", test_decode, cases);
}
