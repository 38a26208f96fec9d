/* SPDX-License-Identifier: Apache-2.0
 *
 * The verdict on a lane's log. The invariant: a lane with a stranger's row
 * behind mine is never written by me again, whatever its last row says.
 */
#include "relay_lane.h"

enum relay_lane_verdict relay_lane_judge(const struct db_lane_tail *tail, int64_t seq, const struct uuid *attempt,
                                         const struct uuid *incarnation)
{
    const struct db_lane_row *last = &tail->last;
    if (tail->has_foreign_after || uuid_compare(&last->incarnation, incarnation) != 0) {
        return RELAY_LANE_FENCED;
    }
    bool is_known = last->seq == seq && uuid_compare(&last->attempt, attempt) == 0;
    return is_known ? RELAY_LANE_UNCHANGED : RELAY_LANE_ADOPTED;
}
