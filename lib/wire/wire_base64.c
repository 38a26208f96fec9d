/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64. Decoding is strict, so that equal contents have equal texts.
 */
#include "wire/wire_base64.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void wire_base64_encode(const void *bytes, size_t size, struct buf *out)
{
    const uint8_t *in = bytes;
    char *at = buf_reserve(out, (size + 2) / 3 * 4);
    if (at == NULL) {
        return;
    }
    for (size_t i = 0; i < size; i += 3) {
        size_t have = size - i < 3 ? size - i : 3;
        uint32_t group = (uint32_t)in[i] << 16;
        group |= have > 1 ? (uint32_t)in[i + 1] << 8 : 0;
        group |= have > 2 ? (uint32_t)in[i + 2] : 0;
        for (size_t j = 0; j < 4; j++) {
            *at++ = j > have ? '=' : alphabet[group >> (18 - 6 * j) & 0x3FU];
        }
    }
    buf_extend(out, (size + 2) / 3 * 4);
}

/* The value of each character plus one; 0 where it is none of the alphabet. */
static void fill_values(uint8_t values[256])
{
    memset(values, 0, 256);
    for (size_t i = 0; i < sizeof alphabet - 1; i++) {
        values[(uint8_t)alphabet[i]] = (uint8_t)(i + 1);
    }
}

/* Also ends out again where it ended before. */
static bool refuse(struct buf *out, size_t offset, struct err *err)
{
    buf_truncate(out, out->size);
    return err_set(err, ERR_PERMANENT, "base64_invalid", "not base64 at character %zu", offset);
}

bool wire_base64_decode(const char *text, size_t size, struct buf *out, struct err *err)
{
    uint8_t values[256];
    fill_values(values);
    size_t padding = 0;
    while (padding < 2 && padding < size && text[size - 1 - padding] == '=') {
        padding++;
    }
    if (size % 4 != 0) {
        return refuse(out, size, err);
    }
    size_t decoded_size = size / 4 * 3 - padding;
    char *at = buf_reserve(out, decoded_size);
    if (at == NULL) {
        return buf_check(out, err);
    }
    uint32_t group = 0;
    for (size_t i = 0; i < size; i++) {
        uint8_t value = values[(uint8_t)text[i]];
        if (value == 0 && i < size - padding) {
            return refuse(out, i, err);
        }
        group = group << 6 | (i < size - padding ? (uint32_t)(value - 1) : 0);
        if (i % 4 == 3) {
            const char bytes[] = {(char)(group >> 16), (char)(group >> 8), (char)group};
            size_t count = i + 1 == size ? 3 - padding : 3;
            memcpy(at, bytes, count);
            at += count;
        }
    }
    uint32_t unused_bits = padding == 0 ? 0 : padding == 1 ? group & 0xFFU : group & 0xFFFFU;
    if (unused_bits != 0) {
        return refuse(out, size - padding - 1, err);
    }
    buf_extend(out, decoded_size);
    return true;
}
