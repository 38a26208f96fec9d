/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the connection itself: a database of the group's own without a schema, a connection per test, each test
 * once as it is and, where it matters, once as behind a pooler.
 */
#ifndef STORE_SESSION_FIXTURE_H
#define STORE_SESSION_FIXTURE_H

#include "db_fixture.h"

#include "db_private.h"
#include "postgres_fixture.h"

struct fixture {
    struct db *db;
    struct db_settings settings;
};

static struct postgres_fixture *postgres;

static const char *conninfo(void)
{
    return postgres_fixture_conninfo(postgres);
}

static int setup_group(void **state)
{
    (void)state;
    postgres = postgres_fixture_new_empty();
    return postgres == NULL ? -1 : 0;
}

static int teardown_group(void **state)
{
    (void)state;
    postgres_fixture_free(&postgres);
    return 0;
}

static int setup(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.settings = DB_SETTINGS_INIT};
    fixture.settings.conninfo = conninfo();
    fixture.settings.application_name = "test_db";
    fixture.settings.is_pooled = *state != NULL && strcmp(*state, "pooled") == 0;
    fixture.db = db_fixture_open_with(&fixture.settings);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    db_close(&fixture->db);
    assert_null(fixture->db);
    return 0;
}

#define ON_DB(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define POOLED(test, setup_it, teardown_it)                                                                            \
    {                                                                                                                  \
        .name = #test " (pooled)", .test_func = test, .setup_func = setup_it, .teardown_func = teardown_it,            \
        .initial_state = "pooled"                                                                                      \
    }

#endif
