/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 against the examples of FIPS 180-4.
 */
#include "cmocka_all.h"

#include "digest/sha256.h"

struct hash_case {
    const char *name;
    const char *data;
    const char *hash;
};

static const struct hash_case cases[] = {
    {"nothing", "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"two blocks", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
};

static void test_sha256_hashes(void **state)
{
    const struct hash_case *row = *state;
    unsigned char hash[SHA256_SIZE];
    char text[SHA256_TEXT_SIZE];
    sha256(row->data, strlen(row->data), hash);
    sha256_to_text(hash, text);
    assert_string_equal(text, row->hash);
    struct sha256_state *pieces = sha256_begin();
    for (const char *at = row->data; *at != '\0'; at++) {
        sha256_add(pieces, at, 1);
    }
    sha256_end(&pieces, hash);
    assert_null(pieces);
    sha256_to_text(hash, text);
    assert_string_equal(text, row->hash);
}

int main(void)
{
    return RUN_CASES("sha256", test_sha256_hashes, cases);
}
