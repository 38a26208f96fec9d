/* SPDX-License-Identifier: Apache-2.0
 *
 * How long to wait before the next try: doubling with jitter, bounded.
 */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include <stdint.h>

struct backoff {
    int64_t first_ms;
    int64_t max_ms;
    uint32_t attempt; /* Failures in a row so far. */
};

/* Pure: the same attempt count and random number give the same wait.
 * Between half of and all of min(max_ms, first_ms * 2^attempt). */
int64_t backoff_next_ms(const struct backoff *backoff, uint32_t random);

/* One more failure, after which backoff_next_ms is greater. */
void backoff_fail(struct backoff *backoff);

/* Something worked: the next failure waits as little as the first. */
void backoff_reset(struct backoff *backoff);

#endif
