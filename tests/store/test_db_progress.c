/* SPDX-License-Identifier: Apache-2.0
 *
 * The cursor log on a real database: who moves, who is fenced, what is adopted,
 * and the twin without the guard by seq.
 */
#include "cmocka_all.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/rand.h"
#include "db/db.h"
#include "db/db_inbox.h"
#include "db/db_progress.h"
#include "db/db_tx.h"
#include "db_private.h"
#include "db_fixture.h"
#include "postgres_fixture.h"

#define CLUSTER "cluster-1"

struct store {
    struct db_progress_self one;
    struct db_progress_self other;
};

/* One database for all; every test has a consumer of its own. */
static struct postgres_fixture *postgres;
static struct db *db;

static const struct db_progress_place place = {.topic = "orders", .partition = 3};

static int group_setup(void **state)
{
    (void)state;
    postgres = postgres_fixture_new();
    assert_non_null(postgres);
    db = db_fixture_open(postgres_fixture_conninfo_as(postgres, "onceward_consumer"));
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    db_close(&db);
    postgres_fixture_free(&postgres);
    return 0;
}

static int setup(void **state)
{
    static struct store store;
    static char consumer[8];
    static int count;
    snprintf(consumer, sizeof consumer, "c%d", count++ % 1000);
    store.one = (struct db_progress_self){.consumer = consumer, .scope = "live", .owner = "one"};
    store.other = (struct db_progress_self){.consumer = consumer, .scope = "live", .owner = "other"};
    rand_bytes(store.one.incarnation.bytes, sizeof store.one.incarnation.bytes);
    rand_bytes(store.other.incarnation.bytes, sizeof store.other.incarnation.bytes);
    postgres_fixture_exec(postgres, "TRUNCATE onceward.consumer_progress");
    const int64_t start = 100;
    struct err err = ERR_INIT;
    assert_true(db_progress_register(db, &store.one, &place, &start, 1, CLUSTER, &err));
    *state = &store;
    return 0;
}

static struct db_progress_row take(const struct db_progress_self *self)
{
    struct db_progress_row row;
    bool is_taken = false;
    struct err err = ERR_INIT;
    assert_true(db_progress_take(db, self, &place, 1, &row, &is_taken, &err));
    assert_true(is_taken);
    return row;
}

static struct db_progress_move move_of(const struct db_progress_row *row, int64_t next_offset)
{
    struct db_progress_move move = {.place = place,
                                    .seq = row->seq,
                                    .attempt = row->attempt,
                                    .next_offset = next_offset,
                                    .last_offset = next_offset - 1,
                                    .record_count = 5};
    rand_bytes(move.next_attempt.bytes, sizeof move.next_attempt.bytes);
    memset(move.last_hash, 7, sizeof move.last_hash);
    return move;
}

/* In a transaction of its own. */
static bool run_move(const struct db_progress_self *self, const struct db_progress_move *move)
{
    struct db_tx *tx = NULL;
    struct err err = ERR_INIT;
    bool has_moved = false;
    assert_true(db_progress_move(db, self, move, 1, &has_moved, &tx, &err));
    assert_int_equal(db_tx_commit(&tx, &err), DB_TX_COMMITTED);
    return has_moved;
}

static struct db_progress_look look_from(const struct db_progress_self *self, int64_t seq)
{
    struct db_progress_look look;
    struct err err = ERR_INIT;
    assert_true(db_progress_look(db, self, &place, &seq, 1, &look, &err));
    return look;
}

static void test_db_progress_moves_its_owner(void **state)
{
    struct store *store = *state;
    struct db_progress_row row = take(&store->one);
    assert_int_equal(row.seq, 1);
    assert_int_equal(row.next_offset, 100);
    assert_int_equal(row.last_offset, DB_PROGRESS_OFFSET_NONE);
    assert_string_equal(row.cluster_id, CLUSTER);
    struct db_progress_move move = move_of(&row, 105);
    assert_true(run_move(&store->one, &move));
    assert_false(run_move(&store->one, &move)); /* The same step twice is one step. */
    struct db_progress_look look = look_from(&store->one, 2);
    assert_true(look.has_last && !look.has_stranger_after);
    assert_int_equal(look.last.seq, 2);
    assert_int_equal(look.last.next_offset, 105);
    assert_int_equal(look.last.last_offset, 104);
    assert_memory_equal(look.last.last_hash, move.last_hash, sizeof move.last_hash);
    assert_int_equal(look.last.kind, DB_PROGRESS_MOVED);
}

