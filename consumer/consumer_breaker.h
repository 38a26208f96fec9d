/* SPDX-License-Identifier: Apache-2.0
 *
 * A limit on dead letters. A bad deploy refuses everything: without a limit it
 * would turn the whole topic into dead letters within minutes. Pure.
 */
#ifndef CONSUMER_BREAKER_H
#define CONSUMER_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#define CONSUMER_BREAKER_WINDOW 1000 /* Deliveries over which the ratio is taken, roughly. */

struct consumer_breaker {
    int64_t consecutive_max; /* More dead letters than this in a row open it. */
    int64_t percent_max;     /* A greater part of the window opens it, once a tenth of the window is filled. */
    int64_t consecutive_count;
    int64_t window_count;
    int64_t window_dead_count;
    bool is_open; /* For good. */
};

/* One delivery was applied or became a dead letter; duplicates do not count. */
void consumer_breaker_feed(struct consumer_breaker *breaker, bool is_dead);

#endif
