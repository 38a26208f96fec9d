/* SPDX-License-Identifier: Apache-2.0
 *
 * UUIDs (RFC 9562).
 */
#include "base/uuid.h"

#include <assert.h>
#include <string.h>

#include "base/rand.h"

#define UNIX_MS_MAX ((INT64_C(1) << 48) - 1)

static const char hex_digits[] = "0123456789abcdef";

static bool has_hyphen_before(size_t byte_index)
{
    return byte_index == 4 || byte_index == 6 || byte_index == 8 || byte_index == 10;
}

struct uuid uuid_v7(int64_t unix_ms, const uint8_t random[UUID_RANDOM_SIZE])
{
    assert(unix_ms >= 0 && unix_ms <= UNIX_MS_MAX);
    struct uuid uuid;
    for (size_t i = 0; i < 6; i++) {
        uuid.bytes[i] = (uint8_t)(unix_ms >> (40 - 8 * i));
    }
    memcpy(uuid.bytes + 6, random, UUID_RANDOM_SIZE);
    uuid.bytes[6] = (uint8_t)((uuid.bytes[6] & 0x0FU) | 0x70U);
    uuid.bytes[8] = (uint8_t)((uuid.bytes[8] & 0x3FU) | 0x80U);
    return uuid;
}

struct uuid uuid_v7_new(int64_t unix_ms)
{
    uint8_t random[UUID_RANDOM_SIZE];
    rand_bytes(random, sizeof random);
    return uuid_v7(unix_ms, random);
}

int64_t uuid_v7_ms(const struct uuid *uuid)
{
    assert(uuid != NULL);
    if ((uuid->bytes[6] & 0xF0U) != 0x70U || (uuid->bytes[8] & 0xC0U) != 0x80U) {
        return -1;
    }
    int64_t unix_ms = 0;
    for (size_t i = 0; i < 6; i++) {
        unix_ms = unix_ms << 8 | uuid->bytes[i];
    }
    return unix_ms;
}

void uuid_to_text(const struct uuid *uuid, char ret_text[UUID_TEXT_SIZE])
{
    assert(uuid != NULL && ret_text != NULL);
    for (size_t i = 0; i < UUID_SIZE; i++) {
        if (has_hyphen_before(i)) {
            *ret_text++ = '-';
        }
        *ret_text++ = hex_digits[uuid->bytes[i] >> 4];
        *ret_text++ = hex_digits[uuid->bytes[i] & 0x0FU];
    }
    *ret_text = '\0';
}

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    return -1;
}

bool uuid_from_text(const char *text, size_t size, struct uuid *ret_uuid)
{
    assert(text != NULL && ret_uuid != NULL);
    if (size != UUID_TEXT_SIZE - 1) {
        return false;
    }
    struct uuid uuid;
    for (size_t i = 0; i < UUID_SIZE; i++) {
        if (has_hyphen_before(i) && *text++ != '-') {
            return false;
        }
        int high = hex_value(*text++);
        int low = hex_value(*text++);
        if (high < 0 || low < 0) {
            return false;
        }
        uuid.bytes[i] = (uint8_t)(high << 4 | low);
    }
    *ret_uuid = uuid;
    return true;
}

int uuid_compare(const struct uuid *left, const struct uuid *right)
{
    return memcmp(left->bytes, right->bytes, UUID_SIZE);
}
