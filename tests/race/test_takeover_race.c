/* SPDX-License-Identifier: Apache-2.0
 *
 * A lane changes hands while its owner is stopped. The owner is a process that
 * looks whether the lane is still its own, is stopped by SIGSTOP before it
 * sends, wakes after a rival took the lane and moved on, sends, and settles:
 * its settle is refused. The twin settles behind whatever row is the last; it
 * does as well alone, and the same race must find it out.
 */
#include "cmocka_all.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "db/db_lane.h"
#include "db/db_lease.h"
#include "db_fixture.h"
#include "db_private.h"
#include "postgres_fixture.h"

#define RUN_COUNT 10
#define CAUGHT_COUNT_MIN 9
#define LANE 3

/* The switch. */
enum settling { SETTLE_BEHIND_OWN_ROW, SETTLE_BEHIND_LAST_ROW };

enum ending { ENDING_ACCEPTED, ENDING_REFUSED, ENDING_NOT_OURS, ENDING_FAILED };

static struct db_lane_owner owner_named(const char *name)
{
    return (struct db_lane_owner){.relay = name, .incarnation = uuid_v7_new(clock_realtime_ms()), .lease_ms = 10000};
}

static bool take(struct db *db, const struct db_lane_owner *owner, struct db_lane_row *ret_row)
{
    struct err err = ERR_INIT;
    struct uuid attempt = uuid_v7_new(clock_realtime_ms());
    enum db_lane_take taken = DB_LANE_BUSY;
    return db_lease_register(db, owner, &err) && db_lane_take(db, owner, LANE, &attempt, &taken, ret_row, &err) &&
           taken == DB_LANE_TAKEN;
}

/* ---- Settling, right and wrong ---- */

static bool settle_behind_own_row(struct db *db, const struct db_lane_owner *owner, const struct db_lane_row *row,
                                  bool *ret_was_accepted)
{
    struct err err = ERR_INIT;
    struct db_lane_move move = {.lane = LANE,
                                .seq = row->seq,
                                .attempt = row->attempt,
                                .new_attempt = uuid_v7_new(clock_realtime_ms()),
                                .from_text = "900:900:",
                                .from_floor = 10};
    bool is_written = db_lane_move(db, owner, &move, 1, &err) == DB_LANE_WRITTEN;
    *ret_was_accepted = move.was_moved;
    return is_written;
}

static const struct db_statement MOVE_ANYHOW = {
    .sql = "INSERT INTO onceward.lane_progress (lane, seq, owner, incarnation, attempt, kind, snapshot_from,"
           " from_floor, position, claimed_to, system_identifier)"
           " SELECT $1, last.seq + 1, $2, $3, gen_random_uuid(), 'moved', '900:900:', 10, 0, 0, last.system_identifier"
           " FROM (SELECT seq, system_identifier FROM onceward.lane_progress WHERE lane = $1 ORDER BY seq DESC LIMIT 1)"
           " last ON CONFLICT DO NOTHING RETURNING lane",
    .columns = {DB_INT2},
};

static bool settle_behind_last_row(struct db *db, const struct db_lane_owner *owner, bool *ret_was_accepted)
{
    struct err err = ERR_INIT;
    DB_PARAMS(params);
    db_params_int2(&params, LANE);
    db_params_text(&params, owner->relay);
    db_params_uuid(&params, owner->incarnation.bytes);
    DB_RESULT(result);
    if (!db_exec(db, &MOVE_ANYHOW, &params, &result, &err)) {
        return false;
    }
    *ret_was_accepted = db_result_rows(result) == 1;
    return true;
}

/* ---- The owner, a process ---- */

static const struct db_statement OWNER = {
    .sql = "SELECT EXISTS (SELECT FROM onceward.lanes WHERE lane = $1 AND owner = $2)",
    .columns = {DB_BOOL},
};

static bool is_still_ours(struct db *db, const struct db_lane_owner *owner)
{
    struct err err = ERR_INIT;
    DB_PARAMS(params);
    db_params_int2(&params, LANE);
    db_params_text(&params, owner->relay);
    DB_RESULT(result);
    return db_exec_row(db, &OWNER, &params, &result, &err) && db_get_bool(result, 0, 0);
}

