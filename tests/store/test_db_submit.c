/* SPDX-License-Identifier: Apache-2.0
 *
 * The submit transaction against a real server, as the producer's role: what
 * is busy, what is seen under the lock, and that the primary key decides.
 */
#include "submit_fixture.h"

#include <string.h>

#include "db/db_request.h"

/* ---- small steps ----------------------------------------------------------------------------------------------- */

static struct db_submit_key key_of(int number, const char *create_type)
{
    return (struct db_submit_key){.tenant = TENANT, .request_id = id_of(number), .create_type = create_type};
}

static struct db_submit_write creation_of(size_t index)
{
    return (struct db_submit_write){
        .index = index, .creates = true, .data = {"{}", 2}, .fingerprint = hash, .created_us = 1000000};
}

static bool finish(struct db_submit **submitp, const struct db_submit_write *write)
{
    bool was_queued = false;
    struct err err = ERR_INIT;
    enum db_tx_outcome outcome = db_submit_commit(submitp, write, 1, &was_queued, &err);
    if (outcome != DB_TX_COMMITTED) {
        fail_msg("%d %s: %s", outcome, err.code, err.text);
    }
    return was_queued;
}

static void create(struct fixture *fixture, int number)
{
    struct db_submit_key key = key_of(number, "demo");
    struct db_submit *submit = begin(fixture->one, &key, 1);
    assert_false(db_submit_found(submit, 0)->is_busy);
    assert_false(db_submit_found(submit, 0)->exists);
    struct db_submit_write write = creation_of(0);
    assert_false(finish(&submit, &write));
}

static struct db_submit_document document_of(const char *name)
{
    return (struct db_submit_document){
        .row = {.document_id = name, .name = name, .media_type = "text/plain", .size = 2, .sha256 = hash},
        .content = {"ab", 2},
    };
}

