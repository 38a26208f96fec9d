/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "cmocka_all.h"

struct number_case {
    const char *name;
    bool is_number;
    int64_t expected;
};

static const struct number_case number_cases[] = {
    {"0", true, 0},
    {"007", true, 7},
    {"-1", true, -1},
    {"9223372036854775807", true, INT64_MAX},
    {"-9223372036854775808", true, INT64_MIN},
    {"9223372036854775808", false, 0},
    {"", false, 0},
    {"-", false, 0},
    {"+1", false, 0},
    {" 1", false, 0},
    {"1 ", false, 0},
    {"0x1", false, 0},
    {"--1", false, 0},
};

static void test_number(void **state)
{
    const struct number_case *mine = *state;
    int64_t number = 0;
    assert_int_equal(text_to_int64(mine->name, &number), mine->is_number);
    assert_true(number == mine->expected);
}

static void test_text_has_control(void **state)
{
    (void)state;
    assert_false(text_has_control(""));
    assert_false(text_has_control("a ~\xc3\xa9"));
    assert_true(text_has_control("a\tb"));
    assert_true(text_has_control("a\x1f"));
    assert_true(text_has_control("\x7f"));
}

static void test_text_hex_value(void **state)
{
    (void)state;
    for (int i = 0; i < 16; i++) {
        assert_int_equal(text_hex_value("0123456789abcdef"[i]), i);
        assert_int_equal(text_hex_value("0123456789ABCDEF"[i]), i);
    }
    static const char others[] = "/:@G`g \xe9";
    for (size_t i = 0; i < sizeof others; i++) { /* The NUL too. */
        assert_int_equal(text_hex_value(others[i]), -1);
    }
}

struct utf8_case {
    const char *name;
    const char *text;
    int wrong; /* -1: well-formed. */
};

static const struct utf8_case utf8_cases[] = {
    {"empty", "", -1},
    {"one to four bytes", "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", -1},
    {"the greatest", "\xf4\x8f\xbf\xbf", -1},
    {"beyond the greatest", "a\xf4\x90\x80\x80", 1},
    {"overlong two", "\xc0\x80", 0},
    {"overlong three", "\xe0\x9f\xbf", 0},
    {"overlong four", "\xf0\x8f\xbf\xbf", 0},
    {"a surrogate", "ab\xed\xa0\x80", 2},
    {"behind the surrogates", "\xee\x80\x80", -1},
    {"a lone continuation", "a\x80", 1},
    {"cut short", "a\xe2\x82", 1},
    {"broken inside", "\xe2\x28\xa1", 0},
};

static void test_utf8(void **state)
{
    const struct utf8_case *mine = *state;
    size_t wrong = 99;
    assert_int_equal(text_is_utf8(mine->text, strlen(mine->text), &wrong), mine->wrong < 0);
    if (mine->wrong >= 0) {
        assert_int_equal(wrong, mine->wrong);
    }
}

static void test_text_says_what_was_cut(void **state)
{
    (void)state;
    char text[4];
    assert_true(text_format(text, sizeof text, "%d", 123));
    assert_false(text_format(text, sizeof text, "%d", 1234));
    assert_string_equal(text, "123");
    assert_true(text_copy(text, sizeof text, "abc"));
    assert_false(text_copy(text, sizeof text, "abcd"));
    assert_string_equal(text, "abc");
}

static void test_text_compares(void **state)
{
    (void)state;
    assert_true(text_is_equal(NULL, NULL));
    assert_false(text_is_equal(NULL, ""));
    assert_true(text_is_equal("a", "a"));
    assert_true(text_has_prefix("kafka.acks", "kafka."));
    assert_false(text_has_prefix("kaf", "kafka."));
    assert_true(text_has_suffix("a.key", ".key"));
    assert_false(text_has_suffix("key", ".key"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_says_what_was_cut),
        cmocka_unit_test(test_text_compares),
        cmocka_unit_test(test_text_has_control),
        cmocka_unit_test(test_text_hex_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_CASES("text_to_int64", test_number, number_cases) +
           RUN_CASES("text_is_utf8", test_utf8, utf8_cases);
}
