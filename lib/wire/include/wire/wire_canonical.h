/* SPDX-License-Identifier: Apache-2.0
 *
 * One form for all ways to write the same JSON value, for comparing and hashing.
 */
#ifndef WIRE_WIRE_CANONICAL_H
#define WIRE_WIRE_CANONICAL_H

#include "wire/wire_json.h"

/* Appends the canonical form: members sorted by the bytes of their names, no white space, strings unescaped and escaped
 * in one way only, numbers as exact decimal texts (1, 1.0, 1e0 and 10e-1 are equal, and so are 0 and -0). Two values
 * are equal if and only if the forms are. Numbers whose exponent has more than 18 digits equal only their own form. */
void wire_canonical_append(const struct wire_value *value, struct buf *out);

#endif
