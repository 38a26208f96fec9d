/* SPDX-License-Identifier: Apache-2.0
 *
 * The write path of many requests in one transaction of set-based statements:
 * begin locks and reads what is there, the caller decides, commit writes what
 * it decided. Two flushes and one commit, however many requests.
 *
 * A request whose lock somebody else holds is reported as busy and touches
 * nothing: no rival ever holds up its neighbours in a batch.
 */
#ifndef DB_DB_SUBMIT_H
#define DB_DB_SUBMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"
#include "db/db_idempotency.h"
#include "db/db_tx.h"
#include "domain/event.h"

struct db;
struct db_submit;

#define DB_SUBMIT_COUNT_MAX 256 /* Requests in one batch, so that the server's lock table holds them. */
#define DB_SHA256_SIZE 32

/* A request that the batch is about. Borrowed until the batch ends. Each (tenant, request_id) at most once. */
struct db_submit_key {
    const char *tenant;
    struct uuid request_id;
    const char *create_type; /* The type with which it may be created; NULL when it is not to be. */
    bool is_fresh; /* The id was minted for this very call, so nobody else can know it: nothing is looked up. */
    const char *idempotency_key; /* NULL: none. Each (tenant, key) at most once in a batch too. */
};

struct db_document_row {
    const char *document_id;
    const char *name;
    const char *media_type;
    int64_t size;
    const unsigned char *sha256; /* DB_SHA256_SIZE bytes. */
};

/* What is there, read under the request's lock. Borrowed from the batch. */
struct db_submit_found {
    bool is_busy; /* Somebody else works on it: nothing below is meant. */
    bool exists;
    const char *type;
    struct bytes data; /* NULL: absent. */
    struct bytes fingerprint;
    int64_t created_us;
    int64_t erased_us; /* 0: it has its data. */
    bool is_submitted;
    struct uuid event_id;
    int64_t submitted_us;
    const struct db_document_row *documents; /* In order of upload. */
    size_t document_count;
    const char *topic; /* Of the route of its type, found or to be created. NULL: no such route. */
    const char *dataschema;
    int64_t event_bytes_max;
    struct db_idempotency_found answer; /* Of its idempotency key. */
};

/* Begins the transaction. On false nothing is open. count is at most DB_SUBMIT_COUNT_MAX. */
bool db_submit_begin(struct db *db, const struct db_submit_key *keys, size_t count, struct db_submit **ret_submit,
                     struct err *err) MUST_CHECK;

const struct db_submit_found *db_submit_found(const struct db_submit *submit, size_t index);
const char *db_submit_source(const struct db_submit *submit); /* The deployment's ce_source. */
int64_t db_submit_clock_us(const struct db_submit *submit);   /* The database's clock when it was read. */

/* The same outside a batch. */
bool db_submit_read_clock(struct db *db, int64_t *ret_clock_us, struct err *err) MUST_CHECK;

struct db_submit_document {
    struct db_document_row row;
    struct bytes content;
};

/* What to write for one of the keys. */
struct db_submit_write {
    size_t index; /* Of the key. */
    bool creates;
    struct bytes data;
    const unsigned char *fingerprint;
    int64_t created_us;
    const struct db_submit_document *documents; /* To add. */
    size_t document_count;
    const struct event *event; /* To queue; NULL for none. Its id is event_id. */
    struct uuid event_id;
    int64_t submitted_us;
    const struct db_idempotency_write *answer; /* To keep under its idempotency key; NULL for none. */
};

/* Writes and commits; *submitp is NULL afterwards. ret_was_queued[i] (for writes[i]) says whether its event was queued
 * by this transaction: the primary key of submissions decides, and an event without a submission is not written. Where
 * a write has an answer that would not be true, or whose key somebody took without its lock, all is rolled back, with
 * transient "idempotency_raced". */
enum db_tx_outcome db_submit_commit(struct db_submit **submitp, const struct db_submit_write *writes, size_t count,
                                    bool *ret_was_queued, struct err *err) MUST_CHECK;

/* Takes it back, or ends a batch that writes nothing. Accepts NULL inside. */
void db_submit_rollback(struct db_submit **submitp);

#endif
