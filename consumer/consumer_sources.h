/* SPDX-License-Identifier: Apache-2.0
 *
 * To which inbox an event belongs. Its source alone decides, and what was
 * decided at first sight stays, whatever the settings say later.
 */
#ifndef CONSUMER_SOURCES_H
#define CONSUMER_SOURCES_H

#include <stddef.h>

#include "base/err.h"
#include "consumer_batch.h"
#include "db/db_inbox.h"

struct db;

#define CONSUMER_SOURCES_KNOWN_MAX 64

struct consumer_source {
    char source[KAFKA_RECORD_ATTRIBUTE_SIZE_MAX + 1];
    enum db_inbox_source kind;
};

struct consumer_sources {
    const char *consumer; /* Borrowed. */
    char own[DB_INBOX_SOURCE_SIZE];
    struct db_inbox_range range;
    struct consumer_source known[CONSUMER_SOURCES_KNOWN_MAX]; /* A copy of what is pinned. */
    size_t known_count;
    size_t known_next; /* Which one gives way when it is full. */
};

/* Reads which source is our own, and which ids the inbox has room for. After every connect. */
bool consumer_sources_load(struct consumer_sources *sources, struct db *db, struct err *err) MUST_CHECK;

/* Settles the kind of every event of the batch, pinning sources that are new, before the batch's transaction. Own
 * ids that are no UUIDv7, or that no partition has room for, become dead letters. */
bool consumer_sources_settle(struct consumer_sources *sources, struct db *db, struct consumer_batch *batch,
                             struct err *err) MUST_CHECK;

#endif
