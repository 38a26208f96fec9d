/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64 (RFC 4648, section 4), in its one canonical form.
 */
#ifndef WIRE_WIRE_BASE64_H
#define WIRE_WIRE_BASE64_H

#include "base/buf.h"
#include "base/err.h"

void wire_base64_encode(const void *bytes, size_t size, struct buf *out);

/* Strict: padding where it belongs, no white space, no set bits behind the last byte. Permanent error "base64_invalid"
 * with the offset, or "too_large" when out is too small. Appends nothing on failure. */
bool wire_base64_decode(const char *text, size_t size, struct buf *out, struct err *err) MUST_CHECK;

#endif
