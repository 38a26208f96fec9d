/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens: found while they live and not a moment longer, two of a name at once
 * and never three, whoever comes at the same moment.
 */
#include "cmocka_all.h"

#include <stdlib.h>

#include "base/thread.h"
#include "db/db_token.h"
#include "db_fixture.h"
#include "domain/scope.h"
#include "postgres_fixture.h"

#define RIVAL_COUNT 8

struct fixture {
    struct postgres_fixture *postgres;
    struct db *operator;
    struct db *producer;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    *state = fixture;
    fixture->postgres = postgres_fixture_new();
    if (fixture->postgres == NULL) {
        return -1;
    }
    fixture->operator= db_fixture_open(postgres_fixture_conninfo_as(fixture->postgres, "onceward_operator"));
    fixture->producer = db_fixture_open(postgres_fixture_conninfo_as(fixture->postgres, "onceward_producer"));
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    db_close(&fixture->operator);
    db_close(&fixture->producer);
    postgres_fixture_free(&fixture->postgres);
    free(fixture);
    return 0;
}

static void make_hash(unsigned char first, unsigned char hash[DB_TOKEN_HASH_SIZE])
{
    memset(hash, 7, DB_TOKEN_HASH_SIZE);
    hash[0] = first;
}

static enum db_token_outcome create(struct db *db, unsigned char first, int days, struct db_token *ret_token)
{
    const struct db_token wanted = {.tenant = "acme", .name = "billing", .scopes = SCOPE_SUBMIT | SCOPE_READ};
    unsigned char hash[DB_TOKEN_HASH_SIZE];
    enum db_token_outcome outcome;
    struct err err = ERR_INIT;
    make_hash(first, hash);
    assert_ok(db_token_create(db, &wanted, hash, days, ret_token, &outcome, &err), &err);
    return outcome;
}

static bool find(struct fixture *fixture, unsigned char first, struct db_token_owner *ret_owner)
{
    unsigned char hash[DB_TOKEN_HASH_SIZE];
    struct err err = ERR_INIT;
    bool is_found;
    make_hash(first, hash);
    assert_ok(db_token_find(fixture->producer, hash, ret_owner, &is_found, &err), &err);
    return is_found;
}

static enum db_token_revocation revoke(struct fixture *fixture, const struct db_token *token)
{
    struct uuid id;
    struct db_token revoked;
    enum db_token_revocation outcome;
    struct err err = ERR_INIT;
    assert_true(uuid_from_text(token->token_id, strlen(token->token_id), &id));
    assert_ok(db_token_revoke(fixture->operator, & id, &revoked, &outcome, &err), &err);
    if (outcome != DB_TOKEN_UNKNOWN) {
        assert_string_equal(revoked.token_id, token->token_id);
        assert_int_not_equal(revoked.revoked_us, 0);
    }
    return outcome;
}

static void test_db_token_is_found_while_it_lives(void **state)
{
    struct fixture *fixture = *state;
    struct db_token token;
    struct db_token_owner owner;
    assert_false(find(fixture, 1, &owner));
    assert_int_equal(create(fixture->operator, 1, 0, &token), DB_TOKEN_CREATED);
    assert_true(token.is_live);
    assert_true(find(fixture, 1, &owner));
    assert_string_equal(owner.tenant, "acme");
    assert_int_equal(owner.scopes, SCOPE_SUBMIT | SCOPE_READ);
    assert_int_equal(owner.left_ms, -1);
    assert_false(find(fixture, 2, &owner));
    assert_int_equal(revoke(fixture, &token), DB_TOKEN_REVOKED);
    assert_int_equal(revoke(fixture, &token), DB_TOKEN_WAS_REVOKED);
    assert_false(find(fixture, 1, &owner));
}

static void test_db_token_ends_at_its_time(void **state)
{
    struct fixture *fixture = *state;
    struct db_token token;
    struct db_token_owner owner;
    assert_int_equal(create(fixture->operator, 1, 2, &token), DB_TOKEN_CREATED);
    assert_true(find(fixture, 1, &owner));
    assert_in_range(owner.left_ms, INT64_C(2) * 86400000 - 60000, INT64_C(2) * 86400000);
    postgres_fixture_exec(fixture->postgres, "UPDATE onceward.tokens SET expires_at = clock_timestamp()");
    assert_false(find(fixture, 1, &owner));
}

