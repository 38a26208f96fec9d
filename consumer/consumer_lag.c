/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a partition stands still though there is something to do, and that
 * the readiness says so.
 */
#include "consumer_lag.h"

#include "http/health.h"

bool consumer_lag_stands_still(struct consumer_cursor *cursor, int64_t lag, int64_t now_ms)
{
    bool is_waiting = cursor->read_offset > cursor->next_offset || lag > CONSUMER_LAG_MARKERS_MAX;
    if (cursor->still_at_ms == 0 || cursor->still_offset != cursor->next_offset || !is_waiting) {
        cursor->still_offset = cursor->next_offset;
        cursor->still_at_ms = now_ms;
    }
    return now_ms - cursor->still_at_ms > CONSUMER_LAG_STILL_MS;
}

void consumer_lag_tell(struct health *health, const struct consumer_cursor *still, int64_t now_ms)
{
    if (still != NULL) {
        health_set_unready(health, "lag", "%s/%d stands still at offset %lld for %lld s, though records wait",
                           still->topic, still->partition, (long long)still->next_offset,
                           (long long)(now_ms - still->still_at_ms) / 1000);
    } else {
        health_set_ready(health, "lag");
    }
}
