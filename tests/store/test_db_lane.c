/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes and leases on a real server: who may take what, what a row of the log
 * keeps, what is deferred with it, what is deleted, and what belongs to
 * another cluster.
 */
#include "cmocka_all.h"

#include <stdlib.h>

#include "base/clock.h"
#include "db/db.h"
#include "db/db_lane.h"
#include "db/db_lease.h"
#include "db_fixture.h"
#include "postgres_fixture.h"

struct store {
    struct postgres_fixture *fixture;
    struct db *db;
    struct db_lane_owner one;
    struct db_lane_owner two;
};

static struct db_lane_owner owner_of(const char *relay)
{
    return (struct db_lane_owner){.relay = relay, .incarnation = uuid_v7_new(clock_realtime_ms()), .lease_ms = 10000};
}

static int setup(void **state)
{
    struct store *store = calloc(1, sizeof *store);
    store->fixture = postgres_fixture_new();
    assert_non_null(store->fixture);
    struct err err = ERR_INIT;
    store->db = db_fixture_open(postgres_fixture_conninfo_as(store->fixture, "onceward_relay"));
    store->one = owner_of("one");
    store->two = owner_of("two");
    assert_true(db_lease_register(store->db, &store->one, &err));
    *state = store;
    return 0;
}

static int teardown(void **state)
{
    struct store *store = *state;
    db_close(&store->db);
    postgres_fixture_free(&store->fixture);
    free(store);
    return 0;
}

static enum db_lane_take take(struct store *store, const struct db_lane_owner *owner, int lane, struct db_lane_row *row)
{
    struct err err = ERR_INIT;
    struct uuid attempt = uuid_v7_new(clock_realtime_ms());
    enum db_lane_take taken;
    bool is_tried = db_lane_take(store->db, owner, lane, &attempt, &taken, row, &err);
    assert_string_equal(err.text, "");
    assert_true(is_tried);
    return taken;
}

static void test_db_lane_is_taken_once(void **state)
{
    struct store *store = *state;
    struct err err = ERR_INIT;
    struct db_lane_row row;
    struct db_lane_row other;
    assert_int_equal(take(store, &store->one, 0, &row), DB_LANE_TAKEN);
    assert_int_equal(row.seq, 1);
    assert_string_equal(row.from_text, "3:3:");
    assert_null(row.to_text);
    assert_true(db_lease_register(store->db, &store->two, &err));
    assert_int_equal(take(store, &store->two, 0, &other), DB_LANE_BUSY);
    db_lane_row_done(&row);
}

static void test_db_lane_is_not_taken_by_who_is_not_registered(void **state)
{
    struct store *store = *state;
    struct db_lane_row row;
    assert_int_equal(take(store, &store->two, 0, &row), DB_LANE_BUSY);
    struct db_lane_owner older = store->one;
    older.incarnation = uuid_v7_new(clock_realtime_ms());
    assert_int_equal(take(store, &older, 0, &row), DB_LANE_BUSY);
}

static const struct expiry_case {
    const char *name;
    const char *until;
    enum db_lane_take take;
} expiry_cases[] = {
    {"a lease that runs is respected", "now() + interval '5 s'", DB_LANE_BUSY},
    {"a lease that ran out is not", "now() - interval '1 ms'", DB_LANE_TAKEN},
    {"a lease further ahead than it is long counts as run out", "now() + interval '1 hour'", DB_LANE_TAKEN},
};

static void test_db_lane_follows_the_lease(void **state)
{
    const struct expiry_case *row = *state;
    void *made = NULL;
    assert_int_equal(setup(&made), 0);
    struct store *store = made;
    struct err err = ERR_INIT;
    struct db_lane_row taken;
    char sql[160];
    assert_int_equal(take(store, &store->one, 2, &taken), DB_LANE_TAKEN);
    db_lane_row_done(&taken);
    assert_true(db_lease_register(store->db, &store->two, &err));
    snprintf(sql, sizeof sql, "UPDATE onceward.relays SET until = %s WHERE relay = 'one'", row->until);
    postgres_fixture_exec(store->fixture, sql);
    struct db_lease_survey survey;
    assert_true(db_lease_survey(store->db, &store->two, &survey, &err));
    assert_int_equal(survey.free_lanes, row->take == DB_LANE_TAKEN ? 0xff : 0xfb);
    assert_int_equal(survey.live_relay_count, row->take == DB_LANE_TAKEN ? 1 : 2);
    assert_int_equal(take(store, &store->two, 2, &taken), row->take);
    if (row->take == DB_LANE_TAKEN) {
        db_lane_row_done(&taken);
    }
    teardown(&made);
}

