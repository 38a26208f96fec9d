/* SPDX-License-Identifier: Apache-2.0
 *
 * Hashes of payloads and records. To change what goes into either means that
 * every stored one differs: cursors and the inbox would refuse what they know.
 */
#include "consumer_hash.h"

#include <string.h>

#include "digest/sha256.h"

static void add_number(struct sha256_state *state, int64_t number)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)((uint64_t)number >> (56 - 8 * i));
    }
    sha256_add(state, bytes, sizeof bytes);
}

/* Null and empty differ. */
static void add_bytes(struct sha256_state *state, struct bytes bytes)
{
    add_number(state, bytes.data == NULL ? -1 : (int64_t)bytes.size);
    if (bytes.size > 0) {
        sha256_add(state, bytes.data, bytes.size);
    }
}

int64_t consumer_hash_payload(struct bytes value)
{
    unsigned char hash[SHA256_SIZE];
    sha256(value.data, value.size, hash);
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof number; i++) {
        number = number << 8 | hash[i];
    }
    return (int64_t)number;
}

void consumer_hash_record(const struct kafka_record *record, unsigned char ret_hash[CONSUMER_HASH_SIZE])
{
    struct sha256_state *state = sha256_begin();
    add_number(state, record->offset);
    add_number(state, record->timestamp_ms);
    add_bytes(state, record->key);
    add_number(state, (int64_t)record->header_count);
    for (size_t i = 0; i < record->header_count; i++) {
        const struct event_header *header = &record->headers[i];
        add_bytes(state, (struct bytes){header->name, strlen(header->name)});
        add_bytes(state, header->value);
    }
    add_bytes(state, record->value);
    sha256_end(&state, ret_hash);
}
