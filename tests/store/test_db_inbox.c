/* SPDX-License-Identifier: Apache-2.0
 *
 * The inbox, sources, dead letters and a user's statement on a real database,
 * as the consumer's own role.
 */
#include "cmocka_all.h"

#include <pthread.h>
#include <stdlib.h>

#include "db/db.h"
#include "db/db_dead_letter.h"
#include "db/db_inbox.h"
#include "db/db_sink.h"
#include "db/db_tx.h"
#include "db_fixture.h"
#include "postgres_fixture.h"

struct store {
    struct postgres_fixture *postgres;
    struct db *db;
    struct db *rival;
    int32_t scope_id;
};

static int setup(void **state)
{
    struct store *store = calloc(1, sizeof *store);
    assert_non_null(store);
    *state = store;
    store->postgres = postgres_fixture_new();
    assert_non_null(store->postgres);
    store->db = db_fixture_open(postgres_fixture_conninfo_as(store->postgres, "onceward_consumer"));
    store->rival = db_fixture_open(postgres_fixture_conninfo_as(store->postgres, "onceward_consumer"));
    struct err err = ERR_INIT;
    assert_true(db_inbox_scope(store->db, "c", "live", &store->scope_id, &err));
    return 0;
}

static int teardown(void **state)
{
    struct store *store = *state;
    db_close(&store->rival);
    db_close(&store->db);
    postgres_fixture_free(&store->postgres);
    free(store);
    return 0;
}

/* Rising ids of now. */
static struct db_inbox_item own_item(struct store *store, int n)
{
    static int64_t now_ms;
    if (now_ms == 0) {
        now_ms = postgres_fixture_number(store->postgres, "SELECT (extract(epoch FROM now()) * 1000)::bigint");
    }
    const uint8_t random[UUID_RANDOM_SIZE] = {1, 2, 3};
    return (struct db_inbox_item){.event_id = uuid_v7(now_ms + n, random), .payload_hash = 1000 + n};
}

static struct db_tx *begin(struct db *db)
{
    struct db_tx *tx = NULL;
    struct err err = ERR_INIT;
    assert_true(db_tx_begin(db, &tx, &err));
    return tx;
}

static void commit(struct db_tx **txp)
{
    struct err err = ERR_INIT;
    assert_int_equal(db_tx_commit(txp, &err), DB_TX_COMMITTED);
}

static void test_db_inbox_reports_the_second_claim_as_known(void **state)
{
    struct store *store = *state;
    struct db_inbox_item items[] = {own_item(store, 1), own_item(store, 2), own_item(store, 3)};
    bool is_fresh[3];
    struct db_inbox_answer answers[3];
    struct err err = ERR_INIT;
    items[0].status = DB_INBOX_FAILED;
    struct db_tx *tx = begin(store->db);
    assert_true(db_inbox_claim(tx, store->scope_id, DB_INBOX_OWN, items, 2, is_fresh, &err));
    assert_true(is_fresh[0] && is_fresh[1]);
    commit(&tx);
    tx = begin(store->db);
    assert_true(db_inbox_claim(tx, store->scope_id, DB_INBOX_OWN, items, 3, is_fresh, &err));
    assert_true(!is_fresh[0] && !is_fresh[1] && is_fresh[2]);
    assert_true(db_inbox_known(tx, store->scope_id, DB_INBOX_OWN, items, 3, answers, &err));
    for (size_t i = 0; i < 3; i++) {
        assert_true(answers[i].is_known);
        assert_int_equal(answers[i].payload_hash, items[i].payload_hash);
    }
    commit(&tx);
    assert_int_equal(
        postgres_fixture_number(store->postgres, "SELECT count(*) FROM onceward.inbox WHERE status = 'failed'"), 1);
}

static void test_db_inbox_claims_foreign_ids_per_source(void **state)
{
    struct store *store = *state;
    const struct db_inbox_item items[] = {{.source = "/a", .id = "1", .payload_hash = 5},
                                          {.source = "/a", .id = "2", .payload_hash = 6},
                                          {.source = "/b", .id = "1", .payload_hash = 7}};
    bool is_fresh[3];
    struct db_inbox_answer answers[3];
    struct err err = ERR_INIT;
    struct db_tx *tx = begin(store->db);
    assert_true(db_inbox_claim(tx, store->scope_id, DB_INBOX_FOREIGN, items, 2, is_fresh, &err));
    assert_true(db_inbox_claim(tx, store->scope_id, DB_INBOX_FOREIGN, items, 3, is_fresh, &err));
    assert_true(!is_fresh[0] && !is_fresh[1] && is_fresh[2]);
    assert_true(db_inbox_known(tx, store->scope_id, DB_INBOX_FOREIGN, items, 3, answers, &err));
    assert_int_equal(answers[2].payload_hash, 7);
    commit(&tx);
}

struct waiter {
    struct store *store;
    const struct db_inbox_item *item;
    bool is_fresh;
    bool is_known;
    int64_t hash;
};

