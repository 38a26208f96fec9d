/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys against a real server, as the producer's role: who gets one, what is
 * seen of its answer, and that an answer is kept with its effect or not at all.
 */
#include "submit_fixture.h"

#include <string.h>

#include "base/clock.h"
#include "db/db_idempotency.h"

/* ---- small steps ----------------------------------------------------------------------------------------------- */

/* A call that creates request number under a key. */
static struct db_submit_key key_of(int number, const char *key)
{
    return (struct db_submit_key){
        .tenant = TENANT, .request_id = id_of(number), .create_type = "demo", .is_fresh = true, .idempotency_key = key};
}

static struct db_idempotency_write answer_of(const char *body)
{
    return (struct db_idempotency_write){.fingerprint = hash,
                                         .components = "body:00",
                                         .status = 201,
                                         .headers = "Content-Type: text/plain\n",
                                         .body = {body, strlen(body)},
                                         .resource = "/requests/x",
                                         .created_us = 5,
                                         .expires_us = clock_realtime_us() + INT64_C(3600) * 1000000};
}

static enum db_tx_outcome keep(struct db_submit **submitp, const struct db_idempotency_write *answer,
                               const struct event *event, struct err *err)
{
    bool was_queued = false;
    const struct db_submit_write write = {.index = 0,
                                          .creates = true,
                                          .fingerprint = hash,
                                          .created_us = 5,
                                          .event = event,
                                          .event_id = id_of(99),
                                          .submitted_us = 5,
                                          .answer = answer};
    return db_submit_commit(submitp, &write, 1, &was_queued, err);
}

static void keep_well(struct db_submit **submitp, const struct db_idempotency_write *answer)
{
    struct err err = ERR_INIT;
    assert_ok(keep(submitp, answer, NULL, &err) == DB_TX_COMMITTED, &err);
}