static void test_db_lease_is_renewed_by_its_own_incarnation_only(void **state)
{
    struct store *store = *state;
    struct err err = ERR_INIT;
    bool is_held = false;
    assert_true(db_lease_renew(store->db, &store->one, &is_held, &err));
    assert_true(is_held);
    struct db_lane_owner next = owner_of("one");
    assert_true(db_lease_register(store->db, &next, &err));
    assert_true(db_lease_renew(store->db, &store->one, &is_held, &err));
    assert_false(is_held);
    assert_true(db_lease_resign(store->db, &store->one, &err)); /* Not its to give. */
    assert_true(db_lease_renew(store->db, &next, &is_held, &err));
    assert_true(is_held);
    assert_true(db_lease_resign(store->db, &next, &err));
    assert_int_equal(postgres_fixture_number(store->fixture, "SELECT count(*) FROM onceward.relays"), 0);
}

static struct db_lane_move move_of(const struct db_lane_row *row)
{
    return (struct db_lane_move){.lane = row->lane,
                                 .seq = row->seq,
                                 .attempt = row->attempt,
                                 .new_attempt = uuid_v7_new(clock_realtime_ms()),
                                 .from_text = "900:910:905",
                                 .from_floor = 10,
                                 .to_text = "920:920:",
                                 .to_floor = 20,
                                 .to_ceiling = 21,
                                 .position = 15,
                                 .claimed_to = 17,
                                 .claimed_count = 2};
}

static void test_db_lane_row_keeps_the_place_and_what_was_settled(void **state)
{
    struct store *store = *state;
    struct err err = ERR_INIT;
    struct db_lane_row row;
    assert_int_equal(take(store, &store->one, 4, &row), DB_LANE_TAKEN);
    const struct db_lane_settled settled[] = {{15, "b", 1, 100}, {12, "a", 0, -1}};
    struct db_lane_move move = move_of(&row);
    move.settled = settled;
    move.settled_count = 2;
    assert_int_equal(db_lane_move(store->db, &store->one, &move, 1, &err), DB_LANE_WRITTEN);
    assert_true(move.was_moved);
    struct db_lane_tail tail;
    assert_true(db_lane_read_tail(store->db, 4, row.seq, &store->one.incarnation, &tail, &err));
    assert_int_equal(tail.last.seq, 2);
    assert_int_equal(uuid_compare(&tail.last.attempt, &move.new_attempt), 0);
    assert_string_equal(tail.last.from_text, "900:910:905");
    assert_string_equal(tail.last.to_text, "920:920:");
    assert_int_equal(tail.last.to_ceiling, 21);
    assert_int_equal(tail.last.position, 15);
    assert_int_equal(tail.last.claimed_to, 17);
    assert_false(tail.has_foreign_after);
    char text[128];
    assert_string_equal(
        postgres_fixture_text(
            store->fixture,
            "SELECT concat_ws(' ', settled_ids, settled_least, settled_greatest, settled_topics,"
            " settled_partitions, settled_offsets) FROM onceward.lane_progress WHERE lane = 4 AND seq = 2",
            text, sizeof text),
        "{15,12} 12 15 {b,a} {1,0} {100,NULL}");
    db_lane_row_done(&tail.last);
    db_lane_row_done(&row);
}

#define AHEAD_MAX 8

struct seen_ahead {
    struct db_lane_ahead items[AHEAD_MAX];
    size_t count;
};

static bool see_ahead(void *context, const struct db_lane_ahead *ahead, struct err *err)
{
    struct seen_ahead *seen = context;
    (void)err;
    assert_true(seen->count < AHEAD_MAX);
    seen->items[seen->count++] = *ahead;
    return true;
}

