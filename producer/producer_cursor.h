/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a page ends, as a text that callers hand back and need not understand.
 */
#ifndef PRODUCER_CURSOR_H
#define PRODUCER_CURSOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Appends the text of `inner`, prefixed by the kind of list it belongs to, in letters that need no escape. */
void producer_cursor_write(struct buf *buf, const char *kind, const char *inner);

/* Permanent "query_invalid" unless it was written for this kind. */
bool producer_cursor_read(const char *text, const char *kind, char *ret_inner, size_t size, struct err *err) MUST_CHECK;

#endif
