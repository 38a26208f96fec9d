/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON as views of its own text. jansson decides what is valid; the scanner
 * below walks only over texts that jansson has accepted, so it asserts where a
 * parser would report.
 */
#include "wire/wire_json.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/text.h"
#include "wire_private.h"

static bool refuse(struct err *err, size_t offset, const char *why)
{
    return err_set(err, ERR_PERMANENT, "body_invalid", "at byte %zu: %s", offset, why);
}

/* Looks only at strings and brackets, which needs no valid text. Before jansson, whose own limit is far away. */
static bool check_depth(const char *text, size_t size, struct err *err)
{
    size_t depth = 0;
    bool is_in_string = false;
    for (size_t i = 0; i < size; i++) {
        if (is_in_string && text[i] == '\\') {
            i++;
        } else if (text[i] == '"') {
            is_in_string = !is_in_string;
        } else if (is_in_string) {
            continue;
        } else if (text[i] == '{' || text[i] == '[') {
            if (++depth > WIRE_DEPTH_MAX) {
                return refuse(err, i, "nested too deep");
            }
        } else if ((text[i] == '}' || text[i] == ']') && depth > 0) {
            depth--;
        }
    }
    return true;
}

static const char *reason(enum json_error_code code)
{
    static const struct {
        enum json_error_code code;
        const char *text;
    } reasons[] = {
        {json_error_premature_end_of_input, "the text ends too early"},
        {json_error_end_of_input_expected, "something follows the value"},
        {json_error_null_character, "a NUL character"},
        {json_error_null_byte_in_key, "a NUL character in a member's name"},
        {json_error_duplicate_key, "a member's name for the second time"},
        {json_error_numeric_overflow, "a number out of range"},
        {json_error_stack_overflow, "nested too deep"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (reasons[i].code == code) {
            return reasons[i].text;
        }
    }
    return "not JSON";
}

static bool is_space(char character)
{
    return character == ' ' || character == '\t' || character == '\n' || character == '\r';
}

const char *wire_skip_space(const char *at, const char *end)
{
    while (at < end && is_space(*at)) {
        at++;
    }
    return at;
}

/* Behind the closing quote of the string that begins at at. */
static const char *skip_string(const char *at, const char *end)
{
    assert(at < end && *at == '"');
    for (at++; at < end && *at != '"'; at++) {
        at += *at == '\\';
    }
    assert(at < end);
    return at + 1;
}

/* Behind the bracket that closes the one at at. */
static const char *skip_nested(const char *at, const char *end)
{
    size_t depth = 0;
    do {
        assert(at < end);
        if (*at == '"') {
            at = skip_string(at, end);
            continue;
        }
        if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']') {
            depth--;
        }
        at++;
    } while (depth > 0);
    return at;
}

static const char *skip_plain(const char *at, const char *end)
{
    while (at < end && !is_space(*at) && *at != ',' && *at != ']' && *at != '}') {
        at++;
    }
    return at;
}

enum wire_kind wire_kind_at(char character)
{
    switch (character) {
    case '{': return WIRE_OBJECT;
    case '[': return WIRE_ARRAY;
    case '"': return WIRE_STRING;
    case 't':
    case 'f': return WIRE_BOOL;
    case 'n': return WIRE_NULL;
    default: return WIRE_NUMBER;
    }
}

struct wire_value wire_scan_value(const char **at, const char *end)
{
    const char *begin = wire_skip_space(*at, end);
    assert(begin < end);
    struct wire_value value = {.kind = wire_kind_at(*begin), .text = begin};
    if (value.kind == WIRE_STRING) {
        *at = skip_string(begin, end);
    } else if (value.kind == WIRE_OBJECT || value.kind == WIRE_ARRAY) {
        *at = skip_nested(begin, end);
    } else {
        *at = skip_plain(begin, end);
    }
    value.size = (size_t)(*at - begin);
    return value;
}

/* Where jansson finds no memory it may call the text wrong, so its allocator is ours and takes a note. */
static _Thread_local bool has_no_memory;

static void *allocate(size_t size)
{
    void *memory = malloc(size);
    has_no_memory = has_no_memory || memory == NULL;
    return memory;
}

static void set_allocator(void)
{
    json_set_alloc_funcs(allocate, free);
}