/* Five events in a transaction of their own each; a place between them, and acknowledgements on both sides of it. */
static void test_db_lane_tells_a_successor_what_is_settled_ahead_of_the_place(void **state)
{
    struct store *store = *state;
    struct err err = ERR_INIT;
    struct db_lane_row row;
    char to[64];
    for (int i = 0; i < 5; i++) {
        postgres_fixture_exec(store->fixture,
                              "INSERT INTO onceward.outbox (tenant, event_id, topic, key, type, source, time, value)"
                              " VALUES ('default', gen_random_uuid(), 'orders', 'k', 't', '/test', now(), 'v')");
    }
    postgres_fixture_text(store->fixture, "SELECT pg_current_snapshot()::text", to, sizeof to);
    assert_int_equal(take(store, &store->one, 4, &row), DB_LANE_TAKEN);
    const struct db_lane_settled first[] = {{1, "a", 0, 10}, {3, "a", 0, 11}};
    struct db_lane_move move = move_of(&row);
    move.from_text = "3:3:";
    move.from_floor = 0;
    move.to_text = to;
    move.position = 1;
    move.ahead_from = row.seq + 1;
    move.settled = first;
    move.settled_count = 2;
    assert_int_equal(db_lane_move(store->db, &store->one, &move, 1, &err), DB_LANE_WRITTEN);
    const struct db_lane_settled second[] = {{5, "a", 2, -1}};
    move.seq++;
    move.attempt = move.new_attempt;
    move.new_attempt = uuid_v7_new(clock_realtime_ms());
    move.settled = second;
    move.settled_count = 1;
    assert_int_equal(db_lane_move(store->db, &store->one, &move, 1, &err), DB_LANE_WRITTEN);
    assert_true(move.was_moved);
    db_lane_row_done(&row);

    struct db_lane_owner next = owner_of("one");
    struct seen_ahead seen = {.count = 0};
    assert_true(db_lease_register(store->db, &next, &err));
    assert_int_equal(take(store, &next, 4, &row), DB_LANE_TAKEN);
    assert_int_equal(row.ahead_from, 2); /* The taken row carries it on. */
    assert_true(db_lane_each_ahead(store->db, &row, see_ahead, &seen, &err));
    assert_int_equal(seen.count, 2); /* Not 1, which is behind the place. */
    assert_true(seen.items[0].id == 3 && seen.items[0].offset == 11 && seen.items[0].seq == 2);
    assert_true(seen.items[1].id == 5 && seen.items[1].partition == 2 && seen.items[1].offset == -1);
    db_lane_row_done(&row);
}

static void test_db_lane_defers_with_the_row_or_not_at_all(void **state)
{
    struct store *store = *state;
    struct err err = ERR_INIT;
    struct db_lane_row row;
    postgres_fixture_exec(store->fixture,
                          "INSERT INTO onceward.outbox (tenant, event_id, topic, key, type, source, time, value)"
                          " SELECT 'default', gen_random_uuid(), 'orders', 'k', 't', '/test', now(), '\\x00ff'"
                          " FROM generate_series(1, 2)");
    assert_int_equal(take(store, &store->one, 1, &row), DB_LANE_TAKEN);
    const struct db_lane_deferred deferred[] = {{1, true, "MSG_SIZE_TOO_LARGE", "too large"},
                                                {2, false, "held", "behind it"}};
    struct db_lane_move move = move_of(&row);
    move.deferred = deferred;
    move.deferred_count = 2;
    move.is_release = true;
    struct db_lane_move stale = move;
    stale.seq = 0;
    assert_int_equal(db_lane_move(store->db, &store->one, &stale, 1, &err), DB_LANE_WRITTEN);
    assert_false(stale.was_moved);
    assert_int_equal(postgres_fixture_number(store->fixture, "SELECT count(*) FROM onceward.deferred"), 0);
    assert_int_equal(postgres_fixture_number(store->fixture, "SELECT count(*) FROM onceward.lanes WHERE owner = 'one'"),
                     1);
    assert_int_equal(db_lane_move(store->db, &store->one, &move, 1, &err), DB_LANE_WRITTEN);
    assert_true(move.was_moved);
    assert_int_equal(postgres_fixture_number(
                         store->fixture, "SELECT count(*) FROM onceward.deferred d JOIN onceward.outbox o USING (id)"
                                         " WHERE d.value = o.value AND d.event_id = o.event_id AND"
                                         " d.state = CASE d.id WHEN 1 THEN 'parked' ELSE 'held' END"),
                     2);
    assert_int_equal(postgres_fixture_number(store->fixture, "SELECT count(*) FROM onceward.lanes WHERE owner IS NULL"),
                     8);
    db_lane_row_done(&row);
}

