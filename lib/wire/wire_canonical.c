/* SPDX-License-Identifier: Apache-2.0
 *
 * The canonical form. Fingerprints of stored requests hang on it, so it must
 * never change. Numbers never pass through a double.
 */
#include "wire/wire_canonical.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "wire_private.h"

#define EXPONENT_DIGITS_MAX 18

/* A member that stands in the output, not yet at its place. */
struct piece {
    size_t name_offset; /* Of the plain name in names. */
    size_t name_size;
    size_t offset; /* Of "name":value in the output. */
    size_t size;
};

struct pieces {
    struct piece *items;
    size_t count;
    size_t count_max;
    struct buf names;
};

/* The parts of a number's text. */
struct number {
    bool is_negative;
    struct buf digits; /* Significant ones, without zeros at either end. */
    int64_t exponent;  /* The value is 0.DIGITS times ten to this. */
};

static const char *append_at(const char *at, const char *end, struct buf *out);

/* Collects digits and says how many there were. Leading zeros are counted apart, as long as digits is empty. */
static const char *take_digits(const char *at, const char *end, struct buf *digits, int64_t *ret_zeros)
{
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        if (digits->size == 0 && *at == '0') {
            (*ret_zeros)++;
        } else {
            buf_char(digits, *at);
        }
    }
    return at;
}

/* Splits a number. False when its exponent is too long to count with; *ret_exponent_text is then where it begins. */
static bool parse_number(const struct wire_value *value, struct number *number)
{
    const char *at = value->text;
    const char *end = at + value->size;
    number->is_negative = *at == '-';
    at += number->is_negative;
    int64_t whole_zeros = 0;
    int64_t fraction_zeros = 0;
    at = take_digits(at, end, &number->digits, &whole_zeros);
    number->exponent = (int64_t)number->digits.size;
    if (at < end && *at == '.') {
        at = take_digits(at + 1, end, &number->digits, &fraction_zeros);
    }
    number->exponent -= fraction_zeros;
    while (number->digits.size > 0 && number->digits.data[number->digits.size - 1] == '0') {
        buf_truncate(&number->digits, number->digits.size - 1);
    }
    if (at == end) {
        return true;
    }
    at++;
    bool is_small = *at == '-';
    at += *at == '-' || *at == '+';
    while (at < end - 1 && *at == '0') {
        at++;
    }
    if (end - at > EXPONENT_DIGITS_MAX) {
        return false;
    }
    int64_t exponent = 0;
    for (; at < end; at++) {
        exponent = exponent * 10 + (*at - '0');
    }
    number->exponent += is_small ? -exponent : exponent;
    return true;
}

static void append_number(const struct wire_value *value, struct buf *out)
{
    struct number number = {.exponent = 0};
    buf_init(&number.digits, value->size);
    if (!parse_number(value, &number)) {
        buf_append(out, value->text, value->size);
    } else if (number.digits.size == 0) {
        buf_char(out, '0');
    } else {
        buf_format(out, "%s0.%se%lld", number.is_negative ? "-" : "", number.digits.data, (long long)number.exponent);
    }
    buf_inherit(out, &number.digits);
    buf_done(&number.digits);
}

static void append_string(const struct wire_value *value, struct buf *out)
{
    struct buf plain;
    buf_init(&plain, value->size);
    wire_json_text(value, &plain);
    buf_json_string(out, plain.data, plain.size);
    buf_inherit(out, &plain);
    buf_done(&plain);
}

static const char *append_array(const char *at, const char *end, struct buf *out)
{
    char separator = '[';
    at = wire_skip_space(at + 1, end);
    while (*at != ']') {
        buf_char(out, separator);
        separator = ',';
        at = wire_skip_space(append_at(at, end, out), end);
        at = *at == ',' ? wire_skip_space(at + 1, end) : at;
    }
    buf_text(out, separator == '[' ? "[]" : "]");
    return at + 1;
}