static void test_db_progress_registers_once(void **state)
{
    struct store *store = *state;
    struct err err = ERR_INIT;
    const int64_t other_start = 7;
    bool is_registered = false;
    assert_true(db_progress_is_registered(db, &store->one, "orders", &is_registered, &err));
    assert_true(is_registered);
    assert_true(db_progress_is_registered(db, &store->one, "bills", &is_registered, &err));
    assert_false(is_registered);
    assert_true(db_progress_register(db, &store->other, &place, &other_start, 1, CLUSTER, &err));
    assert_int_equal(take(&store->other).next_offset, 100);
}

static void test_db_progress_fences_who_was_taken_over(void **state)
{
    struct store *store = *state;
    struct db_progress_row row = take(&store->one);
    struct db_progress_row taken = take(&store->other);
    assert_int_equal(taken.seq, row.seq + 1);
    struct db_progress_move late = move_of(&row, 105);
    assert_false(run_move(&store->one, &late));
    struct db_progress_look look = look_from(&store->one, row.seq);
    assert_true(look.has_stranger_after);
    struct db_progress_move good = move_of(&taken, 103);
    assert_true(run_move(&store->other, &good));
}

/* What was claimed along with a cursor that did not move is taken back. */
static void test_db_progress_keeps_no_claim_of_who_was_taken_over(void **state)
{
    struct store *store = *state;
    struct err err = ERR_INIT;
    struct db_progress_row row = take(&store->one);
    const struct db_inbox_item item = {.event_id = uuid_v7_new(clock_realtime_ms()), .payload_hash = 7};
    bool has_moved = false;
    bool is_fresh = false;
    struct db_inbox_claim claim = {.kind = DB_INBOX_OWN, .items = &item, .count = 1, .ret_is_fresh = &is_fresh};
    assert_true(db_inbox_scope(db, store->one.consumer, "live", &claim.scope_id, &err));
    struct db_progress_move move = move_of(&row, 105);
    const struct db_progress_moves moves = {&move, 1, &has_moved};
    struct db_tx *tx = NULL;
    for (int taken_over = 0; taken_over < 2; taken_over++) {
        if (taken_over == 1) {
            take(&store->other);
        }
        is_fresh = false;
        assert_true(db_progress_move_and_claim(db, &store->one, &moves, &claim, &tx, &err));
        assert_int_equal(has_moved, taken_over == 0);
        assert_int_equal(tx != NULL, taken_over == 0);
        assert_int_equal(is_fresh, taken_over == 0);
        db_tx_rollback(&tx);
    }
    assert_int_equal(postgres_fixture_number(postgres, "SELECT count(*) FROM onceward.inbox"), 0);
}

static void test_db_progress_tells_an_operators_row_from_a_strangers(void **state)
{
    struct store *store = *state;
    struct db_progress_row row = take(&store->one);
    postgres_fixture_exec(
        postgres, "INSERT INTO onceward.consumer_progress (consumer, scope, topic, partition, seq, owner, "
                  "incarnation, attempt, kind, next_offset, cluster_id) SELECT consumer, 'live', 'orders', 3, 2, "
                  "'operator', gen_random_uuid(), gen_random_uuid(), 'rewound', 50, 'cluster-1' FROM (SELECT DISTINCT "
                  "consumer FROM onceward.consumer_progress) c");
    struct db_progress_move late = move_of(&row, 105);
    assert_false(run_move(&store->one, &late));
    struct db_progress_look look = look_from(&store->one, row.seq);
    assert_false(look.has_stranger_after);
    assert_int_equal(look.last.kind, DB_PROGRESS_REWOUND);
    assert_int_equal(take(&store->one).next_offset, 50);
}