bool wire_json_check(const void *text, size_t size, struct wire_value *ret_value, struct err *err)
{
    assert(text != NULL && ret_value != NULL);
    const char *at = text;
    if (size >= 3 && memcmp(at, "\xEF\xBB\xBF", 3) == 0) {
        return refuse(err, 0, "a byte order mark");
    }
    /* jansson 2.14 overlooks a NUL behind a number or a word: it looks one byte ahead and cannot give a NUL back. */
    const char *nul = memchr(at, '\0', size);
    if (nul != NULL) {
        return refuse(err, (size_t)(nul - at), "a NUL character");
    }
    size_t wrong;
    if (!text_is_utf8(text, size, &wrong)) {
        return refuse(err, wrong, "not UTF-8");
    }
    if (!check_depth(at, size, err)) {
        return false;
    }
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int failed = pthread_once(&once, set_allocator);
    assert(failed == 0);
    has_no_memory = false;
    json_error_t error;
    json_auto_t *root = json_loadb(at, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (has_no_memory) {
        return err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory to read %zu bytes of JSON", size);
    }
    if (root == NULL) {
        size_t offset = error.position > 0 ? (size_t)error.position - 1 : 0;
        return err_set(err, ERR_PERMANENT, "body_invalid", "near byte %zu: %s", offset,
                       reason(json_error_code(&error)));
    }
    *ret_value = wire_scan_value(&at, at + size);
    return true;
}

struct wire_iterator wire_json_begin(const struct wire_value *value)
{
    bool has_items = value->kind == WIRE_OBJECT || value->kind == WIRE_ARRAY;
    const char *end = value->text + value->size;
    return (struct wire_iterator){
        .at = has_items ? value->text + 1 : end, .end = end, .is_object = value->kind == WIRE_OBJECT};
}

bool wire_json_next(struct wire_iterator *iterator, struct wire_value *ret_name, struct wire_value *ret_value)
{
    const char *at = wire_skip_space(iterator->at, iterator->end);
    if (at == iterator->end || *at == '}' || *at == ']') {
        return false;
    }
    struct wire_value name = {.kind = WIRE_ABSENT};
    if (iterator->is_object) {
        name = wire_scan_value(&at, iterator->end);
        at = wire_skip_space(at, iterator->end);
        assert(at < iterator->end && *at == ':');
        at++;
    }
    if (ret_name != NULL) {
        *ret_name = name;
    }
    *ret_value = wire_scan_value(&at, iterator->end);
    at = wire_skip_space(at, iterator->end);
    iterator->at = at < iterator->end && *at == ',' ? at + 1 : at;
    return true;
}

static unsigned hex_value(const char *digits)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        char digit = digits[i];
        value = value << 4 | (unsigned)(digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
    }
    return value;
}

static size_t encode_utf8(unsigned code, char bytes[4])
{
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = size; i-- > 1; code >>= 6) {
        bytes[i] = (char)(0x80U | (code & 0x3FU));
    }
    bytes[0] = (char)(leads[size] | code);
    return size;
}

/* What the escape at at (a backslash) means; gives the place behind it. */
static const char *read_escape(const char *at, char bytes[4], size_t *ret_size)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    const char *letter = strchr(letters, at[1]);
    if (letter != NULL) {
        bytes[0] = meanings[letter - letters];
        *ret_size = 1;
        return at + 2;
    }
    assert(at[1] == 'u');
    unsigned code = hex_value(at + 2);
    at += 6;
    if (code >= 0xD800 && code <= 0xDBFF) {
        code = 0x10000 + ((code - 0xD800) << 10) + (hex_value(at + 2) - 0xDC00);
        at += 6;
    }
    *ret_size = encode_utf8(code, bytes);
    return at;
}

/* The next bytes of a string's plain text: a run without escapes, or what one escape means. */
static const char *next_plain(const char *at, const char *end, char escape_bytes[4], const char **ret_bytes,
                              size_t *ret_size)
{
    if (*at == '\\') {
        *ret_bytes = escape_bytes;
        return read_escape(at, escape_bytes, ret_size);
    }
    const char *escape = memchr(at, '\\', (size_t)(end - at));
    const char *plain_end = escape == NULL ? end : escape;
    *ret_bytes = at;
    *ret_size = (size_t)(plain_end - at);
    return plain_end;
}

