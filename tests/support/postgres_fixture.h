/* SPDX-License-Identifier: Apache-2.0
 *
 * A Postgres database of its own for a test, on the server that ONCEWARD_TEST_DATABASE
 * names (the conninfo of a superuser). Migrated databases are copies of a template that
 * is made once per state of schema/migrations, so each costs some tens of milliseconds.
 * Nothing is skipped: without a server, or with a migration that fails, the maker prints
 * why and returns NULL, and the test has to fail.
 */
#ifndef SUPPORT_POSTGRES_FIXTURE_H
#define SUPPORT_POSTGRES_FIXTURE_H

#include <stddef.h>

struct postgres_fixture;

/* A database with all migrations applied. NULL after printing why not. Blocks. */
struct postgres_fixture *postgres_fixture_new(void);

/* An empty database. NULL after printing why not. */
struct postgres_fixture *postgres_fixture_new_empty(void);

/* Drops the database, whoever is still connected to it, and nulls the pointer. Accepts NULL inside. */
void postgres_fixture_free(struct postgres_fixture **fixturep);

/* The superuser's conninfo of the database. Borrowed from the fixture. */
const char *postgres_fixture_conninfo(const struct postgres_fixture *fixture);

/* The conninfo of the database as another role, for instance "onceward_relay". Borrowed
 * from the fixture until the next call or its end. */
const char *postgres_fixture_conninfo_as(struct postgres_fixture *fixture, const char *role);

/* The database's name. Borrowed. */
const char *postgres_fixture_name(const struct postgres_fixture *fixture);

/* Runs statements as the superuser, outside the code under test. A failure is printed and
 * ends the process: it is the test that is wrong. */
void postgres_fixture_exec(struct postgres_fixture *fixture, const char *sql);

/* The first column of the first row as text, into value (cut to size); "" for NULL or no
 * row. Ends the process like exec. Returns value. */
const char *postgres_fixture_text(struct postgres_fixture *fixture, const char *sql, char *value, size_t size);

/* The same as a number. */
long long postgres_fixture_number(struct postgres_fixture *fixture, const char *sql);

#endif
