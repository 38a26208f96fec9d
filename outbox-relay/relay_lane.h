/* SPDX-License-Identifier: Apache-2.0
 *
 * A lane as this process holds it: the row of the log that is its own, and the
 * window of what it does beyond that row. What an end of the log means for the
 * holder is decided here, by values alone.
 */
#ifndef RELAY_LANE_H
#define RELAY_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/uuid.h"
#include "db/db_lane.h"
#include "relay_window.h"

enum relay_lane_verdict {
    RELAY_LANE_UNCHANGED, /* My row is the last: what I tried did not happen. */
    RELAY_LANE_ADOPTED, /* The last row is mine, but not the one I know: my commit's answer was lost, or a restore went
                         * back to it. Its place holds, what is in memory does not. */
    RELAY_LANE_FENCED,  /* Somebody else moved the lane. */
};

/* Pure. seq and attempt are those of the row that I know as my last. */
enum relay_lane_verdict relay_lane_judge(const struct db_lane_tail *tail, int64_t seq, const struct uuid *attempt,
                                         const struct uuid *incarnation);

struct relay_lane {
    int lane;
    bool is_held;
    bool is_leaving; /* Reads no more; let go as soon as what was begun is settled. */
    int64_t seq;
    struct uuid attempt;
    struct relay_window *window; /* Kept while the lane is not held: its carried entries still get reports. */
    /* What the last row says, to know whether a new one would say more. */
    int64_t written_claimed_to;
    uint64_t written_from; /* Hash of the snapshot's text. */
    int64_t written_position;
    int64_t written_ms;
    int64_t deferred_count;
    int64_t ahead_from; /* The first row of the log that may name something ahead of the place; 0: none does. */
    int64_t ahead_counted_seq;
    int64_t deleted_to; /* seq up to which old rows were looked at. */
    int64_t window_ids; /* Width of the next window of ids to read. */
};

#endif
