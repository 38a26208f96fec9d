/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading JSON without losing what was written. A text is checked once, with
 * every strictness that the API promises; after that its values are views: the
 * bytes of the value as they stand in the text. Nothing is ever serialised
 * anew, so data travels byte for byte and big numbers keep their digits.
 */
#ifndef WIRE_WIRE_JSON_H
#define WIRE_WIRE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define WIRE_DEPTH_MAX 64

/* Bits, so that a set of them can be asked for. */
enum wire_kind {
    WIRE_ABSENT = 0,
    WIRE_NULL = 1,
    WIRE_BOOL = 2,
    WIRE_NUMBER = 4,
    WIRE_STRING = 8,
    WIRE_ARRAY = 16,
    WIRE_OBJECT = 32,
};

/* A value inside a checked text; borrows from it. text has no white space around it; of a string it has the quotes. */
struct wire_value {
    enum wire_kind kind;
    const char *text;
    size_t size;
};

/* A place in an object or array. */
struct wire_iterator {
    const char *at;
    const char *end;
    bool is_object;
};

/* Checks a whole text: RFC 8259, and refused besides: duplicate members, NUL (also escaped), bad UTF-8, lone
 * surrogates, a byte order mark, more than WIRE_DEPTH_MAX levels, integers beyond int64, numbers beyond double. On
 * success *ret_value is the text's one value. Permanent error "body_invalid" with the byte offset in its text;
 * transient "out_of_memory". */
bool wire_json_check(const void *text, size_t size, struct wire_value *ret_value, struct err *err) MUST_CHECK;

/* The members of an object or the items of an array in their order. False at the end. *ret_name (a string, absent in an
 * array) may be NULL. Other kinds have none. */
struct wire_iterator wire_json_begin(const struct wire_value *value);
bool wire_json_next(struct wire_iterator *iterator, struct wire_value *ret_name, struct wire_value *ret_value);

/* The member of this name; kind is WIRE_ABSENT where there is none or value is no object. */
struct wire_value wire_json_member(const struct wire_value *value, const char *name);

/* Follows a path of member names and array indexes, as in "data.items.0.name". WIRE_ABSENT where it leads nowhere,
 * which a null at its end is not. Names that hold a full stop cannot be reached. */
struct wire_value wire_json_at(const struct wire_value *value, const char *path);

/* The value as text: a string without quotes and escapes, everything else as it was written. */
void wire_json_text(const struct wire_value *value, struct buf *out);

/* How many bytes that is, for a string. */
size_t wire_json_text_size(const struct wire_value *value);

/* Whether value is a string of this text. */
bool wire_json_is_text(const struct wire_value *value, const char *text);

/* False when value is no integer in its form as written ("1.0" and "1e0" are none). */
bool wire_json_int64(const struct wire_value *value, int64_t *ret_number) MUST_CHECK;

/* "string", "number", … for messages. */
const char *wire_kind_name(enum wire_kind kind);

#endif
