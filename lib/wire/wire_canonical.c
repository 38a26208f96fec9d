/* SPDX-License-Identifier: Apache-2.0
 *
 * The canonical form. Fingerprints of stored requests hang on it, so it must
 * never change. Numbers never pass through a double.
 */
#include "wire/wire_canonical.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define EXPONENT_DIGITS_MAX 18

struct member {
    const char *name;
    size_t name_size;
    struct wire_value value;
};

/* The parts of a number's text. */
struct number {
    bool is_negative;
    struct buf digits; /* Significant ones, without zeros at either end. */
    int64_t exponent;  /* The value is 0.DIGITS times ten to this. */
};

static void append(const struct wire_value *value, struct buf *out);

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
    buf_done(&number.digits);
}

static void append_string(const struct wire_value *value, struct buf *out)
{
    struct buf plain;
    buf_init(&plain, value->size);
    wire_json_text(value, &plain);
    buf_json_string(out, plain.data, plain.size);
    buf_done(&plain);
}

static void append_array(const struct wire_value *value, struct buf *out)
{
    struct wire_value item;
    struct wire_iterator iterator = wire_json_begin(value);
    const char *separator = "[";
    while (wire_json_next(&iterator, NULL, &item)) {
        buf_text(out, separator);
        append(&item, out);
        separator = ",";
    }
    buf_text(out, separator[0] == '[' ? "[]" : "]");
}

static int compare_members(const void *left, const void *right)
{
    const struct member *a = left;
    const struct member *b = right;
    size_t shorter = a->name_size < b->name_size ? a->name_size : b->name_size;
    int order = memcmp(a->name, b->name, shorter);
    return order != 0 ? order : (a->name_size > b->name_size) - (a->name_size < b->name_size);
}

static size_t count_items(const struct wire_value *value)
{
    size_t count = 0;
    struct wire_value item;
    struct wire_iterator iterator = wire_json_begin(value);
    while (wire_json_next(&iterator, NULL, &item)) {
        count++;
    }
    return count;
}

/* The members with their names unescaped into names, which they borrow from. */
static struct member *collect_members(const struct wire_value *value, size_t count, struct buf *names)
{
    struct member *members = calloc(count + 1, sizeof *members);
    assert(members != NULL);
    struct wire_value name;
    struct wire_iterator iterator = wire_json_begin(value);
    for (size_t i = 0; wire_json_next(&iterator, &name, &members[i].value); i++) {
        size_t before = names->size;
        wire_json_text(&name, names);
        members[i].name_size = names->size - before;
    }
    const char *at = names->data;
    for (size_t i = 0; i < count; i++) {
        members[i].name = at;
        at += members[i].name_size;
    }
    return members;
}

static void append_object(const struct wire_value *value, struct buf *out)
{
    size_t count = count_items(value);
    struct buf names;
    buf_init(&names, value->size);
    struct member *members = collect_members(value, count, &names);
    qsort(members, count, sizeof *members, compare_members);
    buf_char(out, '{');
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            buf_char(out, ',');
        }
        buf_json_string(out, members[i].name, members[i].name_size);
        buf_char(out, ':');
        append(&members[i].value, out);
    }
    buf_char(out, '}');
    free(members);
    buf_done(&names);
}

static void append(const struct wire_value *value, struct buf *out)
{
    switch (value->kind) {
    case WIRE_ABSENT: return;
    case WIRE_NULL:
    case WIRE_BOOL: buf_append(out, value->text, value->size); return;
    case WIRE_NUMBER: append_number(value, out); return;
    case WIRE_STRING: append_string(value, out); return;
    case WIRE_ARRAY: append_array(value, out); return;
    case WIRE_OBJECT: append_object(value, out); return;
    }
    assert(false && "no such kind");
}

void wire_canonical_append(const struct wire_value *value, struct buf *out)
{
    assert(value != NULL && out != NULL);
    append(value, out);
}
