/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes chunked bodies apart, strictly. llhttp 8.1 does not look at the two
 * bytes behind a chunk's data, so a chunk that is longer than its size would
 * be read as the next one; here they must be CR LF. No trailer is taken.
 */
#include "http_private.h"

#include <ctype.h>
#include <string.h>

#define CHUNK_DIGIT_COUNT_MAX 8
#define CHUNK_EXTENSION_SIZE_MAX 1024

static bool take_digit(struct http_chunk *chunk, unsigned char c)
{
    if (!isxdigit(c) || ++chunk->digit_count > CHUNK_DIGIT_COUNT_MAX) {
        return false;
    }
    chunk->left_size = chunk->left_size * 16 + (uint64_t)(isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
    return true;
}

/* The bytes of a chunk's first line. False when c cannot stand there. */
static bool take_line_byte(struct http_chunk *chunk, unsigned char c)
{
    if (chunk->place == HTTP_CHUNK_SIZE) {
        if (c == '\r' && chunk->digit_count > 0) {
            chunk->place = HTTP_CHUNK_SIZE_LF;
            return true;
        }
        if (c == ';' && chunk->digit_count > 0) {
            chunk->place = HTTP_CHUNK_EXTENSION;
            return true;
        }
        return take_digit(chunk, c);
    }
    if (c == '\r') {
        chunk->place = HTTP_CHUNK_SIZE_LF;
        return true;
    }
    return (c == '\t' || (c >= 0x20 && c < 0x7f)) && ++chunk->extension_size <= CHUNK_EXTENSION_SIZE_MAX;
}

static void end_line(struct http_chunk *chunk)
{
    chunk->place = chunk->left_size == 0 ? HTTP_CHUNK_END_CR : HTTP_CHUNK_DATA;
    chunk->digit_count = 0;
    chunk->extension_size = 0;
}

static bool take_byte(struct http_chunk *chunk, unsigned char c)
{
    switch (chunk->place) {
    case HTTP_CHUNK_SIZE:
    case HTTP_CHUNK_EXTENSION: return take_line_byte(chunk, c);
    case HTTP_CHUNK_SIZE_LF: end_line(chunk); return c == '\n';
    case HTTP_CHUNK_DATA_CR: chunk->place = HTTP_CHUNK_DATA_LF; return c == '\r';
    case HTTP_CHUNK_DATA_LF: chunk->place = HTTP_CHUNK_SIZE; return c == '\n';
    case HTTP_CHUNK_END_CR: chunk->place = HTTP_CHUNK_END_LF; return c == '\r';
    case HTTP_CHUNK_END_LF: chunk->place = HTTP_CHUNK_DONE; return c == '\n';
    case HTTP_CHUNK_DATA:
    case HTTP_CHUNK_DONE: break;
    }
    return false;
}

enum http_chunk_step http_chunk_next(struct http_chunk *chunk, const char *bytes, size_t size, size_t *ret_taken,
                                     size_t *ret_data_size)
{
    size_t i = 0;
    *ret_data_size = 0;
    while (i < size && chunk->place != HTTP_CHUNK_DATA && chunk->place != HTTP_CHUNK_DONE) {
        if (!take_byte(chunk, (unsigned char)bytes[i++])) {
            *ret_taken = i;
            return HTTP_CHUNK_STEP_BROKEN;
        }
    }
    *ret_taken = i;
    if (chunk->place == HTTP_CHUNK_DONE) {
        return HTTP_CHUNK_STEP_DONE;
    }
    if (chunk->place == HTTP_CHUNK_DATA && i < size) {
        *ret_data_size = size - i < chunk->left_size ? size - i : (size_t)chunk->left_size;
        chunk->left_size -= *ret_data_size;
        chunk->place = chunk->left_size == 0 ? HTTP_CHUNK_DATA_CR : HTTP_CHUNK_DATA;
    }
    return HTTP_CHUNK_STEP_MORE;
}
