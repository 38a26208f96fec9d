/* SPDX-License-Identifier: Apache-2.0
 *
 * The tests' own databases: each is migrated, none sees another's rows, none is left.
 */
#include "postgres_fixture.h"

#include <stdlib.h>

#include "cmocka_all.h"

static void test_postgres_fixture_gives_each_test_its_own_migrated_database(void **state)
{
    (void)state;
    struct postgres_fixture *first = postgres_fixture_new();
    struct postgres_fixture *second = postgres_fixture_new();
    assert_non_null(first);
    assert_non_null(second);
    postgres_fixture_exec(first, "CREATE TABLE only_here (id int)");
    assert_int_equal(postgres_fixture_number(second, "SELECT count(*) FROM pg_class WHERE relname = 'only_here'"), 0);
    assert_true(postgres_fixture_number(second, "SELECT count(*) FROM pg_tables WHERE schemaname = 'onceward'") > 0);
    postgres_fixture_free(&first);
    postgres_fixture_free(&second);
    assert_null(second);
}

static void test_postgres_fixture_leaves_no_database_behind(void **state)
{
    (void)state;
    char name[64];
    char sql[160];
    struct postgres_fixture *gone = postgres_fixture_new_empty();
    struct postgres_fixture *witness = postgres_fixture_new_empty();
    assert_non_null(gone);
    assert_non_null(witness);
    postgres_fixture_text(gone, "SELECT current_database()", name, sizeof name);
    assert_string_equal(name, postgres_fixture_name(gone));
    postgres_fixture_free(&gone);
    assert_in_range(snprintf(sql, sizeof sql, "SELECT count(*) FROM pg_database WHERE datname = '%s'", name), 1,
                    sizeof sql - 1);
    assert_int_equal(postgres_fixture_number(witness, sql), 0);
    postgres_fixture_free(&witness);
}

static void test_postgres_fixture_is_null_without_a_server(void **state)
{
    (void)state;
    const char *conninfo = getenv("ONCEWARD_TEST_DATABASE");
    assert_non_null(conninfo);
    char *kept = strdup(conninfo);
    unsetenv("ONCEWARD_TEST_DATABASE");
    assert_null(postgres_fixture_new());
    setenv("ONCEWARD_TEST_DATABASE", "host=127.0.0.1 port=1 user=nobody", 1);
    assert_null(postgres_fixture_new());
    setenv("ONCEWARD_TEST_DATABASE", kept, 1);
    free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_fixture_gives_each_test_its_own_migrated_database),
        cmocka_unit_test(test_postgres_fixture_leaves_no_database_behind),
        cmocka_unit_test(test_postgres_fixture_is_null_without_a_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