static struct event event_of(const char *event_id, const char *key)
{
    return (struct event){.event_id = event_id,
                          .tenant = TENANT,
                          .topic = "t",
                          .key = key,
                          .type = "demo",
                          .source = "/onceward",
                          .time = "",
                          .value = {"{}", 2}};
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_db_submit_shows_what_is_there(void **state)
{
    struct fixture *fixture = *state;
    create(fixture, 1);
    struct db_submit_key keys[] = {key_of(1, NULL), key_of(2, "demo"), key_of(3, "unheard"), key_of(4, NULL)};
    struct db_submit *submit = begin(fixture->two, keys, 4);
    const struct db_submit_found *found = db_submit_found(submit, 0);
    assert_true(found->exists && !found->is_busy && !found->is_submitted);
    assert_string_equal(found->type, "demo");
    assert_int_equal(found->data.size, 2);
    assert_memory_equal(found->fingerprint.data, hash, sizeof hash);
    assert_int_equal(found->created_us, 1000000);
    assert_string_equal(found->topic, "t");
    assert_string_equal(found->dataschema, "schema:1");
    assert_int_equal(found->event_bytes_max, 5000);
    assert_false(db_submit_found(submit, 1)->exists);
    assert_string_equal(db_submit_found(submit, 1)->topic, "t");
    assert_null(db_submit_found(submit, 2)->topic);
    assert_false(db_submit_found(submit, 3)->exists);
    assert_string_equal(db_submit_source(submit), "/onceward");
    db_submit_rollback(&submit);
    assert_null(submit);
}

static void test_db_submit_a_held_request_is_busy_and_its_neighbours_are_not(void **state)
{
    struct fixture *fixture = *state;
    create(fixture, 1);
    create(fixture, 2);
    struct db_submit_key held = key_of(1, NULL);
    struct db_submit *holder = begin(fixture->one, &held, 1);
    struct db_submit_key keys[] = {key_of(1, NULL), key_of(2, NULL)};
    struct db_submit *submit = begin(fixture->two, keys, 2);
    assert_true(db_submit_found(submit, 0)->is_busy);
    assert_false(db_submit_found(submit, 1)->is_busy);
    db_submit_rollback(&submit);
    db_submit_rollback(&holder);
}

static void test_db_submit_a_new_id_belongs_to_one_rival(void **state)
{
    struct fixture *fixture = *state;
    struct db_submit_key keys[] = {key_of(1, "demo"), key_of(2, "demo")};
    struct db_submit *first = begin(fixture->one, keys, 1);
    struct db_submit *second = begin(fixture->two, keys, 2);
    assert_false(db_submit_found(first, 0)->is_busy);
    assert_true(db_submit_found(second, 0)->is_busy);
    assert_false(db_submit_found(second, 1)->is_busy);
    db_submit_rollback(&second);
    struct db_submit_write write = creation_of(0);
    (void)finish(&first, &write);
    second = begin(fixture->two, keys, 1);
    assert_true(db_submit_found(second, 0)->exists);
    db_submit_rollback(&second);
}

static void test_db_submit_sees_the_document_of_whoever_held_the_request_before(void **state)
{
    struct fixture *fixture = *state;
    create(fixture, 1);
    struct db_submit_key key = key_of(1, NULL);
    struct db_submit *adder = begin(fixture->one, &key, 1);
    struct db_submit *submit = begin(fixture->two, &key, 1);
    assert_true(db_submit_found(submit, 0)->is_busy); /* Not: without the document. */
    db_submit_rollback(&submit);
    const struct db_submit_document documents[] = {document_of("a"), document_of("b")};
    struct db_submit_write write = {.index = 0, .documents = documents, .document_count = 2};
    (void)finish(&adder, &write);
    submit = begin(fixture->two, &key, 1);
    const struct db_submit_found *found = db_submit_found(submit, 0);
    assert_int_equal(found->document_count, 2);
    assert_string_equal(found->documents[0].document_id, "a");
    assert_string_equal(found->documents[1].name, "b");
    db_submit_rollback(&submit);
}

static void test_db_submit_queues_an_event_once(void **state)
{
    struct fixture *fixture = *state;
    create(fixture, 1);
    struct db_submit_key key = key_of(1, NULL);
    struct event event = event_of("", "k");
    struct db_submit_write write = {.index = 0, .event = &event, .event_id = id_of(50), .submitted_us = 77};
    struct db_submit *submit = begin(fixture->one, &key, 1);
    assert_true(finish(&submit, &write));
    submit = begin(fixture->two, &key, 1);
    assert_true(db_submit_found(submit, 0)->is_submitted);
    const struct uuid event_id = id_of(50);
    assert_int_equal(uuid_compare(&db_submit_found(submit, 0)->event_id, &event_id), 0);
    assert_int_equal(db_submit_found(submit, 0)->submitted_us, 77);
    db_submit_rollback(&submit);
    assert_int_equal(count(fixture, "outbox"), 1);
}

/* Somebody who does not take the lock: the primary key lets one of both in, and the other writes no event. */
static void test_db_submit_the_primary_key_decides_and_without_a_submission_there_is_no_event(void **state)
{
    struct fixture *fixture = *state;
    create(fixture, 1);
    struct db_submit_key key = key_of(1, NULL);
    struct event event = event_of("", "k");
    struct db_submit_write write = {.index = 0, .event = &event, .event_id = id_of(51), .submitted_us = 77};
    struct db_submit *submit = begin(fixture->one, &key, 1);
    assert_false(db_submit_found(submit, 0)->is_submitted);
    postgres_fixture_exec(fixture->postgres,
                          "INSERT INTO onceward.submissions "
                          "SELECT tenant, request_id, gen_random_uuid(), now() FROM onceward.requests");
    assert_false(finish(&submit, &write));
    assert_int_equal(count(fixture, "outbox"), 0);
    assert_int_equal(count(fixture, "submissions"), 1);
}

static void test_db_submit_writes_a_full_batch_in_its_order(void **state)
{
    struct fixture *fixture = *state;
    static struct db_submit_key keys[DB_SUBMIT_COUNT_MAX];
    static struct db_submit_write writes[DB_SUBMIT_COUNT_MAX];
    static struct event events[DB_SUBMIT_COUNT_MAX];
    static char names[DB_SUBMIT_COUNT_MAX][20];
    static bool was_queued[DB_SUBMIT_COUNT_MAX];
    struct err err = ERR_INIT;
    for (int i = 0; i < DB_SUBMIT_COUNT_MAX; i++) {
        snprintf(names[i], sizeof names[i], "key %03d", i);
        keys[i] = key_of(i, "demo");
        events[i] = event_of("", names[i]);
        writes[i] = creation_of((size_t)i);
        writes[i].event = &events[i];
        writes[i].event_id = id_of(i);
        writes[i].event_id.bytes[8] = 0x81;
    }
    struct db_submit *submit = begin(fixture->one, keys, DB_SUBMIT_COUNT_MAX);
    assert_int_equal(db_submit_commit(&submit, writes, DB_SUBMIT_COUNT_MAX, was_queued, &err), DB_TX_COMMITTED);
    for (int i = 0; i < DB_SUBMIT_COUNT_MAX; i++) {
        assert_true(was_queued[i]);
    }
    assert_int_equal(postgres_fixture_number(fixture->postgres,
                                             "SELECT count(*) FROM (SELECT key, lag(key) OVER (ORDER BY id) AS before "
                                             "FROM onceward.outbox) o WHERE before > key"),
                     0);
    assert_int_equal(count(fixture, "outbox"), DB_SUBMIT_COUNT_MAX);
    assert_int_equal(postgres_fixture_number(fixture->postgres, "SELECT count(DISTINCT xid) FROM onceward.outbox"), 1);
}

static void test_db_submit_a_statement_that_fails_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct db_submit_key keys[] = {key_of(1, "demo"), key_of(2, "demo")};
    struct db_submit_write writes[] = {creation_of(0), creation_of(1)};
    const struct db_submit_document documents[] = {document_of("same"), document_of("same")};
    bool was_queued[2];
    struct err err = ERR_INIT;
    writes[1].documents = documents;
    writes[1].document_count = 2;
    struct db_submit *submit = begin(fixture->one, keys, 2);
    assert_int_equal(db_submit_commit(&submit, writes, 2, was_queued, &err), DB_TX_FAILED);
    assert_string_equal(err.code, "23505");
    assert_int_equal(count(fixture, "requests"), 0);
    assert_true(db_is_usable(fixture->one));
    create(fixture, 1);
}

