/* SPDX-License-Identifier: Apache-2.0
 *
 * Chunked bodies. The pieces in which one arrives make no difference, and what
 * is accepted llhttp accepts too but for extensions, with the same body.
 *
 * Input: the first byte is the size of the pieces, the rest is the body as sent.
 */
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_kit.h"
#include "http_private.h"

#define BODY_SIZE_MAX (1 << 20)

static enum http_chunk_step run(const struct fuzz_input *input, size_t piece, struct buf *body, size_t *ret_taken)
{
    struct http_chunk chunk = {.place = HTTP_CHUNK_SIZE};
    enum http_chunk_step step = HTTP_CHUNK_STEP_MORE;
    const char *at = input->at;
    while (at < input->end && step == HTTP_CHUNK_STEP_MORE) {
        size_t left = (size_t)(input->end - at);
        size_t given = left < piece ? left : piece;
        size_t taken = 0;
        size_t data_size = 0;
        step = http_chunk_next(&chunk, at, given, &taken, &data_size);
        assert(taken + data_size <= given && taken + data_size > 0);
        buf_append(body, at + taken, step == HTTP_CHUNK_STEP_MORE ? data_size : 0);
        at += taken + data_size;
    }
    *ret_taken = (size_t)(at - input->at);
    return step;
}

/* Reads what was accepted by the letter of RFC 9112, 7.1: a size, its data and CR LF, the last one of size 0. */
static void check_framing(const struct fuzz_input *input, size_t size, const struct buf *body)
{
    const char *at = input->at;
    const char *end = input->at + size;
    size_t body_size = 0;
    unsigned long chunk_size = 0;
    do {
        const char *line_end = memmem(at, (size_t)(end - at), "\r\n", 2);
        assert(line_end != NULL && isxdigit((unsigned char)*at));
        chunk_size = strtoul(at, NULL, 16);
        at = line_end + 2;
        assert(chunk_size + 2 <= (size_t)(end - at) && chunk_size <= body->size - body_size);
        assert(memcmp(at, body->data + body_size, chunk_size) == 0 && memcmp(at + chunk_size, "\r\n", 2) == 0);
        body_size += chunk_size;
        at += chunk_size + 2;
    } while (chunk_size > 0);
    assert(at == end && body_size == body->size);
}

static int on_body(llhttp_t *parser, const char *at, size_t size)
{
    buf_append(parser->data, at, size);
    return 0;
}

static int on_message_complete(llhttp_t *parser)
{
    (void)parser;
    return HPE_PAUSED;
}

static void check_llhttp(const struct fuzz_input *input, size_t size, const struct buf *body)
{
    static const char head[] = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    static const llhttp_settings_t settings = {.on_body = on_body, .on_message_complete = on_message_complete};
    llhttp_t parser;
    struct buf theirs;
    buf_init(&theirs, BODY_SIZE_MAX);
    llhttp_init(&parser, HTTP_REQUEST, &settings);
    parser.data = &theirs;
    llhttp_errno_t before = llhttp_execute(&parser, head, sizeof head - 1);
    llhttp_errno_t code = llhttp_execute(&parser, input->at, size);
    assert(before == HPE_OK);
    if (code == HPE_PAUSED) {
        assert(llhttp_get_error_pos(&parser) == input->at + size);
        assert(theirs.size == body->size && memcmp(theirs.data, body->data, body->size) == 0);
    } else { /* It is stricter in the grammar of extensions, which nobody reads. */
        assert(memchr(input->at, ';', size) != NULL);
    }
    buf_done(&theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = fuzz_input_of(data, size);
    struct buf whole;
    struct buf pieces;
    if (size == 0) {
        return 0;
    }
    size_t piece = data[0] % 16U + 1;
    size_t taken = 0;
    size_t taken_in_pieces = 0;
    input.at++;
    buf_init(&whole, BODY_SIZE_MAX);
    buf_init(&pieces, BODY_SIZE_MAX);
    enum http_chunk_step step = run(&input, size, &whole, &taken);
    enum http_chunk_step step_in_pieces = run(&input, piece, &pieces, &taken_in_pieces);
    assert(step == step_in_pieces && taken == taken_in_pieces);
    assert(whole.size == pieces.size && memcmp(whole.data, pieces.data, whole.size) == 0);
    if (step == HTTP_CHUNK_STEP_DONE) {
        check_framing(&input, taken, &whole);
        check_llhttp(&input, taken, &whole);
    }
    buf_done(&whole);
    buf_done(&pieces);
    return 0;
}
