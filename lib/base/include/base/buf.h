/* SPDX-License-Identifier: Apache-2.0
 *
 * A growable run of bytes with a maximum. Appending never fails at the call:
 * what does not fit (or finds no memory) marks the buffer as overflowed, later
 * appends do nothing, and buf_check() says so once, at the end. Whoever makes
 * something of the bytes looks first: the beginning of them looks like a whole.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* A value in the caller's memory. data is never NULL after buf_init and always ends in a NUL that size does not count.
 */
struct buf {
    char *data;
    size_t size;
    size_t capacity; /* Bytes allocated, 0 while data is the static empty text. */
    size_t size_max;
    bool has_overflowed;
    bool has_no_memory; /* Overflowed because of that: the same may succeed later. */
};

/* An empty buffer that holds up to size_max bytes. Allocates nothing yet. */
void buf_init(struct buf *buf, size_t size_max);
void buf_done(struct buf *buf);

/* Empties it and forgets an overflow; keeps the memory. */
void buf_reset(struct buf *buf);

void buf_append(struct buf *buf, const void *data, size_t size);
void buf_text(struct buf *buf, const char *text);
void buf_char(struct buf *buf, char character);
void buf_format(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);
void buf_vformat(struct buf *buf, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

/* Appends text as a JSON string with its quotes. What is no UTF-8 becomes U+FFFD, so that it is JSON whatever it is
 * told. */
void buf_json_string(struct buf *buf, const char *text, size_t size);

/* Room for size more bytes behind the end, or NULL when they do not fit (the buffer is then marked as overflowed).
 * Whoever wrote there says with buf_extend how many bytes became part of the buffer. */
char *buf_reserve(struct buf *buf, size_t size) MUST_CHECK;
void buf_extend(struct buf *buf, size_t size);

/* Marks the buffer as one that found no memory. */
void buf_lose(struct buf *buf);

/* part was to become a part of the buffer: what part lacks, the buffer lacks. */
void buf_inherit(struct buf *buf, const struct buf *part);

/* Cuts the buffer to its first size bytes. */
void buf_truncate(struct buf *buf, size_t size);

/* Removes the first size bytes. */
void buf_consume(struct buf *buf, size_t size);

/* Gives the bytes away (free() them) and leaves the buffer empty. *ret_size may be NULL. NULL without memory. */
char *buf_take(struct buf *buf, size_t *ret_size) MUST_CHECK;

/* False with a permanent error "too_large" when something did not fit, with a transient one, "out_of_memory", when it
 * found no memory. */
bool buf_check(const struct buf *buf, struct err *err) MUST_CHECK;

#endif