/* Makes a request under a key in a transaction of its own. */
static void keep_alone(struct fixture *fixture, int number, const char *key, const char *body)
{
    struct db_submit_key keys = key_of(number, key);
    struct db_submit *submit = begin(fixture->one, &keys, 1);
    struct db_idempotency_write answer = answer_of(body);
    keep_well(&submit, &answer);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_db_idempotency_shows_what_was_kept(void **state)
{
    struct fixture *fixture = *state;
    keep_alone(fixture, 1, "k", "a \xff answer");
    struct db_submit_key keys[] = {key_of(2, "k"), key_of(3, "new"), key_of(4, NULL)};
    struct db_submit *submit = begin(fixture->two, keys, 3);
    const struct db_idempotency_found *answer = &db_submit_found(submit, 0)->answer;
    assert_true(answer->exists && !answer->is_busy && !answer->is_expired);
    assert_memory_equal(answer->fingerprint.data, hash, sizeof hash);
    assert_string_equal(answer->components, "body:00");
    assert_int_equal(answer->status, 201);
    assert_string_equal(answer->headers, "Content-Type: text/plain\n");
    assert_int_equal(answer->body.size, strlen("a \xff answer"));
    assert_memory_equal(answer->body.data, "a \xff answer", answer->body.size);
    assert_string_equal(answer->resource, "/requests/x");
    assert_int_equal(answer->created_us, 5);
    for (size_t i = 1; i < 3; i++) {
        answer = &db_submit_found(submit, i)->answer;
        assert_false(answer->exists || answer->is_busy);
    }
    db_submit_rollback(&submit);
}

static void test_db_idempotency_a_key_belongs_to_one_rival_and_its_neighbours_are_free(void **state)
{
    struct fixture *fixture = *state;
    struct db_submit_key first_key = key_of(1, "k");
    struct db_submit *first = begin(fixture->one, &first_key, 1);
    assert_false(db_submit_found(first, 0)->answer.is_busy);
    struct db_submit_key keys[] = {key_of(2, "k"), key_of(3, "other"), key_of(4, NULL)};
    struct db_submit *second = begin(fixture->two, keys, 3);
    assert_true(db_submit_found(second, 0)->answer.is_busy);
    assert_false(db_submit_found(second, 1)->answer.is_busy);
    assert_false(db_submit_found(second, 2)->answer.is_busy);
    db_submit_rollback(&second);
    struct db_idempotency_write answer = answer_of("x");
    keep_well(&first, &answer);
    second = begin(fixture->two, keys, 3);
    assert_true(db_submit_found(second, 0)->answer.exists && !db_submit_found(second, 0)->answer.is_busy);
    db_submit_rollback(&second);
}

static void test_db_idempotency_a_valid_answer_is_read_whoever_holds_it(void **state)
{
    struct fixture *fixture = *state;
    keep_alone(fixture, 1, "k", "x");
    struct db_submit_key key = key_of(2, "k");
    struct db_submit *first = begin(fixture->one, &key, 1);
    struct db_submit *second = begin(fixture->two, &key, 1);
    assert_true(db_submit_found(second, 0)->answer.exists && !db_submit_found(second, 0)->answer.is_busy);
    db_submit_rollback(&first);
    db_submit_rollback(&second);
}

static void test_db_idempotency_a_large_answer_is_read_alone_only(void **state)
{
    struct fixture *fixture = *state;
    char *body = malloc(DB_IDEMPOTENCY_BODY_SIZE + 2);
    memset(body, 'x', DB_IDEMPOTENCY_BODY_SIZE + 1);
    body[DB_IDEMPOTENCY_BODY_SIZE + 1] = '\0';
    keep_alone(fixture, 1, "large", body);
    body[DB_IDEMPOTENCY_BODY_SIZE] = '\0';
    keep_alone(fixture, 2, "just", body);
    free(body);
    struct db_submit_key keys[] = {key_of(3, "large"), key_of(4, "just")};
    struct db_submit *submit = begin(fixture->two, keys, 2);
    assert_true(db_submit_found(submit, 0)->answer.exists);
    assert_null(db_submit_found(submit, 0)->answer.body.data);
    assert_int_equal(db_submit_found(submit, 1)->answer.body.size, DB_IDEMPOTENCY_BODY_SIZE);
    db_submit_rollback(&submit);
    submit = begin(fixture->two, keys, 1);
    assert_int_equal(db_submit_found(submit, 0)->answer.body.size, DB_IDEMPOTENCY_BODY_SIZE + 1);
    db_submit_rollback(&submit);
}

static void test_db_idempotency_an_expired_answer_is_replaced_by_one_rival(void **state)
{
    struct fixture *fixture = *state;
    keep_alone(fixture, 1, "k", "old");
    postgres_fixture_exec(fixture->postgres, "UPDATE onceward.idempotency_keys SET expires_at = now()");
    struct db_submit_key key = key_of(2, "k");
    struct db_submit *first = begin(fixture->one, &key, 1);
    assert_true(db_submit_found(first, 0)->answer.is_expired && !db_submit_found(first, 0)->answer.is_busy);
    struct db_submit *second = begin(fixture->two, &key, 1);
    assert_true(db_submit_found(second, 0)->answer.is_expired && db_submit_found(second, 0)->answer.is_busy);
    db_submit_rollback(&second);
    struct db_idempotency_write answer = answer_of("new");
    keep_well(&first, &answer);
    second = begin(fixture->two, &key, 1);
    assert_false(db_submit_found(second, 0)->answer.is_expired);
    assert_memory_equal(db_submit_found(second, 0)->answer.body.data, "new", 3);
    db_submit_rollback(&second);
    assert_int_equal(count(fixture, "idempotency_keys"), 1);
}

/* Somebody who does not take the lock, as a version with another one: the effect is taken back with the answer. */
static void test_db_idempotency_a_key_that_was_taken_meanwhile_takes_everything_back(void **state)
{
    struct fixture *fixture = *state;
    struct db_submit_key key = key_of(1, "k");
    struct db_submit *submit = begin(fixture->one, &key, 1);
    postgres_fixture_exec(
        fixture->postgres,
        "INSERT INTO onceward.idempotency_keys (tenant, key, fingerprint, components, status, headers, "
        "body, expires_at) VALUES ('default', 'k', sha256(''), '', 200, '', '', now() + interval '1 h')");
    struct db_idempotency_write answer = answer_of("mine");
    struct err err = ERR_INIT;
    assert_int_equal(keep(&submit, &answer, NULL, &err), DB_TX_FAILED);
    assert_int_equal(err.kind, ERR_TRANSIENT);
    assert_string_equal(err.code, "idempotency_raced");
    assert_int_equal(count(fixture, "requests"), 0);
    submit = begin(fixture->one, &key, 1);
    assert_true(db_submit_found(submit, 0)->answer.exists);
    db_submit_rollback(&submit);
}

/* The same for an answer that speaks of an event, when somebody else's event got the submission. */
static void test_db_idempotency_an_answer_that_is_not_true_takes_everything_back(void **state)
{
    struct fixture *fixture = *state;
    struct db_submit_key key = key_of(1, "k");
    struct db_submit *submit = begin(fixture->one, &key, 1);
    postgres_fixture_exec(fixture->postgres, "INSERT INTO onceward.submissions VALUES ('default', "
                                             "'01900000-0000-7000-8000-000000000001', gen_random_uuid(), now())");
    struct event event = {
        .tenant = TENANT, .topic = "t", .key = "k", .type = "demo", .source = "/s", .value = {"{}", 2}};
    struct uuid event_id = id_of(99);
    struct db_idempotency_write answer = answer_of("queued");
    answer.event_id = &event_id;
    struct err err = ERR_INIT;
    assert_int_equal(keep(&submit, &answer, &event, &err), DB_TX_FAILED);
    assert_string_equal(err.code, "idempotency_raced");
    assert_int_equal(count(fixture, "idempotency_keys") + count(fixture, "outbox") + count(fixture, "requests"), 0);
}

static void get(struct fixture *fixture, const char *key, struct db_idempotency_row *row)
{
    struct err err = ERR_INIT;
    assert_ok(db_idempotency_get(fixture->two, TENANT, key, row, &err), &err);
}

static void test_db_idempotency_get_tells_each_state(void **state)
{
    struct fixture *fixture = *state;
    struct db_idempotency_row row;
    get(fixture, "k", &row);
    assert_int_equal(row.state, DB_IDEMPOTENCY_NONE);
    struct db_submit_key key = key_of(1, "k");
    struct db_submit *submit = begin(fixture->one, &key, 1);
    get(fixture, "k", &row);
    assert_int_equal(row.state, DB_IDEMPOTENCY_RUNNING);
    struct db_idempotency_write answer = answer_of("x");
    keep_well(&submit, &answer);
    get(fixture, "k", &row);
    assert_int_equal(row.state, DB_IDEMPOTENCY_DONE);
    assert_int_equal(row.status, 201);
    assert_string_equal(row.resource, "/requests/x");
    assert_false(row.has_event_id);
    postgres_fixture_exec(fixture->postgres, "UPDATE onceward.idempotency_keys SET expires_at = now()");
    get(fixture, "k", &row);
    assert_int_equal(row.state, DB_IDEMPOTENCY_EXPIRED);
}

static int64_t reap(struct db *db, int64_t kept_s, int count_max)
{
    struct err err = ERR_INIT;
    int64_t reaped = -1;
    assert_ok(db_idempotency_reap(db, kept_s, count_max, &reaped, &err), &err);
    return reaped;
}

static void test_db_idempotency_reap_deletes_what_expired_in_bites(void **state)
{
    struct fixture *fixture = *state;
    postgres_fixture_exec(
        fixture->postgres,
        "INSERT INTO onceward.idempotency_keys (tenant, key, fingerprint, components, status, headers, "
        "body, expires_at) SELECT 't', n, sha256(''), '', 200, '', '', now() - n * interval '1 min' "
        "FROM generate_series(-4, 10) n");
    assert_int_equal(reap(fixture->one, 330, 3), 3); /* 8, 9 and 10 expired first. */
    assert_int_equal(postgres_fixture_number(fixture->postgres, "SELECT max(key::int) FROM onceward.idempotency_keys"),
                     7);
    assert_int_equal(reap(fixture->one, 330, 3), 2);
    assert_int_equal(reap(fixture->one, 330, 3), 0);
    assert_int_equal(reap(fixture->one, 0, 100), 6);
    assert_int_equal(count(fixture, "idempotency_keys"), 4);
}

static void test_db_idempotency_reap_is_one_processs_at_a_time(void **state)
{
    struct fixture *fixture = *state;
    keep_alone(fixture, 1, "k", "x");
    postgres_fixture_exec(fixture->postgres, "UPDATE onceward.idempotency_keys SET expires_at = now()");
    struct db_tx *tx = NULL;
    struct err err = ERR_INIT;
    assert_ok(db_tx_begin(fixture->one, &tx, &err), &err);
    assert_int_equal(reap(fixture->one, 3600, 100), 0);
    assert_int_equal(reap(fixture->two, 0, 100), 0);
    db_tx_rollback(&tx);
    assert_int_equal(reap(fixture->two, 0, 100), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_db_idempotency_shows_what_was_kept),
        TEST(test_db_idempotency_a_key_belongs_to_one_rival_and_its_neighbours_are_free),
        TEST(test_db_idempotency_a_valid_answer_is_read_whoever_holds_it),
        TEST(test_db_idempotency_a_large_answer_is_read_alone_only),
        TEST(test_db_idempotency_an_expired_answer_is_replaced_by_one_rival),
        TEST(test_db_idempotency_a_key_that_was_taken_meanwhile_takes_everything_back),
        TEST(test_db_idempotency_an_answer_that_is_not_true_takes_everything_back),
        TEST(test_db_idempotency_get_tells_each_state),
        TEST(test_db_idempotency_reap_deletes_what_expired_in_bites),
        TEST(test_db_idempotency_reap_is_one_processs_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