static bool count_key(void *context, const char *topic, const char *key, struct err *err)
{
    (void)err;
    assert_string_equal(topic, "orders");
    assert_string_equal(key, "k");
    ++*(int *)context;
    return true;
}

static void test_db_lane_tells_which_keys_are_held(void **state)
{
    struct store *store = *state;
    struct err err = ERR_INIT;
    postgres_fixture_exec(
        store->fixture, "INSERT INTO onceward.deferred (id, lane, tenant, event_id, topic, key, type, source, time,"
                        " header_names, header_values, value, state, reason_code, reason)"
                        " SELECT n, 5, 'default', gen_random_uuid(), 'orders', CASE n WHEN 3 THEN 'gone' ELSE 'k' END,"
                        " 't', '/test', now(), '{}', '{}', 'x', (ARRAY['parked', 'held', 'discarded'])[n], 'c', 'r'"
                        " FROM generate_series(1, 3) n");
    int keys = 0;
    int64_t count = 0;
    assert_true(db_lane_each_held_key(store->db, 5, count_key, &keys, &count, &err));
    assert_int_equal(keys, 1);
    assert_int_equal(count, 2);
    assert_true(db_lane_each_held_key(store->db, 6, count_key, &keys, &count, &err));
    assert_int_equal(count, 0);
}

static void test_db_lane_deletes_what_is_old_and_settled_nothing(void **state)
{
    struct store *store = *state;
    struct err err = ERR_INIT;
    int64_t seq = -1;
    int64_t count = 0;
    postgres_fixture_exec(store->fixture, "UPDATE onceward.lane_progress SET created_at = now() - interval '3 hours'");
    postgres_fixture_exec(
        store->fixture,
        "INSERT INTO onceward.lane_progress (lane, seq, owner, incarnation, attempt, kind, snapshot_from, from_floor,"
        " position, claimed_to, system_identifier, created_at, settled_ids, settled_least, settled_greatest)"
        " SELECT 7, n, 'x', gen_random_uuid(), gen_random_uuid(), 'moved', '3:3:', 0, 0, 0, 0,"
        " now() - CASE WHEN n <= 10 THEN interval '2 hours' ELSE interval '10 min' END,"
        " CASE WHEN n % 5 = 0 THEN ARRAY[n]::int8[] END, CASE WHEN n % 5 = 0 THEN n END, CASE WHEN n % 5 = 0 THEN n END"
        " FROM generate_series(1, 12) n");
    assert_true(db_lane_delete_old(store->db, 7, &seq, &count, &err));
    assert_int_equal(count, 9); /* 0 to 10 without 5 and 10. */
    assert_int_equal(seq, 10);
    assert_true(db_lane_delete_old(store->db, 7, &seq, &count, &err));
    assert_int_equal(count, 0);
}

static void test_db_lane_of_another_cluster_is_refused(void **state)
{
    struct store *store = *state;
    struct err err = ERR_INIT;
    struct uuid attempt = uuid_v7_new(clock_realtime_ms());
    enum db_lane_take taken;
    struct db_lane_row row;
    postgres_fixture_exec(store->fixture, "UPDATE onceward.lane_progress SET system_identifier = 7 WHERE lane = 0");
    assert_false(db_lane_take(store->db, &store->one, 0, &attempt, &taken, &row, &err));
    assert_int_equal(err.kind, ERR_FATAL);
    assert_string_equal(err.code, "other_cluster");
    assert_int_equal(postgres_fixture_number(store->fixture, "SELECT count(*) FROM onceward.lanes WHERE owner IS NULL"),
                     8);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_db_lane_is_taken_once),
        STORE_TEST(test_db_lane_is_not_taken_by_who_is_not_registered),
        STORE_TEST(test_db_lease_is_renewed_by_its_own_incarnation_only),
        STORE_TEST(test_db_lane_row_keeps_the_place_and_what_was_settled),
        STORE_TEST(test_db_lane_tells_a_successor_what_is_settled_ahead_of_the_place),
        STORE_TEST(test_db_lane_defers_with_the_row_or_not_at_all),
        STORE_TEST(test_db_lane_tells_which_keys_are_held),
        STORE_TEST(test_db_lane_deletes_what_is_old_and_settled_nothing),
        STORE_TEST(test_db_lane_of_another_cluster_is_refused),
    };
    int failed = RUN_CASES("expiry", test_db_lane_follows_the_lease, expiry_cases);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
