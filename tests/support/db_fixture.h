/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections of the code under test, and the word on what it answers.
 */
#ifndef SUPPORT_DB_FIXTURE_H
#define SUPPORT_DB_FIXTURE_H

#include "cmocka_all.h"

#include "db/db.h"

/* Fails the test with the error's own words. */
static inline void assert_ok(bool ok, const struct err *err)
{
    if (!ok) {
        fail_msg("%s %s: %s", err_kind_name(err->kind), err->code, err->text);
    }
}

/* Fails the test where there is no connection. */
static inline struct db *db_fixture_open_with(const struct db_settings *settings)
{
    struct err err = ERR_INIT;
    struct db *db = db_open(settings, &err);
    assert_ok(db != NULL, &err);
    return db;
}

static inline struct db *db_fixture_open(const char *conninfo)
{
    struct db_settings settings = DB_SETTINGS_INIT;
    settings.conninfo = conninfo;
    return db_fixture_open_with(&settings);
}

#endif
