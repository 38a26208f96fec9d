/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fuzz targets share. A target is a file with LLVMFuzzerTestOneInput:
 * it decodes the input and asserts what must hold of whatever was accepted.
 * libFuzzer calls it with what it invents, fuzz_main.c with the files of a corpus.
 */
#ifndef FUZZ_KIT_H
#define FUZZ_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The part of an input that has not been looked at yet. */
struct fuzz_input {
    const char *at;
    const char *end;
};

struct fuzz_input fuzz_input_of(const uint8_t *data, size_t size);

/* The next line into out, emptied before, with %XX as that byte, so that seeds can be read. False at the end. */
bool fuzz_line(struct fuzz_input *input, struct buf *out);

/* The rest of the input in memory of exactly its size and one NUL behind it, so that a byte read too far is seen.
 * Free it. */
char *fuzz_rest(const struct fuzz_input *input, size_t *ret_size);

/* UTF-8 without control characters. */
bool fuzz_is_plain(const char *text);

/* Of a refusal: permanent, with a code and a text. Clears it. */
void fuzz_check_refusal(struct err *err);

#endif
