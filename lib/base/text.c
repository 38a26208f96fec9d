/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounded formatting, strict numbers, UTF-8.
 */
#include "base/text.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool text_vformat(char *ret_text, size_t size, const char *format, va_list args)
{
    assert(ret_text != NULL && size > 0);
    int wanted = vsnprintf(ret_text, size, format, args);
    assert(wanted >= 0);
    return (size_t)wanted < size;
}

bool text_format(char *ret_text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    bool fits = text_vformat(ret_text, size, format, args);
    va_end(args);
    return fits;
}

bool text_copy(char *ret_text, size_t size, const char *text)
{
    assert(ret_text != NULL && size > 0 && text != NULL);
    size_t length = strnlen(text, size);
    bool fits = length < size;
    size_t copied = fits ? length : size - 1;
    memcpy(ret_text, text, copied);
    ret_text[copied] = '\0';
    return fits;
}

bool text_is_equal(const char *left, const char *right)
{
    if (left == NULL || right == NULL) {
        return left == right;
    }
    return strcmp(left, right) == 0;
}

bool text_has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool text_has_suffix(const char *text, const char *suffix)
{
    size_t text_size = strlen(text);
    size_t suffix_size = strlen(suffix);
    return text_size >= suffix_size && memcmp(text + text_size - suffix_size, suffix, suffix_size) == 0;
}

bool text_to_int64(const char *text, int64_t *ret_number)
{
    assert(text != NULL && ret_number != NULL);
    const char *digits = text[0] == '-' ? text + 1 : text;
    if (!isdigit((unsigned char)digits[0]) || digits[strspn(digits, "0123456789")] != '\0') {
        return false;
    }
    errno = 0;
    long long number = strtoll(text, NULL, 10);
    if (errno != 0) {
        return false;
    }
    *ret_number = number;
    return true;
}

bool text_has_control(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f) {
            return true;
        }
    }
    return false;
}

int text_hex_value(char digit)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *found = digit == '\0' ? NULL : strchr(digits, digit);
    return found == NULL ? -1 : (int)((found - digits) % 16);
}

/* The size of the well-formed character at text, 0 when there is none (RFC 3629, section 4). */
static size_t utf8_character_size(const unsigned char *text, size_t size)
{
    unsigned char lead = text[0];
    unsigned char second_min = 0x80;
    unsigned char second_max = 0xBF;
    size_t wanted;
    if (lead < 0x80) {
        return 1;
    } else if (lead >= 0xC2 && lead <= 0xDF) {
        wanted = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        wanted = 3;
        second_min = lead == 0xE0 ? 0xA0 : 0x80;
        second_max = lead == 0xED ? 0x9F : 0xBF;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        wanted = 4;
        second_min = lead == 0xF0 ? 0x90 : 0x80;
        second_max = lead == 0xF4 ? 0x8F : 0xBF;
    } else {
        return 0;
    }
    if (size < wanted || text[1] < second_min || text[1] > second_max) {
        return 0;
    }
    for (size_t i = 2; i < wanted; i++) {
        if ((text[i] & 0xC0U) != 0x80U) {
            return 0;
        }
    }
    return wanted;
}

bool text_is_utf8(const void *text, size_t size, size_t *ret_offset)
{
    const unsigned char *bytes = text;
    for (size_t i = 0; i < size;) {
        size_t step = utf8_character_size(bytes + i, size - i);
        if (step == 0) {
            if (ret_offset != NULL) {
                *ret_offset = i;
            }
            return false;
        }
        i += step;
    }
    return true;
}
