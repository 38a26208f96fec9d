/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include "cmocka_all.h"

static void test_err_keeps_the_first(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_false(err_set(&err, ERR_TRANSIENT, "first", "%s", "one"));
    assert_false(err_set(&err, ERR_FATAL, "second", "two"));
    assert_int_equal(err.kind, ERR_TRANSIENT);
    assert_string_equal(err.code, "first");
    assert_string_equal(err.text, "one");
    err_clear(&err);
    assert_int_equal(err.kind, ERR_NONE);
}

static void test_err_prefix_leads_in(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    err_set(&err, ERR_PERMANENT, "x", "no such topic\nand a second line");
    assert_false(err_prefix(&err, "publish %d", 7));
    assert_string_equal(err.text, "publish 7: no such topic");
}

static void test_err_cuts_at_a_character(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    char text[ERR_TEXT_SIZE * 2];
    memset(text, 'a', sizeof text);
    memcpy(text + ERR_TEXT_SIZE - 2, "\xc3\xa9", 2);
    text[sizeof text - 1] = '\0';
    err_set(&err, ERR_PERMANENT, "a_code_that_is_longer_than_a_code_may_ever_be", "%s", text);
    assert_int_equal(strlen(err.code), ERR_CODE_SIZE - 1);
    assert_int_equal(strlen(err.text), ERR_TEXT_SIZE - 2);
}

static void test_err_kinds_have_names(void **state)
{
    (void)state;
    assert_string_equal(err_kind_name(ERR_NONE), "none");
    assert_string_equal(err_kind_name(ERR_TRANSIENT), "transient");
    assert_string_equal(err_kind_name(ERR_PERMANENT), "permanent");
    assert_string_equal(err_kind_name(ERR_FATAL), "fatal");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_err_keeps_the_first),
        cmocka_unit_test(test_err_prefix_leads_in),
        cmocka_unit_test(test_err_cuts_at_a_character),
        cmocka_unit_test(test_err_kinds_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
