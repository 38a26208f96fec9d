/* SPDX-License-Identifier: Apache-2.0
 *
 * Counting dead letters, in a row and by ratio. The window forgets by halving.
 * The invariant: once open, it stays open.
 */
#include "consumer_breaker.h"

#include <assert.h>

void consumer_breaker_feed(struct consumer_breaker *breaker, bool is_dead)
{
    assert(breaker->consecutive_max > 0 && breaker->percent_max > 0);
    if (breaker->window_count >= CONSUMER_BREAKER_WINDOW) {
        breaker->window_count /= 2;
        breaker->window_dead_count /= 2;
    }
    breaker->window_count++;
    breaker->window_dead_count += is_dead ? 1 : 0;
    breaker->consecutive_count = is_dead ? breaker->consecutive_count + 1 : 0;
    bool is_judged = breaker->window_count >= CONSUMER_BREAKER_WINDOW / 10;
    bool is_ratio_high = breaker->window_dead_count * 100 > breaker->window_count * breaker->percent_max;
    if (breaker->consecutive_count > breaker->consecutive_max || (is_judged && is_ratio_high)) {
        breaker->is_open = true;
    }
}
