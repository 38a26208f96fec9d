/* SPDX-License-Identifier: Apache-2.0 */
#include "domain/scope.h"

#include "cmocka_all.h"

static void test_scope_knows_its_names_and_no_other(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned scope;
    } rows[] = {{"submit", SCOPE_SUBMIT},
                {"read", SCOPE_READ},
                {"operate", SCOPE_OPERATE},
                {"admin", SCOPE_ADMIN},
                {"", 0},
                {"rea", 0},
                {"reads", 0},
                {"READ", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(scope_from_text(rows[i].name, strlen(rows[i].name)), rows[i].scope);
    }
}

static void test_scope_writes_a_set_in_a_fixed_order(void **state)
{
    (void)state;
    char text[SCOPE_TEXT_SIZE];
    scope_to_text(0, ",", text);
    assert_string_equal(text, "");
    scope_to_text(SCOPE_READ | SCOPE_SUBMIT, ",", text);
    assert_string_equal(text, "submit,read");
    scope_to_text(SCOPE_ADMIN | SCOPE_OPERATE | SCOPE_READ | SCOPE_SUBMIT, ", ", text);
    assert_string_equal(text, "submit, read, operate, admin");
}

static void test_scope_allows_what_is_in_the_set_and_admin_all(void **state)
{
    (void)state;
    assert_true(scope_allows(0, 0));
    assert_true(scope_allows(SCOPE_READ, SCOPE_READ | SCOPE_OPERATE));
    assert_true(scope_allows(SCOPE_ADMIN, SCOPE_SUBMIT));
    assert_false(scope_allows(SCOPE_READ | SCOPE_OPERATE, SCOPE_SUBMIT));
    assert_false(scope_allows(0, SCOPE_READ));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scope_knows_its_names_and_no_other),
        cmocka_unit_test(test_scope_writes_a_set_in_a_fixed_order),
        cmocka_unit_test(test_scope_allows_what_is_in_the_set_and_admin_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
