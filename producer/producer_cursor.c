/* SPDX-License-Identifier: Apache-2.0
 *
 * Cursors are hexadecimal: no letter of them needs an escape in a query, and
 * nobody is tempted to build one.
 */
#include "producer_cursor.h"

#include <string.h>

#include "base/text.h"

static int digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c == '\0' ? NULL : strchr(digits, c);
    return found == NULL ? -1 : (int)(found - digits);
}

static void append(struct buf *buf, const char *text)
{
    for (; *text != '\0'; text++) {
        buf_format(buf, "%02x", (unsigned char)*text);
    }
}

void producer_cursor_write(struct buf *buf, const char *kind, const char *inner)
{
    append(buf, kind);
    append(buf, ":");
    append(buf, inner);
}

static bool decode(const char *text, char *ret_text, size_t size)
{
    size_t count = 0;
    for (; text[0] != '\0'; text += 2) {
        int high = digit(text[0]);
        int low = high < 0 ? -1 : digit(text[1]);
        if (low < 0 || count + 1 >= size || (high == 0 && low == 0)) {
            return false;
        }
        ret_text[count++] = (char)(high * 16 + low);
    }
    ret_text[count] = '\0';
    return true;
}

bool producer_cursor_read(const char *text, const char *kind, char *ret_inner, size_t size, struct err *err)
{
    char whole[1024];
    size_t kind_size = strlen(kind);
    if (!decode(text, whole, sizeof whole) || strncmp(whole, kind, kind_size) != 0 || whole[kind_size] != ':' ||
        !text_is_utf8(whole, strlen(whole), NULL) || !text_copy(ret_inner, size, whole + kind_size + 1)) {
        return err_set(err, ERR_PERMANENT, "query_invalid", "cursor is none that this list gave out");
    }
    return true;
}
