/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors as values. The invariant: a recorded error is never overwritten, and
 * its text is always terminated and never ends inside a UTF-8 character.
 */
#include "base/err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Cuts a text that was too long at the last whole UTF-8 character. */
static void cut_at_character(char *text, size_t size)
{
    size_t end = strlen(text);
    if (end + 1 < size) {
        return;
    }
    while (end > 0 && ((unsigned char)text[end - 1] & 0xC0U) == 0x80U) {
        end--;
    }
    if (end > 0 && ((unsigned char)text[end - 1] & 0x80U) != 0) {
        text[end - 1] = '\0';
    }
}

static void format_text(char *text, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

static void format_text(char *text, size_t size, const char *format, va_list args)
{
    int wanted = vsnprintf(text, size, format, args);
    if (wanted < 0) {
        text[0] = '\0';
    } else if ((size_t)wanted >= size) {
        cut_at_character(text, size);
    }
    text[strcspn(text, "\r\n")] = '\0';
}

bool err_set(struct err *err, enum err_kind kind, const char *code, const char *format, ...)
{
    assert(err != NULL && code != NULL && kind != ERR_NONE);
    if (err->kind != ERR_NONE) {
        return false;
    }
    err->kind = kind;
    strncpy(err->code, code, sizeof err->code - 1);
    err->code[sizeof err->code - 1] = '\0';
    va_list args;
    va_start(args, format);
    format_text(err->text, sizeof err->text, format, args);
    va_end(args);
    return false;
}

bool err_prefix(struct err *err, const char *format, ...)
{
    assert(err != NULL && err->kind != ERR_NONE);
    char inner[ERR_TEXT_SIZE];
    memcpy(inner, err->text, sizeof inner);
    va_list args;
    va_start(args, format);
    format_text(err->text, sizeof err->text, format, args);
    va_end(args);
    size_t used = strlen(err->text);
    int wanted = snprintf(err->text + used, sizeof err->text - used, ": %s", inner);
    if (wanted < 0 || (size_t)wanted >= sizeof err->text - used) {
        cut_at_character(err->text, sizeof err->text);
    }
    return false;
}

void err_clear(struct err *err)
{
    assert(err != NULL);
    *err = (struct err)ERR_INIT;
}

const char *err_kind_name(enum err_kind kind)
{
    switch (kind) {
    case ERR_NONE: return "none";
    case ERR_TRANSIENT: return "transient";
    case ERR_PERMANENT: return "permanent";
    case ERR_FATAL: return "fatal";
    }
    assert(false && "no such kind");
    return "none";
}