static void test_db_submit_another_tenant_is_another_request(void **state)
{
    struct fixture *fixture = *state;
    create(fixture, 1);
    struct db_submit_key key = key_of(1, NULL);
    key.tenant = "other";
    struct db_submit *submit = begin(fixture->one, &key, 1);
    assert_false(db_submit_found(submit, 0)->exists);
    db_submit_rollback(&submit);
    struct db_request_page *page = NULL;
    struct err err = ERR_INIT;
    assert_true(db_request_get(fixture->one, "other", &key.request_id, &page, &err));
    assert_int_equal(db_request_page_count(page), 0);
    db_request_page_free(&page);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_db_submit_shows_what_is_there),
        TEST(test_db_submit_a_held_request_is_busy_and_its_neighbours_are_not),
        TEST(test_db_submit_a_new_id_belongs_to_one_rival),
        TEST(test_db_submit_sees_the_document_of_whoever_held_the_request_before),
        TEST(test_db_submit_queues_an_event_once),
        TEST(test_db_submit_the_primary_key_decides_and_without_a_submission_there_is_no_event),
        TEST(test_db_submit_writes_a_full_batch_in_its_order),
        TEST(test_db_submit_a_statement_that_fails_leaves_nothing),
        TEST(test_db_submit_another_tenant_is_another_request),
    };
    return cmocka_run_group_tests_name("db_submit", tests, NULL, NULL);
}
