/* SPDX-License-Identifier: Apache-2.0
 *
 * The decisions about places in logs. The invariant: where a row of another
 * incarnation came after ours we are fenced, even if a later row is ours by
 * name; and no offset is ever skipped without being counted.
 */
#include "consumer_fence.h"

#include <assert.h>

enum consumer_fence consumer_fence_decide(const struct db_progress_look *look, int64_t seq, const struct uuid *attempt,
                                          const struct uuid *incarnation)
{
    assert(look != NULL && attempt != NULL && incarnation != NULL);
    if (!look->has_last) {
        return CONSUMER_FENCE_MISSING;
    }
    const struct db_progress_row *last = &look->last;
    if (last->seq == seq && uuid_compare(&last->attempt, attempt) == 0) {
        return CONSUMER_FENCE_SAME;
    }
    if (look->has_stranger_after) {
        return CONSUMER_FENCE_FENCED;
    }
    if (uuid_compare(&last->incarnation, incarnation) == 0) {
        return CONSUMER_FENCE_ADOPT;
    }
    return last->kind == DB_PROGRESS_REWOUND ? CONSUMER_FENCE_REWOUND : CONSUMER_FENCE_FENCED;
}

enum consumer_gap consumer_gap_decide(int64_t last_offset, int64_t next_offset, int64_t first, int64_t end,
                                      int64_t *ret_gone_count)
{
    assert(first <= end && next_offset >= 0);
    *ret_gone_count = 0;
    if (end < next_offset) {
        return CONSUMER_GAP_LOG_SHORTER;
    }
    if (first > next_offset) {
        *ret_gone_count = first - next_offset;
        return CONSUMER_GAP_RECORDS_GONE;
    }
    bool is_last_gone = last_offset != DB_PROGRESS_OFFSET_NONE && first > last_offset;
    return is_last_gone ? CONSUMER_GAP_CHECKPOINT_GONE : CONSUMER_GAP_NONE;
}
