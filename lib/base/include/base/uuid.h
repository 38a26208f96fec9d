/* SPDX-License-Identifier: Apache-2.0
 *
 * UUIDs as 16 bytes and as the one text form that we write and accept:
 * 36 characters, lower case.
 */
#ifndef BASE_UUID_H
#define BASE_UUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define UUID_SIZE 16
#define UUID_TEXT_SIZE 37 /* With its NUL. */
#define UUID_RANDOM_SIZE 10

struct uuid {
    uint8_t bytes[UUID_SIZE];
};

/* Pure: a version 7 UUID (RFC 9562) of this time and these random bytes. */
struct uuid uuid_v7(int64_t unix_ms, const uint8_t random[UUID_RANDOM_SIZE]);

/* A version 7 UUID of this time and fresh random bytes. */
struct uuid uuid_v7_new(int64_t unix_ms);

/* The time inside a version 7 UUID, or -1 for any other version or variant. */
int64_t uuid_v7_ms(const struct uuid *uuid);

void uuid_to_text(const struct uuid *uuid, char ret_text[UUID_TEXT_SIZE]);

/* Strict: exactly 36 characters, lower case, hyphens in place. Any version. */
bool uuid_from_text(const char *text, size_t size, struct uuid *ret_uuid) MUST_CHECK;

/* As memcmp, which is also Postgres' order of uuid. */
int uuid_compare(const struct uuid *left, const struct uuid *right);

#endif
