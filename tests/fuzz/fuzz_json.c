/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON as the API takes it. Of what was accepted, the canonical form is
 * accepted too and is its own canonical form, and every text in it comes back
 * from the writer as it was.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "fuzz_kit.h"
#include "wire/wire_canonical.h"
#include "wire/wire_json.h"
#include "wire/wire_write.h"

#define CANONICAL_SIZE_MAX (1 << 24)

static void check_string(const struct wire_value *value)
{
    struct buf text;
    struct buf json;
    struct buf again;
    struct wire_value read;
    struct err err = ERR_INIT;
    buf_init(&text, value->size);
    buf_init(&json, 8 * value->size);
    buf_init(&again, value->size);
    wire_json_text(value, &text);
    assert(!text.has_overflowed && strlen(text.data) == text.size && text_is_utf8(text.data, text.size, NULL));
    assert(wire_json_is_text(value, text.data));
    struct wire_writer writer = wire_write_begin(&json);
    wire_write_text_size(&writer, NULL, text.data, text.size);
    bool is_good = wire_json_check(json.data, json.size, &read, &err);
    assert(is_good && read.kind == WIRE_STRING);
    wire_json_text(&read, &again);
    assert(again.size == text.size && memcmp(again.data, text.data, text.size) == 0);
    buf_done(&text);
    buf_done(&json);
    buf_done(&again);
}

/* The canonical form is the same number, and an integer is what it says. */
static void check_number(const struct wire_value *value)
{
    char text[24];
    int64_t number;
    struct buf canonical;
    buf_init(&canonical, CANONICAL_SIZE_MAX);
    wire_canonical_append(value, &canonical);
    assert(strtod(canonical.data, NULL) == strtod(value->text, NULL));
    buf_done(&canonical);
    if (wire_json_int64(value, &number)) {
        text_format(text, sizeof text, "%lld", (long long)number);
        assert((strlen(text) == value->size && memcmp(text, value->text, value->size) == 0) || number == 0);
    }
}

static void walk(const struct wire_value *value, int depth)
{
    struct wire_value name;
    struct wire_value found;
    assert(depth <= WIRE_DEPTH_MAX);
    struct wire_iterator iterator = wire_json_begin(value);
    while (wire_json_next(&iterator, &name, &found)) {
        assert(found.text > value->text && found.text + found.size < value->text + value->size);
        if (name.kind != WIRE_ABSENT) {
            struct buf plain;
            buf_init(&plain, name.size);
            check_string(&name);
            wire_json_text(&name, &plain);
            assert(wire_json_member(value, plain.data).text == found.text);
            buf_done(&plain);
        }
        walk(&found, depth + 1);
    }
    if (value->kind == WIRE_STRING) {
        check_string(value);
    } else if (value->kind == WIRE_NUMBER) {
        check_number(value);
    }
}

static void check_canonical(const struct wire_value *value)
{
    struct buf first;
    struct buf second;
    struct wire_value again;
    struct err err = ERR_INIT;
    buf_init(&first, CANONICAL_SIZE_MAX);
    buf_init(&second, CANONICAL_SIZE_MAX);
    wire_canonical_append(value, &first);
    bool is_good = wire_json_check(first.data, first.size, &again, &err);
    assert(is_good && again.kind == value->kind);
    wire_canonical_append(&again, &second);
    assert(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    buf_done(&first);
    buf_done(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = fuzz_input_of(data, size);
    struct wire_value value;
    struct err err = ERR_INIT;
    size_t text_size;
    char *text = fuzz_rest(&input, &text_size);
    if (wire_json_check(text, text_size, &value, &err)) {
        walk(&value, 0);
        check_canonical(&value);
    } else {
        fuzz_check_refusal(&err);
    }
    free(text);
    return 0;
}
