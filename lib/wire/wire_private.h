/* SPDX-License-Identifier: Apache-2.0
 *
 * The scanner over checked texts, for the files of this module. It asserts where
 * a parser would report.
 */
#ifndef WIRE_PRIVATE_H
#define WIRE_PRIVATE_H

#include "wire/wire_json.h"

const char *wire_skip_space(const char *at, const char *end);

/* The kind of the value that begins with this character. */
enum wire_kind wire_kind_at(char character);

/* The value at *at, which moves behind it. Looks at every byte of it. */
struct wire_value wire_scan_value(const char **at, const char *end);

#endif
