/* SPDX-License-Identifier: Apache-2.0 */
#include "domain/identity.h"

#include "cmocka_all.h"

struct name_case {
    const char *name;
    bool is_document_id;
    bool is_type;
};

static const struct name_case cases[] = {
    {"a", true, true},     {"A-z_0.9~", true, true}, {"com.example.order/v1", false, true},
    {"a b", false, false}, {"a%20b", false, true},   {".", false, true},
    {"..", false, true},   {"...", true, true},      {"\xc3\xa9", false, false},
    {"a\"", false, false}, {"", false, false},       {"a\n", false, false},
};

static void test_name(void **state)
{
    const struct name_case *mine = *state;
    assert_int_equal(identity_document_id_is_valid(mine->name, strlen(mine->name)), mine->is_document_id);
    assert_int_equal(identity_tenant_is_valid(mine->name, strlen(mine->name)), mine->is_document_id);
    assert_int_equal(identity_type_is_valid(mine->name, strlen(mine->name)), mine->is_type);
}

static void test_identity_bounds_sizes(void **state)
{
    (void)state;
    char text[300];
    memset(text, 'a', sizeof text);
    assert_true(identity_document_id_is_valid(text, IDENTITY_DOCUMENT_ID_SIZE_MAX));
    assert_false(identity_document_id_is_valid(text, IDENTITY_DOCUMENT_ID_SIZE_MAX + 1));
    assert_false(identity_tenant_is_valid(text, IDENTITY_TENANT_SIZE_MAX + 1));
    assert_false(identity_type_is_valid(text, IDENTITY_TYPE_SIZE_MAX + 1));
    assert_false(identity_document_id_is_valid("a\0b", 3));
}

/* Retried uploads hang on this text. */
static void test_identity_of_a_document_never_changes(void **state)
{
    (void)state;
    struct buf left;
    struct buf right;
    buf_init(&left, 1000);
    buf_init(&right, 1000);
    identity_document_text("a", "text/plain", "00ff", &left);
    assert_string_equal(left.data, "1:a10:text/plain00ff");
    identity_document_text("a1", "0:text/plain", "00ff", &right);
    assert_string_not_equal(left.data, right.data);
    buf_done(&left);
    buf_done(&right);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity_bounds_sizes),
        cmocka_unit_test(test_identity_of_a_document_never_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_CASES("identity", test_name, cases);
}
