/* SPDX-License-Identifier: Apache-2.0
 *
 * The few things C texts need everywhere: bounded formatting whose result is
 * looked at, and strict conversion of numbers.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* snprintf that says whether everything fitted. The text is terminated either way (size > 0). */
bool text_format(char *ret_text, size_t size, const char *format, ...) PRINTF_LIKE(3, 4);
bool text_vformat(char *ret_text, size_t size, const char *format, va_list args) __attribute__((format(printf, 3, 0)));

/* Copies as much as fits, terminated. False when something was cut off. */
bool text_copy(char *ret_text, size_t size, const char *text);

/* Both may be NULL; NULL equals only NULL. */
bool text_is_equal(const char *left, const char *right);

bool text_has_prefix(const char *text, const char *prefix);
bool text_has_suffix(const char *text, const char *suffix);

/* A decimal integer with an optional minus and nothing else: no blanks, no plus. False when it is none or does not fit.
 */
bool text_to_int64(const char *text, int64_t *ret_number) MUST_CHECK;

/* Whether there is a byte below a blank, or a DEL, in it. */
bool text_has_control(const char *text);

/* The value of a hexadecimal digit in either case, -1 for any other character. */
int text_hex_value(char digit);

/* True when the bytes are well-formed UTF-8 (no overlong forms, no surrogates). Where they are not,
 * *ret_offset (may be NULL) is the place of the first wrong byte. */
bool text_is_utf8(const void *text, size_t size, size_t *ret_offset);

#endif