static int compare_pieces(const void *left, const void *right, void *context)
{
    const struct piece *a = left;
    const struct piece *b = right;
    const struct buf *names = context;
    size_t shorter = a->name_size < b->name_size ? a->name_size : b->name_size;
    int order = memcmp(names->data + a->name_offset, names->data + b->name_offset, shorter);
    return order != 0 ? order : (a->name_size > b->name_size) - (a->name_size < b->name_size);
}

/* False without memory. */
static bool add_piece(struct pieces *pieces, const struct piece *piece)
{
    if (pieces->count == pieces->count_max) {
        size_t count_max = pieces->count_max == 0 ? 8 : pieces->count_max * 2;
        struct piece *grown = realloc(pieces->items, count_max * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        pieces->items = grown;
        pieces->count_max = count_max;
    }
    pieces->items[pieces->count++] = *piece;
    return true;
}

/* Appends "name":value as it comes and notes where it stands. */
static const char *append_member(const char *at, const char *end, struct pieces *pieces, struct buf *out)
{
    struct piece piece = {.name_offset = pieces->names.size, .offset = out->size};
    struct wire_value name = wire_scan_value(&at, end);
    wire_json_text(&name, &pieces->names);
    piece.name_size = pieces->names.size - piece.name_offset;
    buf_json_string(out, pieces->names.data + piece.name_offset, piece.name_size);
    buf_char(out, ':');
    at = wire_skip_space(at, end);
    assert(*at == ':');
    at = append_at(at + 1, end, out);
    piece.size = out->size - piece.offset;
    if (!add_piece(pieces, &piece)) {
        buf_lose(out);
    }
    return at;
}

/* Puts the pieces, which are the output from begin on, into order, with commas between them. */
static void arrange(struct pieces *pieces, size_t begin, struct buf *out)
{
    struct buf copy;
    buf_init(&copy, out->size - begin);
    buf_append(&copy, out->data + begin, out->size - begin);
    buf_inherit(out, &copy);
    if (out->has_overflowed) {
        buf_done(&copy);
        return;
    }
    buf_truncate(out, begin);
    qsort_r(pieces->items, pieces->count, sizeof *pieces->items, compare_pieces, &pieces->names);
    for (size_t i = 0; i < pieces->count; i++) {
        buf_text(out, i == 0 ? "" : ",");
        buf_append(out, copy.data + (pieces->items[i].offset - begin), pieces->items[i].size);
    }
    buf_done(&copy);
}

static const char *append_object(const char *at, const char *end, struct buf *out)
{
    struct pieces pieces = {.count = 0};
    buf_init(&pieces.names, (size_t)(end - at));
    buf_char(out, '{');
    size_t begin = out->size;
    at = wire_skip_space(at + 1, end);
    while (*at != '}') {
        at = wire_skip_space(append_member(at, end, &pieces, out), end);
        at = *at == ',' ? wire_skip_space(at + 1, end) : at;
    }
    buf_inherit(out, &pieces.names);
    if (pieces.count > 1) {
        arrange(&pieces, begin, out);
    }
    buf_char(out, '}');
    free(pieces.items);
    buf_done(&pieces.names);
    return at + 1;
}

/* Appends the value at at and gives the place behind it. Each byte of the text is looked at once, however deep it lies.
 */
static const char *append_at(const char *at, const char *end, struct buf *out)
{
    at = wire_skip_space(at, end);
    assert(at < end);
    enum wire_kind kind = wire_kind_at(*at);
    if (kind == WIRE_OBJECT) {
        return append_object(at, end, out);
    }
    if (kind == WIRE_ARRAY) {
        return append_array(at, end, out);
    }
    struct wire_value value = wire_scan_value(&at, end);
    if (kind == WIRE_NUMBER) {
        append_number(&value, out);
    } else if (kind == WIRE_STRING) {
        append_string(&value, out);
    } else {
        buf_append(out, value.text, value.size);
    }
    return at;
}

void wire_canonical_append(const struct wire_value *value, struct buf *out)
{
    assert(value != NULL && out != NULL);
    if (value->kind != WIRE_ABSENT) {
        (void)append_at(value->text, value->text + value->size, out);
    }
}
