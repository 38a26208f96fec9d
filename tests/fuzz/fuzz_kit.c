/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz_kit.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct fuzz_input fuzz_input_of(const uint8_t *data, size_t size)
{
    const char *at = size == 0 ? "" : (const char *)data;
    return (struct fuzz_input){.at = at, .end = at + size};
}

static int hex_value(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

bool fuzz_line(struct fuzz_input *input, struct buf *out)
{
    buf_reset(out);
    if (input->at == input->end) {
        return false;
    }
    while (input->at < input->end && *input->at != '\n') {
        const char *at = input->at;
        bool is_escape =
            *at == '%' && input->end - at > 2 && isxdigit((unsigned char)at[1]) && isxdigit((unsigned char)at[2]);
        buf_char(out, is_escape ? (char)(hex_value(at[1]) * 16 + hex_value(at[2])) : *at);
        input->at += is_escape ? 3 : 1;
    }
    input->at += input->at < input->end;
    return true;
}

char *fuzz_rest(const struct fuzz_input *input, size_t *ret_size)
{
    *ret_size = (size_t)(input->end - input->at);
    char *copy = malloc(*ret_size + 1);
    assert(copy != NULL);
    memcpy(copy, input->at, *ret_size);
    copy[*ret_size] = '\0';
    return copy;
}

bool fuzz_is_plain(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (iscntrl((unsigned char)*at)) {
            return false;
        }
    }
    return text_is_utf8(text, strlen(text), NULL);
}

void fuzz_check_refusal(struct err *err)
{
    assert(err->kind == ERR_PERMANENT && err->code[0] != '\0' && err->text[0] != '\0');
    err_clear(err);
}
