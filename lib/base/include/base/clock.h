/* SPDX-License-Identifier: Apache-2.0
 *
 * Time. Deadlines are counted on the monotonic clock, what people and other
 * machines read comes from the real one.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define CLOCK_TEXT_SIZE 28 /* "2026-11-30T06:13:13.123456Z" and its NUL. */

int64_t clock_monotonic_ms(void);
int64_t clock_realtime_ms(void);
int64_t clock_realtime_us(void);

/* RFC 3339 in UTC with microseconds. */
void clock_to_text(int64_t unix_us, char ret_text[CLOCK_TEXT_SIZE]);

/* Reads RFC 3339 with "Z" or an offset, zero to nine fractional digits (beyond six they are cut). False for anything
 * else. */
bool clock_from_text(const char *text, int64_t *ret_unix_us) MUST_CHECK;

#endif
