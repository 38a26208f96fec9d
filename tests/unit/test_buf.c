/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdlib.h>

#include "cmocka_all.h"

static void test_buf_grows_and_stays_terminated(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf, 100000);
    assert_string_equal(buf.data, "");
    for (int i = 0; i < 10000; i++) {
        buf_char(&buf, 'x');
        assert_int_equal(buf.data[buf.size], '\0');
    }
    assert_int_equal(buf.size, 10000);
    buf_reset(&buf);
    buf_format(&buf, "%d-%s", 7, "seven");
    buf_text(&buf, "!");
    assert_string_equal(buf.data, "7-seven!");
    buf_consume(&buf, 2);
    assert_string_equal(buf.data, "seven!");
    buf_truncate(&buf, 5);
    assert_string_equal(buf.data, "seven");
    buf_done(&buf);
}

/* A sanitizer's allocator would end the process rather than say no. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void test_buf_tells_missing_memory_from_missing_room(void **state)
{
    (void)state;
    struct buf buf;
    struct buf whole;
    struct err err = ERR_INIT;
    buf_init(&buf, SIZE_MAX / 8);
    buf_init(&whole, 100);
    buf_text(&buf, "some");
    assert_null(buf_reserve(&buf, SIZE_MAX / 16));
    assert_true(buf.has_overflowed && buf.has_no_memory);
    assert_string_equal(buf.data, "some");
    assert_false(buf_check(&buf, &err));
    assert_int_equal(err.kind, ERR_TRANSIENT);
    assert_string_equal(err.code, "out_of_memory");
    buf_text(&whole, "a part: ");
    buf_inherit(&whole, &buf);
    err_clear(&err);
    assert_false(buf_check(&whole, &err));
    assert_string_equal(err.code, "out_of_memory");
    buf_reset(&buf);
    err_clear(&err);
    assert_true(buf_check(&buf, &err));
    buf_done(&buf);
    buf_done(&whole);
}

static void test_buf_remembers_an_overflow_until_reset(void **state)
{
    (void)state;
    struct buf buf;
    struct err err = ERR_INIT;
    buf_init(&buf, 4);
    buf_text(&buf, "1234");
    assert_true(buf_check(&buf, &err));
    buf_char(&buf, '5');
    buf_format(&buf, "%s", "");
    assert_string_equal(buf.data, "1234");
    assert_false(buf_check(&buf, &err));
    assert_string_equal(err.code, "too_large");
    assert_null(buf_reserve(&buf, 0));
    buf_reset(&buf);
    err_clear(&err);
    buf_text(&buf, "abc");
    assert_true(buf_check(&buf, &err));
    buf_done(&buf);
}

static void test_buf_reserve_gives_room_to_write(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf, 10);
    char *room = buf_reserve(&buf, 10);
    assert_non_null(room);
    memcpy(room, "0123456789", 10);
    buf_extend(&buf, 3);
    assert_string_equal(buf.data, "012");
    assert_null(buf_reserve(&buf, 8));
    buf_done(&buf);
}

static void test_buf_take_gives_the_bytes_away(void **state)
{
    (void)state;
    struct buf buf;
    size_t size;
    buf_init(&buf, 10);
    char *empty = buf_take(&buf, &size);
    assert_string_equal(empty, "");
    free(empty);
    buf_text(&buf, "abc");
    char *taken = buf_take(&buf, &size);
    assert_string_equal(taken, "abc");
    assert_int_equal(size, 3);
    assert_int_equal(buf.size, 0);
    free(taken);
    buf_done(&buf);
}

struct string_case {
    const char *name;
    const char *text;
    const char *expected;
};

static const struct string_case string_cases[] = {
    {"plain", "abc", "\"abc\""},
    {"quote and backslash", "a\"b\\c", "\"a\\\"b\\\\c\""},
    {"control characters", "\b\f\n\r\t\x01\x1f", "\"\\b\\f\\n\\r\\t\\u0001\\u001f\""},
    {"UTF-8 as it is", "\xc3\xa9\xf0\x9f\x98\x80", "\"\xc3\xa9\xf0\x9f\x98\x80\""},
    {"what is no UTF-8", "a\xff\"\xc3", "\"a\xEF\xBF\xBD\\\"\xEF\xBF\xBD\""},
    {"empty", "", "\"\""},
};

static void test_string(void **state)
{
    const struct string_case *mine = *state;
    struct buf out;
    buf_init(&out, 1000);
    buf_json_string(&out, mine->text, strlen(mine->text));
    assert_string_equal(out.data, mine->expected);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buf_grows_and_stays_terminated),
        cmocka_unit_test(test_buf_tells_missing_memory_from_missing_room),
        cmocka_unit_test(test_buf_remembers_an_overflow_until_reset),
        cmocka_unit_test(test_buf_reserve_gives_room_to_write),
        cmocka_unit_test(test_buf_take_gives_the_bytes_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_CASES("buf_json_string", test_string, string_cases);
}
