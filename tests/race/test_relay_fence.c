/* SPDX-License-Identifier: Apache-2.0
 *
 * The fence of a lane's log: whoever slept while the lane went on adds no row,
 * even when the rows that would have told him are deleted; whose commit's
 * answer was lost finds his row and goes on from it.
 */
#include "cmocka_all.h"

#include <stdlib.h>

#include "base/clock.h"
#include "db/db_lane.h"
#include "db/db_lease.h"
#include "fake_publisher.h"
#include "db_fixture.h"
#include "postgres_fixture.h"
#include "relay.h"

#define LANE 3

struct fence {
    struct postgres_fixture *fixture;
    struct db *db;
    struct db_lane_owner sleeper;
    struct db_lane_owner rival;
    struct db_lane_row slept_at; /* The row that the sleeper takes for the last. */
};

static struct db_lane_row take(struct db *db, const struct db_lane_owner *owner)
{
    struct err err = ERR_INIT;
    struct uuid attempt = uuid_v7_new(clock_realtime_ms());
    enum db_lane_take taken;
    struct db_lane_row row;
    assert_true(db_lease_register(db, owner, &err));
    assert_true(db_lane_take(db, owner, LANE, &attempt, &taken, &row, &err));
    assert_int_equal(taken, DB_LANE_TAKEN);
    return row;
}

static struct db_lane_move move_after(const struct db_lane_row *row)
{
    return (struct db_lane_move){.lane = row->lane,
                                 .seq = row->seq,
                                 .attempt = row->attempt,
                                 .new_attempt = uuid_v7_new(clock_realtime_ms()),
                                 .from_text = "900:900:",
                                 .from_floor = 10};
}

/* Adds a row; returns whether it was added, and makes *row the last. */
static bool move(struct db *db, const struct db_lane_owner *owner, struct db_lane_row *row)
{
    struct err err = ERR_INIT;
    struct db_lane_move next = move_after(row);
    assert_int_equal(db_lane_move(db, owner, &next, 1, &err), DB_LANE_WRITTEN);
    if (next.was_moved) {
        row->seq++;
        row->attempt = next.new_attempt;
    }
    return next.was_moved;
}

static int setup(void **state)
{
    struct fence *fence = calloc(1, sizeof *fence);
    fence->fixture = postgres_fixture_new();
    assert_non_null(fence->fixture);
    fence->db = db_fixture_open(postgres_fixture_conninfo_as(fence->fixture, "onceward_relay"));
    fence->sleeper =
        (struct db_lane_owner){.relay = "sleeper", .incarnation = uuid_v7_new(clock_realtime_ms()), .lease_ms = 10000};
    fence->rival =
        (struct db_lane_owner){.relay = "rival", .incarnation = uuid_v7_new(clock_realtime_ms()), .lease_ms = 10000};
    fence->slept_at = take(fence->db, &fence->sleeper);
    *state = fence;
    return 0;
}

static int teardown(void **state)
{
    struct fence *fence = *state;
    db_lane_row_done(&fence->slept_at);
    db_close(&fence->db);
    postgres_fixture_free(&fence->fixture);
    free(fence);
    return 0;
}

/* The lease runs out; the rival takes the lane and moves it twice. */
static void oust(struct fence *fence)
{
    postgres_fixture_exec(fence->fixture, "UPDATE onceward.relays SET until = now() WHERE relay = 'sleeper'");
    struct db_lane_row row = take(fence->db, &fence->rival);
    assert_true(move(fence->db, &fence->rival, &row));
    assert_true(move(fence->db, &fence->rival, &row));
    db_lane_row_done(&row);
}

/* An hour passes, and with it all rows but the last. */
static void delete_old_rows(struct fence *fence)
{
    postgres_fixture_exec(fence->fixture,
                          "UPDATE onceward.lane_progress SET created_at = created_at - interval '2 hours'");
    struct err err = ERR_INIT;
    int64_t seq = -1;
    int64_t count = 0;
    assert_true(db_lane_delete_old(fence->db, LANE, &seq, &count, &err));
    assert_int_equal(count, 4); /* 0 and 1 of before, the rival's taken and first move. */
    assert_int_equal(
        postgres_fixture_number(fence->fixture, "SELECT count(*) FROM onceward.lane_progress WHERE lane = 3"), 1);
}

static void test_a_sleeper_adds_no_row_behind_a_rivals(void **state)
{
    struct fence *fence = *state;
    oust(fence);
    assert_false(move(fence->db, &fence->sleeper, &fence->slept_at));
}

static void test_a_sleeper_adds_no_row_past_a_deletion(void **state)
{
    struct fence *fence = *state;
    oust(fence);
    delete_old_rows(fence);
    assert_false(move(fence->db, &fence->sleeper, &fence->slept_at));
    struct db_lane_tail tail;
    struct err err = ERR_INIT;
    assert_true(db_lane_read_tail(fence->db, LANE, fence->slept_at.seq, &fence->sleeper.incarnation, &tail, &err));
    assert_int_equal(
        relay_lane_judge(&tail, fence->slept_at.seq, &fence->slept_at.attempt, &fence->sleeper.incarnation),
        RELAY_LANE_FENCED);
    db_lane_row_done(&tail.last);
}

