/* SPDX-License-Identifier: Apache-2.0
 *
 * What a cursor's log, and a partition's log on the broker, say to whoever
 * remembers a place in them. Pure decisions.
 */
#ifndef CONSUMER_FENCE_H
#define CONSUMER_FENCE_H

#include <stdint.h>

#include "base/uuid.h"
#include "db/db_progress.h"

enum consumer_fence {
    CONSUMER_FENCE_SAME,    /* The last row is the one that we know. */
    CONSUMER_FENCE_ADOPT,   /* The last row is ours, though not the one that we know: our commit succeeded and its
                             * answer was lost, or a restore went back. Take its position, drop what is in memory. */
    CONSUMER_FENCE_REWOUND, /* An operator moved it: take it again and seek. */
    CONSUMER_FENCE_FENCED,  /* Somebody else took it: whatever the last row says. */
    CONSUMER_FENCE_MISSING, /* There is no row at all. */
};

/* seq and attempt are of the row that we know as the last, incarnation is ours. */
enum consumer_fence consumer_fence_decide(const struct db_progress_look *look, int64_t seq, const struct uuid *attempt,
                                          const struct uuid *incarnation);

enum consumer_gap {
    CONSUMER_GAP_NONE,            /* The log reaches from the last record seen to where we are. */
    CONSUMER_GAP_CHECKPOINT_GONE, /* Retention took the last record seen and nothing that is to come. */
    CONSUMER_GAP_RECORDS_GONE,    /* Records that were never seen are gone: *ret_gone_count offsets of them. */
    CONSUMER_GAP_LOG_SHORTER,     /* The log ends before where we are: it is another log. */
};

/* first is the offset of the log's first record, end the one after its last. last_offset may be
 * DB_PROGRESS_OFFSET_NONE. */
enum consumer_gap consumer_gap_decide(int64_t last_offset, int64_t next_offset, int64_t first, int64_t end,
                                      int64_t *ret_gone_count);

#endif
