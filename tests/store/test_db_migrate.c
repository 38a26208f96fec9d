/* SPDX-License-Identifier: Apache-2.0
 *
 * Migrations on databases that are empty, migrated, touched, newer, raced for.
 */
#include "cmocka_all.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db/db.h"
#include "db/db_migrate.h"
#include "db_fixture.h"
#include "postgres_fixture.h"

#define RACER_COUNT 4

struct fixture {
    struct postgres_fixture *postgres;
    struct db *db;
};

static struct db *open_db(const char *conninfo)
{
    struct db_settings settings = DB_SETTINGS_INIT;
    settings.conninfo = conninfo;
    settings.lock_timeout_ms = 30000;
    settings.statement_timeout_ms = 30000;
    settings.answer_timeout_ms = 40000;
    return db_fixture_open_with(&settings);
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    *state = fixture;
    fixture->postgres = postgres_fixture_new_empty();
    if (fixture->postgres == NULL) {
        return -1;
    }
    fixture->db = open_db(postgres_fixture_conninfo(fixture->postgres));
    return fixture->db == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    db_close(&fixture->db);
    postgres_fixture_free(&fixture->postgres);
    free(fixture);
    return 0;
}

static int migrate_all(struct db *db, struct err *err)
{
    int steps = 0;
    for (int version = -1; version != 0;) {
        if (!db_migrate_step(db, &version, err)) {
            return -1;
        }
        steps += version != 0 ? 1 : 0;
    }
    return steps;
}

static void test_db_migrate_applies_each_migration_once(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    struct db_migrate_row *rows = NULL;
    size_t count = 0;
    assert_ok(db_migrate_list(fixture->db, &rows, &count, &err), &err);
    assert_int_equal(count, db_migrate_version());
    assert_int_equal(rows[0].state, DB_MIGRATE_PENDING);
    free(rows);
    int steps = migrate_all(fixture->db, &err);
    assert_ok(steps >= 0, &err);
    assert_int_equal(steps, db_migrate_version());
    assert_int_equal(migrate_all(fixture->db, &err), 0);
    assert_ok(db_migrate_list(fixture->db, &rows, &count, &err), &err);
    assert_int_equal(count, db_migrate_version());
    assert_int_equal(rows[count - 1].state, DB_MIGRATE_APPLIED);
    assert_true(rows[count - 1].applied_at_us > 0);
    free(rows);
    assert_ok(db_migrate_check_version(fixture->db, &err), &err);
}

static void test_db_migrate_knows_every_file_of_the_folder(void **state)
{
    (void)state;
    DIR *folder = opendir(ONCEWARD_SOURCE_DIR "/schema/migrations");
    assert_non_null(folder);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        size_t length = strlen(entry->d_name);
        count += length > 4 && strcmp(entry->d_name + length - 4, ".sql") == 0 ? 1 : 0;
    }
    closedir(folder);
    assert_int_equal(count, db_migrate_version());
}

static void test_db_migrate_refuses_a_database_that_is_not_utf8(void **state)
{
    struct fixture *fixture = *state;
    char conninfo[1024];
    postgres_fixture_exec(fixture->postgres, "DROP DATABASE IF EXISTS onceward_test_latin1");
    postgres_fixture_exec(fixture->postgres,
                          "CREATE DATABASE onceward_test_latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    assert_in_range(snprintf(conninfo, sizeof conninfo, "%s dbname=onceward_test_latin1",
                             postgres_fixture_conninfo(fixture->postgres)),
                    1, sizeof conninfo - 1);
    struct db_settings settings = DB_SETTINGS_INIT;
    settings.conninfo = conninfo;
    struct err err = ERR_INIT;
    assert_null(db_open(&settings, &err));
    postgres_fixture_exec(fixture->postgres, "DROP DATABASE onceward_test_latin1");
    assert_int_equal(err.kind, ERR_FATAL);
    assert_string_equal(err.code, "encoding_not_utf8");
}

