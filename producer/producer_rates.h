/* SPDX-License-Identifier: Apache-2.0
 *
 * How often somebody may do something: so many a second, and as many at once.
 * Of fixed size, whoever comes; where more keep it busy than it remembers, it
 * forgets those who used the least of their share.
 */
#ifndef PRODUCER_RATES_H
#define PRODUCER_RATES_H

#include <stdbool.h>
#include <stdint.h>

#define PRODUCER_RATES_KEY_SIZE 16

struct producer_rates;

/* per_second 0: everything is allowed. NULL when memory is out. */
struct producer_rates *producer_rates_new(int64_t per_second);
void producer_rates_free(struct producer_rates **ratesp);

/* Whether the one behind key (PRODUCER_RATES_KEY_SIZE bytes: an address, or the first of a hash) may do one more, by a
 * monotonic clock. From any thread, like the next. */
bool producer_rates_allow(struct producer_rates *rates, const unsigned char *key, int64_t now_us);

/* The same, and counts that one is done; what is not allowed is not counted. */
bool producer_rates_take(struct producer_rates *rates, const unsigned char *key, int64_t now_us);

#endif
