/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a partition stands still though there is something to do, and that
 * the readiness says so: its condition "lag".
 */
#ifndef CONSUMER_LAG_H
#define CONSUMER_LAG_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer_cursor.h"

struct health;

#define CONSUMER_LAG_STILL_MS 60000
#define CONSUMER_LAG_MARKERS_MAX 10

/* Whether records wait and the cursor has not moved for longer than CONSUMER_LAG_STILL_MS. lag: offsets up to the end
 * of the log. A few may be markers of transactions, which are no records; those that were fetched are records for
 * certain. now_ms is monotonic; remembers in the cursor when it moved last, so it is to be asked regularly. */
bool consumer_lag_stands_still(struct consumer_cursor *cursor, int64_t lag, int64_t now_ms);

/* Not ready because of this cursor, or ready where it is NULL. */
void consumer_lag_tell(struct health *health, const struct consumer_cursor *still, int64_t now_ms);

#endif
