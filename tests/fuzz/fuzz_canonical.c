/* SPDX-License-Identifier: Apache-2.0
 *
 * The canonical form as the fingerprint of a call: equal values have one, however they are written, and different
 * decimals have two.
 *
 * Input: a line with a number, a line with another, each as JSON writes it; then any JSON value. The numbers are
 * compared by a naive reading of their digits; the value is written anew with members backwards, all characters of its
 * strings as escapes, white space wherever it may stand, and numbers with another exponent.
 */
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "digest/sha256.h"
#include "fuzz_kit.h"
#include "wire/wire_canonical.h"
#include "wire/wire_json.h"

#define SIZE_MAX_OUT (1 << 24)
#define LINE_SIZE_MAX 4096
#define EXPONENT_MAX 100000 /* Of what is compared naively and written anew; beyond it other rules hold. */

static void fingerprint(const struct wire_value *value, unsigned char ret_hash[SHA256_SIZE])
{
    struct buf form;
    buf_init(&form, SIZE_MAX_OUT);
    wire_canonical_append(value, &form);
    assert(!form.has_overflowed);
    sha256(form.data, form.size, ret_hash);
    buf_done(&form);
}

static bool has_equal_fingerprints(const struct wire_value *a, const struct wire_value *b)
{
    unsigned char first[SHA256_SIZE];
    unsigned char second[SHA256_SIZE];
    fingerprint(a, first);
    fingerprint(b, second);
    return memcmp(first, second, SHA256_SIZE) == 0;
}

/* ---- decimals ---- */

/* Whole digits and the power of ten of the last one. */
struct decimal {
    bool is_negative;
    char digits[LINE_SIZE_MAX];
    size_t count;
    long power;
};

/* False: its exponent is beyond what is compared here. */
static bool read_decimal(const struct wire_value *value, struct decimal *ret)
{
    const char *end = value->text + value->size;
    bool is_behind_point = false;
    *ret = (struct decimal){.is_negative = value->text[0] == '-'};
    for (const char *at = value->text; at < end; at++) {
        if (isdigit((unsigned char)*at)) {
            assert(ret->count < LINE_SIZE_MAX);
            ret->digits[ret->count++] = *at;
            ret->power -= is_behind_point;
        } else if (*at == '.') {
            is_behind_point = true;
        } else if (*at == 'e' || *at == 'E') {
            char text[LINE_SIZE_MAX + 1] = "";
            memcpy(text, at + 1, (size_t)(end - at - 1));
            long exponent = strtol(text, NULL, 10);
            if (labs(exponent) > EXPONENT_MAX) {
                return false;
            }
            ret->power += exponent;
            break;
        }
    }
    return true;
}

/* The digit that stands for this power of ten. */
static char digit_at(const struct decimal *decimal, long power)
{
    long place = (long)decimal->count - 1 - (power - decimal->power);
    return place < 0 || place >= (long)decimal->count ? '0' : decimal->digits[place];
}

static bool is_equal(const struct decimal *a, const struct decimal *b)
{
    long least = a->power < b->power ? a->power : b->power;
    long top_a = a->power + (long)a->count;
    long top_b = b->power + (long)b->count;
    long top = top_a > top_b ? top_a : top_b;
    bool is_zero = true;
    for (long power = least; power < top; power++) {
        if (digit_at(a, power) != digit_at(b, power)) {
            return false;
        }
        is_zero = is_zero && digit_at(a, power) == '0';
    }
    return is_zero || a->is_negative == b->is_negative;
}

static void check_pair(const struct buf *left, const struct buf *right)
{
    static struct decimal a;
    static struct decimal b;
    struct wire_value values[2];
    struct err err = ERR_INIT;
    if (!wire_json_check(left->data, left->size, &values[0], &err) ||
        !wire_json_check(right->data, right->size, &values[1], &err) || values[0].kind != WIRE_NUMBER ||
        values[1].kind != WIRE_NUMBER) {
        return;
    }
    if (read_decimal(&values[0], &a) && read_decimal(&values[1], &b)) {
        assert(has_equal_fingerprints(&values[0], &values[1]) == is_equal(&a, &b));
    }
}

