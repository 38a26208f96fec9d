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
    PGresult *results[8]; /* What `found` borrows from. */
};

/* Without touching its transaction. */
void db_submit_free(struct db_submit *submit);

/* ---- keys: db_idempotency.c ---- */

extern const struct db_statement db_idempotency_claim;
extern const struct db_statement db_idempotency_look;

/* $1 tenants, $2 keys, $3 their numbers. Returns how many. */
size_t db_idempotency_add(struct db_params *params, const struct db_submit *submit);

/* Fills found[].answer. */
void db_idempotency_read(struct db_submit *submit, const PGresult *claimed, const PGresult *looked);

#endif
