/* SPDX-License-Identifier: Apache-2.0
 *
 * Growable bytes. The invariants: data is terminated at data[size], size never
 * exceeds size_max, and after an overflow nothing changes until a reset.
 */
#include "base/buf.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define CAPACITY_MIN 256

/* What data points at while nothing is allocated. Never written to: capacity is 0. */
static char empty_text[1];

void buf_init(struct buf *buf, size_t size_max)
{
    assert(buf != NULL && size_max < SIZE_MAX / 4);
    *buf = (struct buf){.data = empty_text, .size_max = size_max};
}

void buf_done(struct buf *buf)
{
    if (buf->capacity > 0) {
        free(buf->data);
    }
    buf_init(buf, buf->size_max);
}

void buf_reset(struct buf *buf)
{
    buf->has_overflowed = false;
    buf->has_no_memory = false;
    buf_truncate(buf, 0);
}

char *buf_reserve(struct buf *buf, size_t size)
{
    assert(buf->data != NULL && buf->size <= buf->size_max);
    if (buf->has_overflowed || size > buf->size_max - buf->size) {
        buf->has_overflowed = true;
        return NULL;
    }
    size_t wanted = buf->size + size + 1;
    if (wanted > buf->capacity) {
        size_t capacity = buf->capacity < CAPACITY_MIN ? CAPACITY_MIN : buf->capacity * 2;
        if (capacity > buf->size_max + 1) {
            capacity = buf->size_max + 1;
        }
        if (capacity < wanted) {
            capacity = wanted;
        }
        char *grown = realloc(buf->capacity > 0 ? buf->data : NULL, capacity);
        if (grown == NULL) {
            buf_lose(buf);
            return NULL;
        }
        buf->data = grown;
        buf->capacity = capacity;
        buf->data[buf->size] = '\0';
    }
    return buf->data + buf->size;
}

void buf_extend(struct buf *buf, size_t size)
{
    assert(size == 0 || buf->size + size < buf->capacity);
    buf->size += size;
    if (buf->capacity > 0) {
        buf->data[buf->size] = '\0';
    }
}

void buf_lose(struct buf *buf)
{
    buf->has_overflowed = true;
    buf->has_no_memory = true;
}

void buf_inherit(struct buf *buf, const struct buf *part)
{
    buf->has_overflowed = buf->has_overflowed || part->has_overflowed;
    buf->has_no_memory = buf->has_no_memory || part->has_no_memory;
}

void buf_append(struct buf *buf, const void *data, size_t size)
{
    char *room = buf_reserve(buf, size);
    if (room != NULL && size > 0) {
        memcpy(room, data, size);
        buf_extend(buf, size);
    }
}

void buf_text(struct buf *buf, const char *text)
{
    buf_append(buf, text, strlen(text));
}

void buf_char(struct buf *buf, char character)
{
    buf_append(buf, &character, 1);
}

void buf_vformat(struct buf *buf, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    assert(size >= 0);
    char *room = buf_reserve(buf, (size_t)size);
    if (room != NULL) {
        int written = vsnprintf(room, (size_t)size + 1, format, again);
        assert(written == size);
        buf_extend(buf, (size_t)size);
    }
    va_end(again);
}

void buf_format(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_vformat(buf, format, args);
    va_end(args);
}

static void append_special(struct buf *buf, char character)
{
    static const char letters[] = "\"\\bfnrt";
    static const char meanings[] = "\"\\\b\f\n\r\t";
    const char *found = memchr(meanings, character, sizeof meanings - 1);
    if (found != NULL) {
        buf_char(buf, '\\');
        buf_char(buf, letters[found - meanings]);
    } else {
        buf_format(buf, "\\u%04x", (unsigned)(unsigned char)character);
    }
}

/* Appends bytes that are well-formed UTF-8. */
static void append_escaped(struct buf *buf, const char *text, size_t size)
{
    size_t plain_begin = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < 0x20 || byte == '"' || byte == '\\') {
            buf_append(buf, text + plain_begin, i - plain_begin);
            append_special(buf, text[i]);
            plain_begin = i + 1;
        }
    }
    buf_append(buf, text + plain_begin, size - plain_begin);
}

void buf_json_string(struct buf *buf, const char *text, size_t size)
{
    buf_char(buf, '"');
    size_t wrong;
    while (!text_is_utf8(text, size, &wrong)) {
        append_escaped(buf, text, wrong);
        buf_text(buf, "\xEF\xBF\xBD");
        text += wrong + 1;
        size -= wrong + 1;
    }
    append_escaped(buf, text, size);
    buf_char(buf, '"');
}

void buf_truncate(struct buf *buf, size_t size)
{
    assert(size <= buf->size);
    buf->size = size;
    if (buf->capacity > 0) {
        buf->data[size] = '\0';
    }
}

void buf_consume(struct buf *buf, size_t size)
{
    assert(size <= buf->size);
    if (size > 0) {
        memmove(buf->data, buf->data + size, buf->size - size);
        buf_truncate(buf, buf->size - size);
    }
}

char *buf_take(struct buf *buf, size_t *ret_size)
{
    if (buf_reserve(buf, 0) == NULL) {
        return NULL;
    }
    char *data = buf->data;
    if (ret_size != NULL) {
        *ret_size = buf->size;
    }
    buf_init(buf, buf->size_max);
    return data;
}

bool buf_check(const struct buf *buf, struct err *err)
{
    if (buf->has_no_memory) {
        return err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for more than %zu bytes", buf->size);
    }
    if (buf->has_overflowed) {
        return err_set(err, ERR_PERMANENT, "too_large", "more than %zu bytes", buf->size_max);
    }
    return true;
}