static void *claim_in_thread(void *context)
{
    struct waiter *waiter = context;
    struct err err = ERR_INIT;
    struct db_inbox_answer answer = {.is_known = false};
    struct db_tx *tx = NULL;
    bool is_good =
        db_tx_begin(waiter->store->rival, &tx, &err) &&
        db_inbox_claim(tx, waiter->store->scope_id, DB_INBOX_OWN, waiter->item, 1, &waiter->is_fresh, &err) &&
        db_inbox_known(tx, waiter->store->scope_id, DB_INBOX_OWN, waiter->item, 1, &answer, &err);
    waiter->is_known = is_good && answer.is_known;
    waiter->hash = answer.payload_hash;
    db_tx_rollback(&tx);
    return NULL;
}

/* Claims, lets a rival wait on the claim, and ends as told. */
static struct waiter race(struct store *store, int n, bool commits)
{
    struct db_inbox_item mine = own_item(store, n);
    struct db_inbox_item theirs = mine;
    theirs.payload_hash = 1;
    struct waiter waiter = {.store = store, .item = &theirs};
    struct err err = ERR_INIT;
    bool is_fresh = false;
    struct db_tx *tx = begin(store->db);
    assert_true(db_inbox_claim(tx, store->scope_id, DB_INBOX_OWN, &mine, 1, &is_fresh, &err));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, claim_in_thread, &waiter), 0);
    while (postgres_fixture_number(store->postgres, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 0) {
    }
    if (commits) {
        commit(&tx);
    } else {
        db_tx_rollback(&tx);
    }
    pthread_join(thread, NULL);
    return waiter;
}

static void test_db_inbox_shows_the_rivals_hash_after_the_wait(void **state)
{
    struct waiter waiter = race(*state, 50, true);
    assert_false(waiter.is_fresh);
    assert_true(waiter.is_known);
    assert_int_equal(waiter.hash, 1050);
}

static void test_db_inbox_takes_over_when_the_rival_rolls_back(void **state)
{
    struct waiter waiter = race(*state, 60, false);
    assert_true(waiter.is_fresh);
    assert_int_equal(waiter.hash, 1);
}

static void test_db_inbox_pins_a_source_at_first_sight(void **state)
{
    struct store *store = *state;
    struct err err = ERR_INIT;
    char own[DB_INBOX_SOURCE_SIZE];
    enum db_inbox_source kind;
    assert_true(db_inbox_own_source(store->db, own, &err));
    assert_string_equal(own, "/onceward");
    assert_true(db_inbox_pin_source(store->db, "c", "/s", DB_INBOX_FOREIGN, &kind, &err));
    assert_int_equal(kind, DB_INBOX_FOREIGN);
    assert_true(db_inbox_pin_source(store->db, "c", "/s", DB_INBOX_OWN, &kind, &err));
    assert_int_equal(kind, DB_INBOX_FOREIGN);
}

static void test_db_inbox_tells_its_range(void **state)
{
    struct store *store = *state;
    struct err err = ERR_INIT;
    struct db_inbox_range range;
    struct db_inbox_item item = own_item(store, 0);
    assert_true(db_inbox_range(store->db, &range, &err));
    assert_true(range.has_room);
    assert_true(uuid_compare(&range.first, &item.event_id) < 0 && uuid_compare(&item.event_id, &range.end) < 0);
}

static void test_db_dead_letter_keeps_any_bytes_once(void **state)
{
    struct store *store = *state;
    const unsigned char hash[DB_DEAD_LETTER_HASH_SIZE] = {9};
    const struct event_header headers[] = {{"\xff", {"a\0b", 3}}, {"n", {NULL, 0}}, {"e", {"", 0}}};
    const struct db_dead_letter letter = {.consumer = "c",
                                          .scope = "live",
                                          .topic = "t",
                                          .offset = 5,
                                          .hash = {hash, sizeof hash},
                                          .timestamp_ms = INT64_MAX,
                                          .value = {"\0\xff", 2},
                                          .headers = headers,
                                          .header_count = COUNT_OF(headers),
                                          .reason_code = "ce_id_missing",
                                          .reason = "why"};
    struct err err = ERR_INIT;
    struct db_tx *tx = begin(store->db);
    assert_true(db_dead_letter_put(tx, &letter, &err));
    assert_true(db_dead_letter_put(tx, &letter, &err));
    commit(&tx);
    assert_int_equal(
        postgres_fixture_number(store->postgres,
                                "SELECT count(*) FROM onceward.dead_letters WHERE value = '\\x00ff' AND key IS "
                                "NULL AND header_names[1] = '\\xff' AND header_values[1] = '\\x610062' AND "
                                "header_values[2] IS NULL AND header_values[3] = '' AND record_time IS NULL"),
        1);
}

/* One database for all rows. */
static struct store *shared;

static int sink_teardown(void **state)
{
    (void)state;
    void *store = shared;
    return teardown(&store);
}

struct verdict_case {
    const char *name;
    const char *statement;
    const char *code;
    enum err_kind kind;
};

