/* SPDX-License-Identifier: Apache-2.0
 *
 * Random bytes. getrandom without flags fails only before the kernel has
 * entropy or by our own mistake, so there is no error to hand on.
 */
#include "base/rand.h"

#include <assert.h>
#include <errno.h>
#include <sys/random.h>

void rand_bytes(void *ret_bytes, size_t size)
{
    assert(ret_bytes != NULL || size == 0);
    uint8_t *at = ret_bytes;
    while (size > 0) {
        ssize_t got = getrandom(at, size, 0);
        if (got < 0) {
            assert(errno == EINTR);
            continue;
        }
        at += got;
        size -= (size_t)got;
    }
}

uint32_t rand_uint32(void)
{
    uint32_t number;
    rand_bytes(&number, sizeof number);
    return number;
}
