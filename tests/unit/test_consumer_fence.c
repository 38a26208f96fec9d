/* SPDX-License-Identifier: Apache-2.0
 *
 * What logs say to whoever remembers a place in them, as tables.
 */
#include "cmocka_all.h"

#include "consumer_fence.h"

/* Incarnations and attempts by one byte. */
#define ME 1
#define STRANGER 2
#define OPERATOR 3
#define MY_SEQ 10
#define MY_ATTEMPT 7

static struct uuid uuid_of(unsigned char byte)
{
    struct uuid uuid = {{0}};
    uuid.bytes[0] = byte;
    return uuid;
}

struct fence_case {
    const char *name;
    bool is_empty;
    int64_t seq;
    unsigned char attempt;
    unsigned char incarnation;
    enum db_progress_kind kind;
    bool has_stranger_after;
    enum consumer_fence expected;
};

static const struct fence_case fence_cases[] = {
    {"the row that we know", false, MY_SEQ, MY_ATTEMPT, ME, DB_PROGRESS_MOVED, false, CONSUMER_FENCE_SAME},
    {"our commit whose answer was lost", false, MY_SEQ + 1, 8, ME, DB_PROGRESS_MOVED, false, CONSUMER_FENCE_ADOPT},
    {"a restore to an older row of ours", false, MY_SEQ - 4, 3, ME, DB_PROGRESS_MOVED, false, CONSUMER_FENCE_ADOPT},
    {"a restore, then the same seq written again by us", false, MY_SEQ, 9, ME, DB_PROGRESS_MOVED, false,
     CONSUMER_FENCE_ADOPT},
    {"a stranger took it", false, MY_SEQ + 1, 8, STRANGER, DB_PROGRESS_TAKEN, true, CONSUMER_FENCE_FENCED},
    {"a restore to before we took it", false, MY_SEQ - 4, 3, STRANGER, DB_PROGRESS_MOVED, false, CONSUMER_FENCE_FENCED},
    {"a stranger wrote the same seq after a restore", false, MY_SEQ, 9, STRANGER, DB_PROGRESS_MOVED, false,
     CONSUMER_FENCE_FENCED},
    {"a stranger came and a row of our name after it", false, MY_SEQ + 3, 8, ME, DB_PROGRESS_TAKEN, true,
     CONSUMER_FENCE_FENCED},
    {"an operator rewound it", false, MY_SEQ + 1, 8, OPERATOR, DB_PROGRESS_REWOUND, false, CONSUMER_FENCE_REWOUND},
    {"an operator rewound it after our lost answer", false, MY_SEQ + 2, 8, OPERATOR, DB_PROGRESS_REWOUND, false,
     CONSUMER_FENCE_REWOUND},
    {"an operator rewound what a stranger took", false, MY_SEQ + 2, 8, OPERATOR, DB_PROGRESS_REWOUND, true,
     CONSUMER_FENCE_FENCED},
    {"no row at all", true, 0, 0, 0, DB_PROGRESS_MOVED, false, CONSUMER_FENCE_MISSING},
};

static void test_consumer_fence_decides(void **state)
{
    const struct fence_case *row = *state;
    struct db_progress_look look = {
        .has_last = !row->is_empty,
        .has_stranger_after = row->has_stranger_after,
        .last = {.seq = row->seq,
                 .attempt = uuid_of(row->attempt),
                 .incarnation = uuid_of(row->incarnation),
                 .kind = row->kind},
    };
    struct uuid attempt = uuid_of(MY_ATTEMPT);
    struct uuid incarnation = uuid_of(ME);
    assert_int_equal(consumer_fence_decide(&look, MY_SEQ, &attempt, &incarnation), row->expected);
}

struct gap_case {
    const char *name;
    int64_t last_offset;
    int64_t next_offset;
    int64_t first;
    int64_t end;
    enum consumer_gap expected;
    int64_t gone_count;
};

static const struct gap_case gap_cases[] = {
    {"all there", 9, 10, 0, 20, CONSUMER_GAP_NONE, 0},
    {"at the end", 9, 10, 0, 10, CONSUMER_GAP_NONE, 0},
    {"nothing seen yet", -1, 0, 0, 0, CONSUMER_GAP_NONE, 0},
    {"retention took the last record seen", 9, 10, 10, 20, CONSUMER_GAP_CHECKPOINT_GONE, 0},
    {"retention took all, nothing unseen", 9, 10, 10, 10, CONSUMER_GAP_CHECKPOINT_GONE, 0},
    {"retention took one record too many", 9, 10, 11, 20, CONSUMER_GAP_RECORDS_GONE, 1},
    {"a new partition whose beginning is gone", -1, 0, 5, 20, CONSUMER_GAP_RECORDS_GONE, 5},
    {"another, shorter log", 9, 10, 0, 9, CONSUMER_GAP_LOG_SHORTER, 0},
    {"another, empty log", 9, 10, 0, 0, CONSUMER_GAP_LOG_SHORTER, 0},
};

static void test_consumer_gap_decides(void **state)
{
    const struct gap_case *row = *state;
    int64_t gone_count = -1;
    assert_int_equal(consumer_gap_decide(row->last_offset, row->next_offset, row->first, row->end, &gone_count),
                     row->expected);
    assert_int_equal(gone_count, row->gone_count);
}

int main(void)
{
    int failed = RUN_CASES("consumer_fence", test_consumer_fence_decides, fence_cases);
    return failed + RUN_CASES("consumer_gap", test_consumer_gap_decides, gap_cases);
}
