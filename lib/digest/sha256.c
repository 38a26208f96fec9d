/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 by libcrypto's EVP interface.
 */
#include "digest/sha256.h"

#include <assert.h>

#include <openssl/evp.h>

/* libcrypto's context under our name. */
static EVP_MD_CTX *context_of(struct sha256_state *state)
{
    return (EVP_MD_CTX *)state;
}

struct sha256_state *sha256_begin(void)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    assert(context != NULL);
    int is_good = EVP_DigestInit_ex(context, EVP_sha256(), NULL);
    assert(is_good == 1);
    return (struct sha256_state *)context;
}

void sha256_add(struct sha256_state *state, const void *data, size_t size)
{
    assert(data != NULL || size == 0);
    int is_good = EVP_DigestUpdate(context_of(state), data, size);
    assert(is_good == 1);
}

void sha256_end(struct sha256_state **statep, unsigned char ret_hash[SHA256_SIZE])
{
    unsigned size = 0;
    int is_good = EVP_DigestFinal_ex(context_of(*statep), ret_hash, &size);
    assert(is_good == 1 && size == SHA256_SIZE);
    EVP_MD_CTX_free(context_of(*statep));
    *statep = NULL;
}

void sha256(const void *data, size_t size, unsigned char ret_hash[SHA256_SIZE])
{
    struct sha256_state *state = sha256_begin();
    sha256_add(state, data, size);
    sha256_end(&state, ret_hash);
}

void sha256_to_text(const unsigned char hash[SHA256_SIZE], char ret_text[SHA256_TEXT_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        ret_text[2 * i] = digits[hash[i] >> 4];
        ret_text[2 * i + 1] = digits[hash[i] & 15];
    }
    ret_text[2 * SHA256_SIZE] = '\0';
}