void wire_json_text(const struct wire_value *value, struct buf *out)
{
    if (value->kind != WIRE_STRING) {
        buf_append(out, value->text, value->size);
        return;
    }
    const char *at = value->text + 1;
    const char *end = value->text + value->size - 1;
    char escape_bytes[4];
    while (at < end) {
        const char *bytes = NULL;
        size_t size = 0;
        at = next_plain(at, end, escape_bytes, &bytes, &size);
        buf_append(out, bytes, size);
    }
}

size_t wire_json_text_size(const struct wire_value *value)
{
    assert(value->kind == WIRE_STRING);
    const char *at = value->text + 1;
    const char *end = value->text + value->size - 1;
    char escape_bytes[4];
    size_t whole = 0;
    while (at < end) {
        const char *bytes = NULL;
        size_t size = 0;
        at = next_plain(at, end, escape_bytes, &bytes, &size);
        whole += size;
    }
    return whole;
}

static bool is_text_of_size(const struct wire_value *value, const char *text, size_t size)
{
    if (value->kind != WIRE_STRING || value->size < size + 2) {
        return false;
    }
    const char *at = value->text + 1;
    const char *end = value->text + value->size - 1;
    char escape_bytes[4];
    while (at < end) {
        const char *bytes = NULL;
        size_t part = 0;
        at = next_plain(at, end, escape_bytes, &bytes, &part);
        if (part > size || memcmp(bytes, text, part) != 0) {
            return false;
        }
        text += part;
        size -= part;
    }
    return size == 0;
}

bool wire_json_is_text(const struct wire_value *value, const char *text)
{
    return is_text_of_size(value, text, strlen(text));
}

static struct wire_value member_of_size(const struct wire_value *value, const char *name, size_t size)
{
    struct wire_value found_name;
    struct wire_value found;
    struct wire_iterator iterator = wire_json_begin(value);
    while (iterator.is_object && wire_json_next(&iterator, &found_name, &found)) {
        if (is_text_of_size(&found_name, name, size)) {
            return found;
        }
    }
    return (struct wire_value){.kind = WIRE_ABSENT};
}

struct wire_value wire_json_member(const struct wire_value *value, const char *name)
{
    return member_of_size(value, name, strlen(name));
}

/* The item whose index is written in these digits. */
static struct wire_value item_of(const struct wire_value *value, const char *digits, size_t size)
{
    size_t index = 0;
    for (size_t i = 0; i < size; i++) {
        if (digits[i] < '0' || digits[i] > '9' || index > SIZE_MAX / 16) {
            return (struct wire_value){.kind = WIRE_ABSENT};
        }
        index = index * 10 + (size_t)(digits[i] - '0');
    }
    struct wire_value found;
    struct wire_iterator iterator = wire_json_begin(value);
    while (size > 0 && wire_json_next(&iterator, NULL, &found)) {
        if (index-- == 0) {
            return found;
        }
    }
    return (struct wire_value){.kind = WIRE_ABSENT};
}

struct wire_value wire_json_at(const struct wire_value *value, const char *path)
{
    struct wire_value here = *value;
    while (here.kind != WIRE_ABSENT) {
        size_t size = strcspn(path, ".");
        here = here.kind == WIRE_ARRAY ? item_of(&here, path, size) : member_of_size(&here, path, size);
        if (path[size] == '\0') {
            break;
        }
        path += size + 1;
    }
    return here;
}

bool wire_json_int64(const struct wire_value *value, int64_t *ret_number)
{
    char text[24];
    if (value->kind != WIRE_NUMBER || value->size >= sizeof text) {
        return false;
    }
    memcpy(text, value->text, value->size);
    text[value->size] = '\0';
    return text_to_int64(text, ret_number);
}

const char *wire_kind_name(enum wire_kind kind)
{
    switch (kind) {
    case WIRE_ABSENT: return "nothing";
    case WIRE_NULL: return "null";
    case WIRE_BOOL: return "true or false";
    case WIRE_NUMBER: return "a number";
    case WIRE_STRING: return "a string";
    case WIRE_ARRAY: return "an array";
    case WIRE_OBJECT: return "an object";
    }
    assert(false && "no such kind");
    return "nothing";
}
