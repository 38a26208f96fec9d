/* SPDX-License-Identifier: Apache-2.0
 *
 * The public face of transactions; the work is in db_exec.c, where COMMIT can
 * share its flush with the statements before it.
 */
#include "db/db_tx.h"

#include <assert.h>

#include "db_private.h"

bool db_tx_begin(struct db *db, struct db_tx **ret_tx, struct err *err)
{
    return db_exec_begin(db, NULL, 0, ret_tx, err);
}

enum db_tx_outcome db_tx_commit(struct db_tx **txp, struct err *err)
{
    return db_exec_commit(txp, NULL, 0, err);
}

void db_tx_rollback(struct db_tx **txp)
{
    assert(txp != NULL);
    if (*txp != NULL) {
        db_exec_rollback((*txp)->db);
        *txp = NULL;
    }
}

struct db *db_tx_db(struct db_tx *tx)
{
    assert(tx != NULL && tx->db->has_tx);
    return tx->db;
}
