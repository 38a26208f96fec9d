/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the submit transaction: a migrated database with one topic and one route, and two connections as the
 * producer's role.
 */
#ifndef STORE_SUBMIT_FIXTURE_H
#define STORE_SUBMIT_FIXTURE_H

#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/uuid.h"
#include "db/db.h"
#include "db/db_submit.h"
#include "db_fixture.h"
#include "postgres_fixture.h"

#define TENANT "default"

struct fixture {
    struct postgres_fixture *postgres;
    struct db *one;
    struct db *two;
};

static const unsigned char hash[DB_SHA256_SIZE] = {1, 2, 3};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->postgres = postgres_fixture_new();
    assert_non_null(fixture->postgres);
    postgres_fixture_exec(fixture->postgres, "INSERT INTO onceward.topics (topic, event_bytes_max) VALUES ('t', 5000);"
                                             "INSERT INTO onceward.routes VALUES ('demo', 't', 'schema:1')");
    fixture->one = db_fixture_open(postgres_fixture_conninfo_as(fixture->postgres, "onceward_producer"));
    fixture->two = db_fixture_open(postgres_fixture_conninfo_as(fixture->postgres, "onceward_producer"));
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    db_close(&fixture->one);
    db_close(&fixture->two);
    postgres_fixture_free(&fixture->postgres);
    free(fixture);
    return 0;
}

static struct uuid id_of(int number)
{
    struct uuid id = {{0x01, 0x90, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, (uint8_t)number}};
    return id;
}

static struct db_submit *begin(struct db *db, const struct db_submit_key *keys, size_t count)
{
    struct db_submit *submit = NULL;
    struct err err = ERR_INIT;
    assert_ok(db_submit_begin(db, keys, count, &submit, &err), &err);
    return submit;
}

static long long count(struct fixture *fixture, const char *table)
{
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM onceward.%s", table);
    return postgres_fixture_number(fixture->postgres, sql);
}

#endif
