/* SPDX-License-Identifier: Apache-2.0
 *
 * Doubling with jitter: never more than max_ms, never less than half of the step.
 */
#include "base/backoff.h"

#include <assert.h>
#include <stddef.h>

int64_t backoff_next_ms(const struct backoff *backoff, uint32_t random)
{
    assert(backoff != NULL && backoff->first_ms > 0 && backoff->max_ms >= backoff->first_ms);
    int64_t step = backoff->first_ms;
    for (uint32_t i = 0; i < backoff->attempt && step < backoff->max_ms; i++) {
        step = step > backoff->max_ms / 2 ? backoff->max_ms : step * 2;
    }
    int64_t half = step / 2;
    return step - half + (int64_t)(random % (uint64_t)(half + 1));
}

void backoff_fail(struct backoff *backoff)
{
    if (backoff->attempt < UINT32_MAX) {
        backoff->attempt++;
    }
}

void backoff_reset(struct backoff *backoff)
{
    backoff->attempt = 0;
}