/* ---- another spelling ---- */

static void respell(const struct wire_value *value, struct buf *out);

static void respell_string(const struct wire_value *value, struct buf *out)
{
    struct buf plain;
    buf_init(&plain, value->size);
    wire_json_text(value, &plain);
    buf_char(out, '"');
    for (size_t i = 0; i < plain.size; i++) {
        unsigned char byte = (unsigned char)plain.data[i];
        if (byte < 0x80) {
            buf_format(out, i % 2 == 0 ? "\\u%04x" : "\\u%04X", byte);
        } else {
            buf_char(out, (char)byte);
        }
    }
    buf_char(out, '"');
    buf_done(&plain);
}

/* The same digits, ten thousand times as small, with an exponent that says so. */
static void respell_number(const struct wire_value *value, struct buf *out)
{
    static struct decimal decimal;
    int64_t number;
    if (value->size >= LINE_SIZE_MAX || wire_json_int64(value, &number) || !read_decimal(value, &decimal)) {
        buf_append(out, value->text, value->size); /* An integer may not become one beyond 64 bits. */
        return;
    }
    size_t first = 0;
    while (first + 1 < decimal.count && decimal.digits[first] == '0') {
        first++;
    }
    buf_text(out, decimal.is_negative ? "-" : "");
    buf_char(out, decimal.digits[first]);
    buf_char(out, '.');
    buf_append(out, decimal.digits + first + 1, decimal.count - first - 1);
    buf_format(out, "000E%+05ld", decimal.power + (long)(decimal.count - first - 1));
}

static void respell_object(const struct wire_value *value, struct buf *out)
{
    struct wire_value names[256];
    struct wire_value members[256];
    size_t count = 0;
    struct wire_iterator iterator = wire_json_begin(value);
    while (count < 256 && wire_json_next(&iterator, &names[count], &members[count])) {
        count++;
    }
    if (count == 256) {
        buf_append(out, value->text, value->size);
        return;
    }
    buf_text(out, "{\n");
    while (count-- > 0) {
        respell_string(&names[count], out);
        buf_text(out, "\t:\r\n ");
        respell(&members[count], out);
        buf_text(out, count > 0 ? " , " : " ");
    }
    buf_char(out, '}');
}

static void respell(const struct wire_value *value, struct buf *out)
{
    struct wire_value item;
    struct wire_value name;
    bool is_first = true;
    switch (value->kind) {
    case WIRE_OBJECT: respell_object(value, out); break;
    case WIRE_ARRAY:
        buf_text(out, " [");
        for (struct wire_iterator iterator = wire_json_begin(value); wire_json_next(&iterator, &name, &item);) {
            buf_text(out, is_first ? " " : "\n,");
            is_first = false;
            respell(&item, out);
        }
        buf_text(out, "\t]");
        break;
    case WIRE_STRING: respell_string(value, out); break;
    case WIRE_NUMBER: respell_number(value, out); break;
    case WIRE_NULL:
    case WIRE_BOOL:
    case WIRE_ABSENT: buf_append(out, value->text, value->size); break;
    }
}

static void check_spelling(const char *text, size_t size)
{
    struct wire_value value;
    struct wire_value again;
    struct buf other;
    struct err err = ERR_INIT;
    if (!wire_json_check(text, size, &value, &err)) {
        fuzz_check_refusal(&err);
        return;
    }
    buf_init(&other, SIZE_MAX_OUT);
    respell(&value, &other);
    bool is_good = !other.has_overflowed && wire_json_check(other.data, other.size, &again, &err);
    assert(is_good && has_equal_fingerprints(&value, &again));
    buf_done(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = fuzz_input_of(data, size);
    struct buf numbers[2];
    for (size_t i = 0; i < 2; i++) {
        buf_init(&numbers[i], LINE_SIZE_MAX - 1);
        (void)fuzz_line(&input, &numbers[i]);
    }
    check_pair(&numbers[0], &numbers[1]);
    size_t text_size;
    char *text = fuzz_rest(&input, &text_size);
    check_spelling(text, text_size);
    free(text);
    for (size_t i = 0; i < 2; i++) {
        buf_done(&numbers[i]);
    }
    return 0;
}