struct refusal_case {
    const char *name;
    const char *sql;        /* What somebody did to the migrated database; NULL: it was never migrated. */
    const char *step_code;  /* Of db_migrate_step, "" for success. */
    const char *check_code; /* Of db_migrate_check_version, "" for success. */
};

static const struct refusal_case refusal_cases[] = {
    {"an empty database is migrated, and refused by services until then", NULL, "", "schema_missing"},
    {"a migration that was applied with other bytes is refused",
     "UPDATE onceward.schema_migrations SET checksum = sha256('other') WHERE version = 1", "migration_changed", ""},
    {"a newer database is refused", "INSERT INTO onceward.schema_migrations VALUES (999, 'later', sha256('x'))",
     "schema_newer", "schema_newer"},
    {"an older database is refused by services",
     "DROP SCHEMA onceward CASCADE; CREATE SCHEMA onceward;"
     "CREATE TABLE onceward.schema_migrations (version int4, name text, checksum bytea,"
     " applied_at timestamptz DEFAULT now())",
     NULL, "schema_older"},
};

static void test_db_migrate_refuses(void **state)
{
    const struct refusal_case *row = *state;
    void *inner = NULL;
    assert_int_equal(setup(&inner), 0);
    struct fixture *fixture = inner;
    struct err err = ERR_INIT;
    if (row->sql != NULL) {
        assert_ok(migrate_all(fixture->db, &err) > 0, &err);
        postgres_fixture_exec(fixture->postgres, row->sql);
    }
    if (row->check_code[0] == '\0') {
        assert_ok(db_migrate_check_version(fixture->db, &err), &err);
    } else {
        assert_false(db_migrate_check_version(fixture->db, &err));
        assert_string_equal(err.code, row->check_code);
        assert_int_equal(err.kind, ERR_FATAL);
    }
    err_clear(&err);
    int version = 0;
    if (row->step_code != NULL && row->step_code[0] == '\0') {
        assert_ok(db_migrate_step(fixture->db, &version, &err), &err);
    } else if (row->step_code != NULL) {
        assert_false(db_migrate_step(fixture->db, &version, &err));
        assert_string_equal(err.code, row->step_code);
    }
    (void)teardown(&inner);
}

/* Each racer applies what it finds and exits with the number of steps it made. */
static void test_db_migrate_races_apply_each_migration_once(void **state)
{
    struct fixture *fixture = *state;
    const char *conninfo = postgres_fixture_conninfo(fixture->postgres);
    pid_t racers[RACER_COUNT];
    for (int i = 0; i < RACER_COUNT; i++) {
        racers[i] = fork();
        assert_true(racers[i] >= 0);
        if (racers[i] == 0) {
            struct err err = ERR_INIT;
            struct db *db = open_db(conninfo);
            int steps = db == NULL ? -1 : migrate_all(db, &err);
            if (steps < 0) {
                print_error("%s: %s\n", err.code, err.text);
            }
            db_close(&db);
            _exit(steps < 0 ? 100 : steps);
        }
    }
    int sum = 0;
    for (int i = 0; i < RACER_COUNT; i++) {
        int status = 0;
        assert_int_equal(waitpid(racers[i], &status, 0), racers[i]);
        assert_true(WIFEXITED(status));
        sum += WEXITSTATUS(status);
    }
    assert_int_equal(sum, db_migrate_version());
    struct err err = ERR_INIT;
    assert_ok(db_migrate_check_version(fixture->db, &err), &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_db_migrate_applies_each_migration_once, setup, teardown),
        cmocka_unit_test(test_db_migrate_knows_every_file_of_the_folder),
        cmocka_unit_test_setup_teardown(test_db_migrate_refuses_a_database_that_is_not_utf8, setup, teardown),
        cmocka_unit_test_setup_teardown(test_db_migrate_races_apply_each_migration_once, setup, teardown),
    };
    int failed = RUN_CASES("test_db_migrate refuses", test_db_migrate_refuses, refusal_cases);
    return failed + cmocka_run_group_tests_name("test_db_migrate", tests, NULL, NULL);
}
