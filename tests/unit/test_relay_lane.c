/* SPDX-License-Identifier: Apache-2.0
 *
 * What the end of a lane's log means for a relay that knows its row 7, and
 * when its lease is over.
 */
#include "cmocka_all.h"

#include "relay_lane.h"
#include "relay_lease.h"

#define MY_SEQ 7

static const struct uuid mine = {{1}};
static const struct uuid theirs = {{2}};
static const struct uuid my_attempt = {{3}};
static const struct uuid other_attempt = {{4}};

static const struct judge_case {
    const char *name;
    int64_t last_seq;
    const struct uuid *incarnation;
    const struct uuid *attempt;
    bool has_foreign_after;
    enum relay_lane_verdict verdict;
} judge_cases[] = {
    {"my row is the last: what I tried did not happen", 7, &mine, &my_attempt, false, RELAY_LANE_UNCHANGED},
    {"a later row of mine: the answer was lost", 8, &mine, &other_attempt, false, RELAY_LANE_ADOPTED},
    {"an earlier row of mine: a restore went back to it", 5, &mine, &other_attempt, false, RELAY_LANE_ADOPTED},
    {"my seq with another token of mine: written again after a restore", 7, &mine, &other_attempt, false,
     RELAY_LANE_ADOPTED},
    {"a stranger's row is the last", 8, &theirs, &other_attempt, true, RELAY_LANE_FENCED},
    {"a stranger's row before one of mine", 9, &mine, &other_attempt, true, RELAY_LANE_FENCED},
    {"a stranger's row where a restore went back to", 3, &theirs, &other_attempt, false, RELAY_LANE_FENCED},
    {"a stranger's row at my seq", 7, &theirs, &my_attempt, false, RELAY_LANE_FENCED},
};

static void test_relay_lane_judges_the_end_of_the_log(void **state)
{
    const struct judge_case *row = *state;
    const struct db_lane_tail tail = {
        .last = {.seq = row->last_seq, .incarnation = *row->incarnation, .attempt = *row->attempt},
        .has_foreign_after = row->has_foreign_after,
    };
    assert_int_equal(relay_lane_judge(&tail, MY_SEQ, &my_attempt, &mine), row->verdict);
}

static void test_relay_lease_deadline_lies_before_the_databases(void **state)
{
    (void)state;
    assert_int_equal(relay_lease_deadline(5000, 10000, 2000), 13000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_relay_lease_deadline_lies_before_the_databases)};
    int failed = RUN_CASES("judge", test_relay_lane_judges_the_end_of_the_log, judge_cases);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
