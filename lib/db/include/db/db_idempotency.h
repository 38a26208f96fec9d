/* SPDX-License-Identifier: Apache-2.0
 *
 * Idempotency keys and the answers that are kept under them. A key is written
 * in the transaction of its effect (db_submit.h) and never before: it stands
 * there with its answer, or not at all.
 */
#ifndef DB_DB_IDEMPOTENCY_H
#define DB_DB_IDEMPOTENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"
#include "domain/event.h"

struct db;

#define DB_IDEMPOTENCY_BODY_SIZE 65536 /* A larger answer is read only for a batch of one. */

/* What stands under a key. Borrowed from the batch. */
struct db_idempotency_found {
    bool is_busy; /* No answer is valid, and somebody else works on the key or its row. */
    bool exists;
    bool is_expired; /* By the database's clock. */
    struct bytes fingerprint;
    const char *components;
    int status;
    const char *headers;
    struct bytes body; /* data NULL: left out, since it is large. */
    const char *resource;
    int64_t created_us;
    int64_t expires_us;
};

/* What to keep. Takes the place of an expired answer. */
struct db_idempotency_write {
    const unsigned char *fingerprint; /* 32 bytes. */
    const char *components;
    int status;
    const char *headers;
    struct bytes body;
    const char *resource;        /* NULL: none. */
    const struct uuid *event_id; /* Of the request's submission, which must stand there; NULL: none. */
    int64_t created_us;
    int64_t expires_us;
};

enum db_idempotency_state { DB_IDEMPOTENCY_NONE, DB_IDEMPOTENCY_RUNNING, DB_IDEMPOTENCY_DONE, DB_IDEMPOTENCY_EXPIRED };

#define DB_IDEMPOTENCY_RESOURCE_SIZE 256

struct db_idempotency_row {
    enum db_idempotency_state state;
    int status;
    char resource[DB_IDEMPOTENCY_RESOURCE_SIZE]; /* "": none. */
    bool has_event_id;
    struct uuid event_id;
    int64_t created_us;
    int64_t expires_us;
};

/* One key; only state is meant unless it is done or expired. */
bool db_idempotency_get(struct db *db, const char *tenant, const char *key, struct db_idempotency_row *ret_row,
                        struct err *err) MUST_CHECK;

/* Calls found for each tenant under whose keys count_max answers or more are kept, expired ones that nobody has deleted
 * yet included. Reads the whole index of keys. */
bool db_idempotency_find_full(struct db *db, int64_t count_max, void (*found)(void *context, const char *tenant),
                              void *context, struct err *err) MUST_CHECK;

/* Deletes up to count_max keys that expired more than kept_s ago, unless another process does so at this moment.
 * Locked ones are passed over. */
bool db_idempotency_reap(struct db *db, int64_t kept_s, int count_max, int64_t *ret_count, struct err *err) MUST_CHECK;

#endif