static void test_db_token_lives_twice_and_no_third_time(void **state)
{
    struct fixture *fixture = *state;
    struct db_token old;
    struct db_token token;
    struct db_token_owner owner;
    assert_int_equal(create(fixture->operator, 1, 0, &old), DB_TOKEN_CREATED);
    assert_int_equal(create(fixture->operator, 2, 0, &token), DB_TOKEN_CREATED);
    assert_int_equal(create(fixture->operator, 3, 0, &token), DB_TOKEN_TWO_LIVE);
    assert_true(find(fixture, 1, &owner) && find(fixture, 2, &owner));
    assert_false(find(fixture, 3, &owner));
    assert_int_equal(revoke(fixture, &old), DB_TOKEN_REVOKED);
    assert_int_equal(create(fixture->operator, 3, 0, &token), DB_TOKEN_CREATED);
    /* One that has expired makes room by itself. */
    postgres_fixture_exec(fixture->postgres, "UPDATE onceward.tokens SET expires_at = clock_timestamp()"
                                             " WHERE get_byte(token_hash, 0) = 2");
    assert_int_equal(create(fixture->operator, 4, 0, &token), DB_TOKEN_CREATED);
    assert_int_equal(postgres_fixture_number(fixture->postgres, "SELECT count(*) FROM onceward.tokens"
                                                                " WHERE revoked_at IS NULL"),
                     2);
    assert_int_equal(postgres_fixture_number(fixture->postgres, "SELECT count(*) FROM onceward.audit"), 5);
}

struct rival {
    struct thread thread;
    struct db *db;
    unsigned char first;
    enum db_token_outcome outcome;
};

static void run_rival(void *context)
{
    struct rival *rival = context;
    struct db_token token;
    rival->outcome = create(rival->db, rival->first, 0, &token);
}

static void test_db_token_lives_twice_whoever_races(void **state)
{
    struct fixture *fixture = *state;
    struct rival rivals[RIVAL_COUNT];
    struct err err = ERR_INIT;
    int created = 0;
    for (unsigned char i = 0; i < RIVAL_COUNT; i++) {
        rivals[i] = (struct rival){.first = i};
        rivals[i].db = db_fixture_open(postgres_fixture_conninfo_as(fixture->postgres, "onceward_operator"));
    }
    for (size_t i = 0; i < RIVAL_COUNT; i++) {
        assert_true(thread_start(&rivals[i].thread, "rival", run_rival, &rivals[i], &err));
    }
    for (size_t i = 0; i < RIVAL_COUNT; i++) {
        thread_join(&rivals[i].thread);
        created += rivals[i].outcome == DB_TOKEN_CREATED;
        db_close(&rivals[i].db);
    }
    assert_int_equal(created, 2);
    assert_int_equal(postgres_fixture_number(fixture->postgres, "SELECT count(*) FROM onceward.tokens"
                                                                " WHERE revoked_at IS NULL"),
                     2);
}

static void test_db_token_lists_by_tenant(void **state)
{
    struct fixture *fixture = *state;
    struct db_token token;
    struct db_token *tokens = NULL;
    size_t count = 0;
    struct err err = ERR_INIT;
    assert_int_equal(create(fixture->operator, 1, 0, &token), DB_TOKEN_CREATED);
    assert_ok(db_token_list(fixture->operator, "other", &tokens, &count, &err), &err);
    assert_int_equal(count, 0);
    free(tokens);
    assert_ok(db_token_list(fixture->operator, NULL, &tokens, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_string_equal(tokens[0].token_id, token.token_id);
    assert_int_equal(tokens[0].scopes, SCOPE_SUBMIT | SCOPE_READ);
    free(tokens);
}

static void test_db_token_refuses_a_name_that_is_none(void **state)
{
    struct fixture *fixture = *state;
    const struct db_token wanted = {.tenant = "a b", .name = "billing", .scopes = SCOPE_READ};
    unsigned char hash[DB_TOKEN_HASH_SIZE];
    struct db_token token;
    enum db_token_outcome outcome;
    struct err err = ERR_INIT;
    make_hash(1, hash);
    assert_false(db_token_create(fixture->operator, & wanted, hash, 0, &token, &outcome, &err));
    assert_string_equal(err.code, "23514");
    assert_int_equal(err.kind, ERR_PERMANENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_db_token_is_found_while_it_lives, setup, teardown),
        cmocka_unit_test_setup_teardown(test_db_token_ends_at_its_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_db_token_lives_twice_and_no_third_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_db_token_lives_twice_whoever_races, setup, teardown),
        cmocka_unit_test_setup_teardown(test_db_token_lists_by_tenant, setup, teardown),
        cmocka_unit_test_setup_teardown(test_db_token_refuses_a_name_that_is_none, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
