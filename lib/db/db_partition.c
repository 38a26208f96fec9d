/* SPDX-License-Identifier: Apache-2.0
 *
 * Making partitions ahead. The schema's function does it with its owner's
 * rights, under a lock of its own.
 */
#include "db/db_partition.h"

#include "db_private.h"

static const struct db_statement MAKE = {
    .sql = "SELECT onceward.outbox_make_partitions()",
    .columns = {DB_INT4},
};

static const struct db_statement AHEAD = {
    .sql = "SELECT coalesce(max(end_id), 0) - coalesce(pg_catalog.pg_sequence_last_value('onceward.outbox_id_seq'), 0)"
           " FROM onceward.outbox_partitions",
    .columns = {DB_INT8},
};

bool db_partition_make(struct db *db, int *ret_made, int64_t *ret_ids_ahead, struct err *err)
{
    DB_RESULT(made);
    DB_RESULT(ahead);
    if (!db_exec_row(db, &MAKE, NULL, &made, err) || !db_exec_row(db, &AHEAD, NULL, &ahead, err)) {
        return false;
    }
    *ret_made = db_get_int4(made, 0, 0);
    *ret_ids_ahead = db_get_int8(ahead, 0, 0);
    return true;
}
