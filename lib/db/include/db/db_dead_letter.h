/* SPDX-License-Identifier: Apache-2.0
 *
 * Records that had no effect and never will as they are: kept byte for byte
 * with the reason, in the transaction that moves the cursor past them.
 */
#ifndef DB_DB_DEAD_LETTER_H
#define DB_DB_DEAD_LETTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "domain/event.h"

struct db_tx;

#define DB_DEAD_LETTER_HASH_SIZE 32

struct db_dead_letter {
    const char *consumer;
    const char *scope;
    const char *topic;
    int32_t partition;
    int64_t offset;
    struct bytes hash;    /* Of the whole record: the same place can hold another one after a topic was made anew. */
    int64_t timestamp_ms; /* -1 for none. */
    const char *event_id; /* NULL where it could not be read, as source. */
    const char *source;
    struct bytes key;
    struct bytes value;
    const struct event_header *headers;
    size_t header_count;
    const char *reason_code;
    const char *reason;
};

/* Keeps it; once per place and record. Header names that are not UTF-8 are kept as \x and hexadecimal digits. */
bool db_dead_letter_put(struct db_tx *tx, const struct db_dead_letter *letter, struct err *err) MUST_CHECK;

#endif