/* A pooler swapped the server for one that was restored to just our row: its log alone cannot tell. */
static void test_a_row_is_not_added_on_another_server(void **state)
{
    struct fence *fence = *state;
    struct db_server *known = (struct db_server *)(uintptr_t)db_server(fence->db); /* As if from the one before. */
    struct err err = ERR_INIT;
    struct db_lane_tail tail;
    known->postmaster_start_us--;
    assert_false(move(fence->db, &fence->sleeper, &fence->slept_at));
    assert_false(db_lane_read_tail(fence->db, LANE, fence->slept_at.seq, &fence->sleeper.incarnation, &tail, &err));
    assert_string_equal(err.code, "server_changed");
    assert_int_equal(err.kind, ERR_TRANSIENT);
    known->postmaster_start_us++;
    known->timeline++;
    assert_false(move(fence->db, &fence->sleeper, &fence->slept_at));
    known->timeline--;
    assert_true(move(fence->db, &fence->sleeper, &fence->slept_at));
}

/* The same insert that trusts its key alone: the rows that would have refused it are gone. */
static void test_an_insert_without_the_guard_is_caught(void **state)
{
    struct fence *fence = *state;
    oust(fence);
    delete_old_rows(fence);
    char sql[512];
    snprintf(sql, sizeof sql,
             "WITH added AS (INSERT INTO onceward.lane_progress (lane, seq, owner, incarnation, attempt, kind,"
             " snapshot_from, from_floor, position, claimed_to, system_identifier) VALUES (%d, %lld, 'sleeper',"
             " gen_random_uuid(), gen_random_uuid(), 'moved', '900:900:', 10, 0, 0, 0) ON CONFLICT DO NOTHING"
             " RETURNING 1) SELECT count(*) FROM added",
             LANE, (long long)fence->slept_at.seq + 1);
    assert_int_equal(postgres_fixture_number(fence->fixture, sql), 1);
}

/* A restore puts the log back: seq and incarnation may fit, the token does not. */
static void test_a_seq_of_before_a_restore_adds_no_row(void **state)
{
    struct fence *fence = *state;
    struct db_lane_row other = fence->slept_at;
    other.attempt = uuid_v7_new(clock_realtime_ms());
    assert_false(move(fence->db, &fence->sleeper, &other));
    assert_true(move(fence->db, &fence->sleeper, &fence->slept_at));
}

static struct publisher *open_fake(void *context, bool is_single, struct err *err)
{
    (void)context;
    (void)is_single;
    (void)err;
    const struct fake_publisher_options options = {.fail_at = 0};
    return fake_publisher_new(&options);
}

static void start_relay(struct relay *relay, struct fence *fence)
{
    struct err err = ERR_INIT;
    const struct relay_pump_options pump = {.open = open_fake, .outstanding_count_max = 100};
    assert_true(relay_init(relay, &relay_limits_default, &fence->sleeper, relay_pump_new(&pump, &err), &err));
    relay->db = fence->db;
    bool is_taken = false;
    assert_true(relay_claim_lane(relay, LANE, &is_taken, &err));
    assert_true(is_taken);
}

/* Its own row is there although it does not know: it takes it for its own and goes on from its place. */
static void test_a_commit_whose_answer_was_lost_is_adopted(void **state)
{
    struct fence *fence = *state;
    struct relay relay;
    struct err err = ERR_INIT;
    start_relay(&relay, fence);
    struct relay_lane *lane = &relay.lanes[LANE];
    struct db_lane_row known = {.lane = LANE, .seq = lane->seq, .attempt = lane->attempt};
    assert_true(move(fence->db, &fence->sleeper, &known)); /* The answer that is lost. */
    relay_claim_leave(lane);                               /* So that there is something to say. */
    assert_true(relay_settle(&relay, RELAY_SETTLE_ALL, clock_monotonic_ms(), &err));
    assert_true(lane->is_held);
    assert_int_equal(lane->seq, known.seq);
    assert_string_equal(relay_window_from(lane->window)->text, "900:900:");
    assert_int_equal(relay.fenced_count, 0);
    assert_true(relay_settle(&relay, RELAY_SETTLE_ALL, clock_monotonic_ms(), &err));
    assert_false(lane->is_held); /* Let go, behind the adopted row. */
    relay_done(&relay);
}

static void test_a_fenced_relay_lets_the_lane_be(void **state)
{
    struct fence *fence = *state;
    struct relay relay;
    struct err err = ERR_INIT;
    start_relay(&relay, fence);
    oust(fence);
    relay_claim_leave(&relay.lanes[LANE]);
    assert_true(relay_settle(&relay, RELAY_SETTLE_ALL, clock_monotonic_ms(), &err));
    assert_false(relay.lanes[LANE].is_held);
    assert_int_equal(relay.fenced_count, 1);
    assert_int_equal(postgres_fixture_number(fence->fixture,
                                             "SELECT count(*) FROM onceward.lanes WHERE lane = 3 AND owner = 'rival'"),
                     1);
    relay_done(&relay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_sleeper_adds_no_row_behind_a_rivals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_sleeper_adds_no_row_past_a_deletion, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_row_is_not_added_on_another_server, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_insert_without_the_guard_is_caught, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_seq_of_before_a_restore_adds_no_row, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_commit_whose_answer_was_lost_is_adopted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_fenced_relay_lets_the_lane_be, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
