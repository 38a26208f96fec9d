/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256, at once or in pieces. Memory that runs out ends the process: a hash
 * is never left out.
 */
#ifndef DIGEST_SHA256_H
#define DIGEST_SHA256_H

#include <stddef.h>

#define SHA256_SIZE 32
#define SHA256_TEXT_SIZE 65 /* Hexadecimal, with its NUL. */

/* data may be NULL where size is 0. */
void sha256(const void *data, size_t size, unsigned char ret_hash[SHA256_SIZE]);

/* In pieces: begin, any number of adds, end, which frees it and nulls the pointer. */
struct sha256_state;
struct sha256_state *sha256_begin(void);
void sha256_add(struct sha256_state *state, const void *data, size_t size);
void sha256_end(struct sha256_state **statep, unsigned char ret_hash[SHA256_SIZE]);

/* Lower-case hexadecimal. */
void sha256_to_text(const unsigned char hash[SHA256_SIZE], char ret_text[SHA256_TEXT_SIZE]);

#endif
