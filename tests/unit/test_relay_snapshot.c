/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots of the relay: reading their text, visibility, lateness.
 */
#include "cmocka_all.h"

#include "relay_snapshot.h"

static struct relay_snapshot *make(const char *text)
{
    struct err err = ERR_INIT;
    struct relay_snapshot *snapshot = relay_snapshot_new(text, 1, 2, &err);
    assert_string_equal(err.text, "");
    assert_non_null(snapshot);
    return snapshot;
}

static const struct visible_case {
    const char *name;
    const char *text;
    uint64_t xid;
    bool is_visible;
} visible_cases[] = {
    {"nothing is visible in the snapshot of the migration", "3:3:", 3, false},
    {"below xmin everything has ended", "100:100:", 99, true},
    {"from xmax on nothing has", "100:100:", 100, false},
    {"a listed xid was running", "100:110:100,105", 105, false},
    {"an unlisted xid between had ended", "100:110:100,105", 104, true},
    {"the least listed xid is xmin", "100:110:100,105", 100, false},
    {"ids beyond 32 bits are whole", "8589934592:8589934600:8589934592", 8589934593, true},
};

static void test_relay_snapshot_sees_what_postgres_sees(void **state)
{
    const struct visible_case *row = *state;
    struct relay_snapshot *snapshot = make(row->text);
    assert_int_equal(relay_snapshot_is_visible(snapshot, row->xid), row->is_visible);
    relay_snapshot_unref(&snapshot);
    assert_null(snapshot);
}

static const struct bad_case {
    const char *name;
    const char *text;
} bad_cases[] = {
    {"empty", ""},
    {"one number", "3"},
    {"two numbers", "3:4"},
    {"xmin of nothing", "0:4:"},
    {"xmin beyond xmax", "5:4:"},
    {"a listed xid below xmin", "5:9:4"},
    {"a listed xid at xmax", "5:9:9"},
    {"listed xids that do not rise", "5:9:7,6"},
    {"a listed xid twice", "5:9:6,6"},
    {"a sign", "+5:9:"},
    {"a blank", "5: 9:"},
    {"a word", "5:9:x"},
    {"a number that is too great", "5:99999999999999999999:"},
};

static void test_relay_snapshot_refuses_what_is_none(void **state)
{
    const struct bad_case *row = *state;
    struct err err = ERR_INIT;
    assert_null(relay_snapshot_new(row->text, 0, 0, &err));
    assert_int_equal(err.kind, ERR_FATAL);
    assert_string_equal(err.code, "snapshot_invalid");
}

static const struct late_case {
    const char *name;
    const char *from;
    const char *to;
    bool has_late;
} late_cases[] = {
    {"who ran and has ended is late", "100:110:100,105", "105:120:105", true},
    {"who still runs is not", "100:110:100,105", "100:120:100,105", false},
    {"who began later is not", "100:100:", "100:120:", false},
    {"one of many is enough", "100:110:101,102,103", "101:120:101,103", true},
};

static void test_relay_snapshot_knows_who_is_late(void **state)
{
    const struct late_case *row = *state;
    struct err err = ERR_INIT;
    struct relay_snapshot *from = make(row->from);
    struct relay_snapshot *to = make(row->to);
    struct relay_range *range = relay_range_new(from, to, &err);
    assert_non_null(range);
    assert_int_equal(range->has_late, row->has_late);
    relay_snapshot_unref(&from);
    relay_snapshot_unref(&to);
    relay_range_unref(&range);
}

int main(void)
{
    int failed = RUN_CASES("visible", test_relay_snapshot_sees_what_postgres_sees, visible_cases);
    failed += RUN_CASES("bad", test_relay_snapshot_refuses_what_is_none, bad_cases);
    return failed + RUN_CASES("late", test_relay_snapshot_knows_who_is_late, late_cases);
}
