/* SPDX-License-Identifier: Apache-2.0 */
#include "base/uuid.h"

#include "cmocka_all.h"

struct uuid_case {
    const char *name;
    bool is_uuid;
};

static const struct uuid_case cases[] = {
    {"01890a5d-ac96-774b-bcce-b302099a8057", true},
    {"00000000-0000-0000-0000-000000000000", true},
    {"01890A5D-ac96-774b-bcce-b302099a8057", false},
    {"01890a5dac96-774b-bcce-b302099a8057-", false},
    {"01890a5d-ac96-774b-bcce-b302099a805", false},
    {"01890a5d-ac96-774b-bcce-b302099a80577", false},
    {"01890a5d-ac96-774b-bcce-b302099a805g", false},
    {"{1890a5d-ac96-774b-bcce-b302099a805}", false},
    {"", false},
};

static void test_text(void **state)
{
    const struct uuid_case *mine = *state;
    struct uuid uuid;
    assert_int_equal(uuid_from_text(mine->name, strlen(mine->name), &uuid), mine->is_uuid);
    if (mine->is_uuid) {
        char text[UUID_TEXT_SIZE];
        uuid_to_text(&uuid, text);
        assert_string_equal(text, mine->name);
    }
}

static void test_uuid_v7_holds_time_version_and_variant(void **state)
{
    (void)state;
    uint8_t random[UUID_RANDOM_SIZE];
    char text[UUID_TEXT_SIZE];
    memset(random, 0xFF, sizeof random);
    struct uuid uuid = uuid_v7(0x017F22E279B0, random);
    uuid_to_text(&uuid, text);
    assert_string_equal(text, "017f22e2-79b0-7fff-bfff-ffffffffffff");
    assert_true(uuid_v7_ms(&uuid) == 0x017F22E279B0);
    uuid.bytes[6] = 0x4F;
    assert_int_equal(uuid_v7_ms(&uuid), -1);
}

static void test_uuid_v7_is_ordered_by_time_and_not_repeated(void **state)
{
    (void)state;
    struct uuid earlier = uuid_v7_new(1000);
    struct uuid later = uuid_v7_new(1001);
    struct uuid same_time = uuid_v7_new(1001);
    assert_true(uuid_compare(&earlier, &later) < 0);
    assert_true(uuid_compare(&later, &later) == 0);
    assert_true(uuid_compare(&later, &same_time) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uuid_v7_holds_time_version_and_variant),
        cmocka_unit_test(test_uuid_v7_is_ordered_by_time_and_not_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_CASES("uuid_from_text", test_text, cases);
}
