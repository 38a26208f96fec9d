/* SPDX-License-Identifier: Apache-2.0
 *
 * Removes one request's content and keeps what the guarantee rests on: its
 * submission, its fingerprint, its documents' hashes, its keys.
 */
#ifndef DB_DB_ERASE_H
#define DB_DB_ERASE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"
#include "db/db_audit.h"

struct db;

enum db_erase_outcome {
    DB_ERASE_DONE,
    DB_ERASE_UNKNOWN,       /* No request of the tenant's has this id. */
    DB_ERASE_NOT_PUBLISHED, /* Its event still needs its payload: nothing was changed. */
};

struct db_erase {
    bool was_submitted; /* False: it was open, and is gone as a whole. */
    bool was_erased;    /* Its data had been erased before. */
    struct uuid event_id;
    int64_t data_size;
    int64_t document_count; /* Whose bytes or names were removed. */
    int64_t document_size;
    int64_t answer_count; /* Stored answers whose bodies showed the request. */
    int64_t outbox_count; /* Payloads of its event: in the outbox, and among what was deferred. */
    int64_t deferred_count;
    int64_t dead_letter_count; /* What is left: copies of the event among the dead letters of consumers. */
    int64_t applied_count;     /* And consumers in this database that have applied it. */
};

/* What to erase, and for whom. Borrowed. */
struct db_erase_order {
    const char *tenant;
    const struct uuid *request_id;
    struct db_audit audit;
    bool is_dry_run;
};

/* One transaction, which waits for a submit of the request that runs. A dry run does the same and takes it back. The
 * members of *ret_erase are valid with DB_ERASE_DONE, event_id also with DB_ERASE_NOT_PUBLISHED. Blocks. */
bool db_erase_request(struct db *db, const struct db_erase_order *order, struct db_erase *ret_erase,
                      enum db_erase_outcome *ret_outcome, struct err *err) MUST_CHECK;

#endif