static enum ending own(const char *conninfo, enum settling settling)
{
    struct db_settings settings = DB_SETTINGS_INIT;
    struct err err = ERR_INIT;
    settings.conninfo = conninfo;
    struct db *db = db_open(&settings, &err);
    const struct db_lane_owner owner = owner_named("stopped");
    struct db_lane_row row = {.lane = -1};
    if (db == NULL || !take(db, &owner, &row)) {
        return ENDING_FAILED;
    }
    if (!is_still_ours(db, &owner)) {
        return ENDING_NOT_OURS;
    }
    raise(SIGSTOP); /* Between the last check and the send. */
    bool was_accepted = false;
    bool is_done = settling == SETTLE_BEHIND_OWN_ROW ? settle_behind_own_row(db, &owner, &row, &was_accepted)
                                                     : settle_behind_last_row(db, &owner, &was_accepted);
    db_lane_row_done(&row);
    db_close(&db);
    return !is_done ? ENDING_FAILED : was_accepted ? ENDING_ACCEPTED : ENDING_REFUSED;
}

/* ---- The race ---- */

static void oust(struct postgres_fixture *fixture, struct db *db)
{
    const struct db_lane_owner rival = owner_named("rival");
    struct db_lane_row row = {.lane = -1};
    bool was_accepted = false;
    postgres_fixture_exec(fixture, "UPDATE onceward.relays SET until = now() WHERE relay = 'stopped'");
    assert_true(take(db, &rival, &row));
    assert_true(settle_behind_own_row(db, &rival, &row, &was_accepted));
    assert_true(was_accepted);
    db_lane_row_done(&row);
}

static void let_all_go(struct postgres_fixture *fixture)
{
    postgres_fixture_exec(fixture, "UPDATE onceward.lanes SET owner = NULL; DELETE FROM onceward.relays");
}

/* One owner from start to end; the rival comes while it is stopped. The stop is the barrier. */
static enum ending race_once(struct postgres_fixture *fixture, struct db *db, enum settling settling, bool has_rival)
{
    const char *conninfo = postgres_fixture_conninfo_as(fixture, "onceward_relay");
    int status = 0;
    fflush(NULL);
    pid_t owner = fork();
    if (owner == 0) {
        _exit((int)own(conninfo, settling));
    }
    assert_true(owner > 0);
    assert_int_equal(waitpid(owner, &status, WUNTRACED), owner);
    assert_true(WIFSTOPPED(status));
    if (has_rival) {
        oust(fixture, db);
    }
    assert_int_equal(kill(owner, SIGCONT), 0);
    assert_int_equal(waitpid(owner, &status, 0), owner);
    assert_true(WIFEXITED(status));
    assert_in_range(WEXITSTATUS(status), ENDING_ACCEPTED, ENDING_REFUSED);
    let_all_go(fixture);
    return (enum ending)WEXITSTATUS(status);
}

static int count_refused(enum settling settling, bool has_rival)
{
    struct postgres_fixture *fixture = postgres_fixture_new();
    assert_non_null(fixture);
    struct db *db = db_fixture_open(postgres_fixture_conninfo_as(fixture, "onceward_relay"));
    int refused_count = 0;
    for (int run = 0; run < RUN_COUNT; run++) {
        refused_count += race_once(fixture, db, settling, has_rival) == ENDING_REFUSED;
    }
    db_close(&db);
    postgres_fixture_free(&fixture);
    return refused_count;
}

static void test_both_ways_settle_when_nobody_took_over(void **state)
{
    (void)state;
    assert_int_equal(count_refused(SETTLE_BEHIND_OWN_ROW, false), 0);
    assert_int_equal(count_refused(SETTLE_BEHIND_LAST_ROW, false), 0);
}

static void test_a_stale_settle_is_refused(void **state)
{
    (void)state;
    assert_int_equal(count_refused(SETTLE_BEHIND_OWN_ROW, true), RUN_COUNT);
}

static void test_a_settle_behind_the_last_row_is_caught(void **state)
{
    (void)state;
    int caught_count = RUN_COUNT - count_refused(SETTLE_BEHIND_LAST_ROW, true);
    print_message("caught in %d of %d runs\n", caught_count, RUN_COUNT);
    assert_true(caught_count >= CAUGHT_COUNT_MIN);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways_settle_when_nobody_took_over),
        cmocka_unit_test(test_a_stale_settle_is_refused),
        cmocka_unit_test(test_a_settle_behind_the_last_row_is_caught),
    };
    return cmocka_run_group_tests_name("takeover_race", tests, NULL, NULL);
}
