/* SPDX-License-Identifier: Apache-2.0
 *
 * Random bytes from the kernel.
 */
#ifndef BASE_RAND_H
#define BASE_RAND_H

#include <stddef.h>
#include <stdint.h>

void rand_bytes(void *ret_bytes, size_t size);
uint32_t rand_uint32(void);

#endif
