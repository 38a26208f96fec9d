/* SPDX-License-Identifier: Apache-2.0
 *
 * A transaction. What a commit came to is one of three outcomes, and "unknown"
 * is never taken for either of the others: the caller looks the truth up.
 */
#ifndef DB_DB_TX_H
#define DB_DB_TX_H

#include "base/err.h"

struct db;
struct db_tx;

enum db_tx_outcome {
    DB_TX_COMMITTED, /* Durable and visible. */
    DB_TX_FAILED,    /* Rolled back for certain; err says why. */
    DB_TX_UNKNOWN,   /* The answer to COMMIT did not come, or came with a warning: it may or may not have
                      * happened. err is transient. */
};

/* READ COMMITTED, read-write. At most one per connection. */
bool db_tx_begin(struct db *db, struct db_tx **ret_tx, struct err *err) MUST_CHECK;

/* Ends it; *txp is NULL afterwards whatever the outcome. err is filled unless it committed. */
enum db_tx_outcome db_tx_commit(struct db_tx **txp, struct err *err) MUST_CHECK;

/* Takes it back. Accepts NULL, nulls the pointer; a failure only breaks the connection, which rolls back too. */
void db_tx_rollback(struct db_tx **txp);

/* The connection it runs on. Borrowed. */
struct db *db_tx_db(struct db_tx *tx);

/* A local that rolls back when it leaves its scope: DB_TX_AUTO struct db_tx *tx = NULL; */
#define DB_TX_AUTO __attribute__((cleanup(db_tx_rollback)))

#endif