static const struct verdict_case verdict_cases[] = {
    {"a value that is no number", "INSERT INTO t SELECT (value ->> 'n')::int FROM events", "22P02", ERR_PERMANENT},
    {"a constraint", "INSERT INTO t SELECT -1 FROM events", "23514", ERR_PERMANENT},
    {"an exception of the user's", "INSERT INTO t SELECT raise() FROM events", "P0001", ERR_PERMANENT},
    {"a table that is missing", "INSERT INTO nowhere SELECT 1 FROM events", "42P01", ERR_TRANSIENT},
    {"a privilege that is missing", "INSERT INTO closed SELECT 1 FROM events", "42501", ERR_TRANSIENT},
    {"a mistake in the statement", "INSERT INTO t SELECT FROM WHERE", "42601", ERR_TRANSIENT},
};

static void test_db_sink_tells_whose_fault_it_is(void **state)
{
    const struct verdict_case *row = *state;
    struct err err = ERR_INIT;
    struct db *sink_db = db_fixture_open(postgres_fixture_conninfo_as(shared->postgres, "onceward_consumer"));
    struct db_sink *sink = db_sink_new(row->statement, DB_SINK_ALL, &err);
    const struct event event = {.event_id = "1", .value = {"{\"n\":\"x\"}", 9}};
    const struct db_sink_event sink_event = {.event = &event};
    struct db_tx *tx = begin(sink_db);
    assert_false(db_sink_apply(tx, sink, &sink_event, 1, &err));
    assert_string_equal(err.code, row->code);
    assert_int_equal(err.kind, row->kind);
    db_tx_rollback(&tx);
    tx = begin(sink_db);
    err_clear(&err);
    assert_int_equal(db_sink_commit(&tx, sink, &sink_event, 1, &err), DB_TX_FAILED);
    assert_null(tx);
    assert_string_equal(err.code, row->code);
    assert_int_equal(err.kind, row->kind);
    db_close(&sink_db); /* A statement's address is its name there. */
    db_sink_free(&sink);
}

/* What only the commit finds out is nobody's fault, though its code says constraint. */
static void test_db_sink_blames_no_event_for_the_commit(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct db *sink_db = db_fixture_open(postgres_fixture_conninfo_as(shared->postgres, "onceward_consumer"));
    struct db_sink *sink = db_sink_new("INSERT INTO late SELECT (value ->> 'n')::int FROM events", DB_SINK_ALL, &err);
    const struct event event = {.event_id = "1", .value = {"{\"n\":1}", 7}};
    const struct db_sink_event sink_event = {.event = &event};
    struct db_tx *tx = begin(sink_db);
    assert_int_equal(db_sink_commit(&tx, sink, &sink_event, 1, &err), DB_TX_COMMITTED);
    tx = begin(sink_db);
    assert_int_equal(db_sink_commit(&tx, sink, &sink_event, 1, &err), DB_TX_FAILED); /* The same number again. */
    assert_string_equal(err.code, "23505");
    assert_int_equal(err.kind, ERR_TRANSIENT);
    assert_int_equal(postgres_fixture_number(shared->postgres, "SELECT count(*) FROM late"), 1);
    db_close(&sink_db);
    db_sink_free(&sink);
}

static int sink_setup(void **state)
{
    (void)state; /* Each test's own is its row of the table. */
    void *store = NULL;
    int status = setup(&store);
    shared = store;
    postgres_fixture_exec(
        shared->postgres,
        "CREATE TABLE late (n int UNIQUE DEFERRABLE INITIALLY DEFERRED); GRANT INSERT ON late TO onceward_consumer; "
        "CREATE TABLE t (n int CHECK (n > 0)); GRANT INSERT ON t TO onceward_consumer; CREATE TABLE closed "
        "(n int); CREATE FUNCTION raise() RETURNS int LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; "
        "END'");
    return status;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_db_inbox_reports_the_second_claim_as_known),
        cmocka_unit_test(test_db_inbox_claims_foreign_ids_per_source),
        cmocka_unit_test(test_db_inbox_shows_the_rivals_hash_after_the_wait),
        cmocka_unit_test(test_db_inbox_takes_over_when_the_rival_rolls_back),
        cmocka_unit_test(test_db_inbox_pins_a_source_at_first_sight),
        cmocka_unit_test(test_db_inbox_tells_its_range),
        cmocka_unit_test(test_db_dead_letter_keeps_any_bytes_once),
    };
    struct CMUnitTest sink_tests[COUNT_OF(verdict_cases)];
    FILL_CASES(sink_tests, test_db_sink_tells_whose_fault_it_is, verdict_cases);
    static const struct CMUnitTest commit_tests[] = {cmocka_unit_test(test_db_sink_blames_no_event_for_the_commit)};
    int failed = cmocka_run_group_tests_name("db_sink", sink_tests, sink_setup, sink_teardown);
    failed += cmocka_run_group_tests_name("db_sink_commit", commit_tests, sink_setup, sink_teardown);
    return failed + cmocka_run_group_tests_name("db_inbox", tests, setup, teardown);
}
