/* SPDX-License-Identifier: Apache-2.0
 *
 * A batch that is open, for the two files that work on it: db_submit.c locks
 * and reads, db_submit_commit.c writes.
 */
#ifndef DB_DB_SUBMIT_PRIVATE_H
#define DB_DB_SUBMIT_PRIVATE_H

#include "db/db_submit.h"
#include "db_private.h"

struct db_submit {
    struct db_tx *tx;
    const struct db_submit_key *keys;
    size_t count;
    struct db_submit_found found[DB_SUBMIT_COUNT_MAX];
    struct db_document_row *documents;
    const char *source;
    int64_t clock_us;
    PGresult *results[6]; /* What `found` borrows from. */
};

/* Without touching its transaction. */
void db_submit_free(struct db_submit *submit);

#endif