/* A commit whose answer was lost: the row is ours, and we know it by our incarnation. */
static void test_db_progress_shows_a_row_of_ours_that_we_do_not_know(void **state)
{
    struct store *store = *state;
    struct db_progress_row row = take(&store->one);
    struct db_progress_move move = move_of(&row, 105);
    assert_true(run_move(&store->one, &move));
    struct db_progress_look look = look_from(&store->one, row.seq);
    assert_false(look.has_stranger_after);
    assert_int_equal(look.last.seq, row.seq + 1);
    assert_int_equal(uuid_compare(&look.last.incarnation, &store->one.incarnation), 0);
    assert_int_equal(uuid_compare(&look.last.attempt, &move.next_attempt), 0);
}

/* After a restore the same seq stands there again, of another attempt. */
static void test_db_progress_refuses_a_seq_of_before_a_restore(void **state)
{
    struct store *store = *state;
    struct db_progress_row row = take(&store->one);
    postgres_fixture_exec(postgres, "UPDATE onceward.consumer_progress SET attempt = gen_random_uuid() WHERE seq = 1");
    struct db_progress_move move = move_of(&row, 105);
    assert_false(run_move(&store->one, &move));
}

static const struct db_statement TWIN_MOVE = {
    .sql =
        "INSERT INTO onceward.consumer_progress (consumer, scope, topic, partition, seq, owner, incarnation, attempt, "
        "kind, next_offset, cluster_id) SELECT consumer, 'live', 'orders', 3, $1, 'one', $2, "
        "gen_random_uuid(), 'moved', "
        "105, 'cluster-1' FROM (SELECT DISTINCT consumer FROM onceward.consumer_progress) c ON CONFLICT DO NOTHING "
        "RETURNING seq",
    .columns = {DB_INT8},
};

/* One who slept while others went on and old rows were deleted: the key alone lets it in again. */
static void test_db_progress_refuses_a_sleeper_past_a_deletion(void **state)
{
    struct store *store = *state;
    struct db_progress_row row = take(&store->one);
    for (int i = 0; i < 5; i++) {
        take(&store->other);
    }
    postgres_fixture_exec(postgres, "UPDATE onceward.consumer_progress SET created_at = now() - interval '2 hours'");
    struct err err = ERR_INIT;
    assert_true(db_progress_prune(db, &store->other, place, 6, &err));
    assert_int_equal(postgres_fixture_number(postgres, "SELECT min(seq) FROM onceward.consumer_progress"), 6);
    struct db_progress_move late = move_of(&row, 105);
    assert_false(run_move(&store->one, &late));
    DB_PARAMS(params);
    db_params_int8(&params, row.seq + 1);
    db_params_uuid(&params, store->one.incarnation.bytes);
    DB_RESULT(result);
    assert_true(db_exec(db, &TWIN_MOVE, &params, &result, &err));
    assert_int_equal(db_result_rows(result), 1); /* The broken twin goes in. */
}

static void test_db_progress_keeps_young_rows(void **state)
{
    struct store *store = *state;
    take(&store->one);
    take(&store->one);
    struct err err = ERR_INIT;
    assert_true(db_progress_prune(db, &store->one, place, 2, &err));
    assert_int_equal(postgres_fixture_number(postgres, "SELECT count(*) FROM onceward.consumer_progress"), 3);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_db_progress_moves_its_owner, setup, NULL),
        cmocka_unit_test_setup_teardown(test_db_progress_keeps_no_claim_of_who_was_taken_over, setup, NULL),
        cmocka_unit_test_setup_teardown(test_db_progress_registers_once, setup, NULL),
        cmocka_unit_test_setup_teardown(test_db_progress_fences_who_was_taken_over, setup, NULL),
        cmocka_unit_test_setup_teardown(test_db_progress_tells_an_operators_row_from_a_strangers, setup, NULL),
        cmocka_unit_test_setup_teardown(test_db_progress_shows_a_row_of_ours_that_we_do_not_know, setup, NULL),
        cmocka_unit_test_setup_teardown(test_db_progress_refuses_a_seq_of_before_a_restore, setup, NULL),
        cmocka_unit_test_setup_teardown(test_db_progress_refuses_a_sleeper_past_a_deletion, setup, NULL),
        cmocka_unit_test_setup_teardown(test_db_progress_keeps_young_rows, setup, NULL),
    };
    return cmocka_run_group_tests_name("db_progress", tests, group_setup, group_teardown);
}
