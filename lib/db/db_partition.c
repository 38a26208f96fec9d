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
    .sql = "SELECT end_id - coalesce(pg_catalog.pg_sequence_last_value('onceward.outbox_id_seq'), 0), end_id - first_id"
           " FROM onceward.outbox_partitions ORDER BY first_id DESC LIMIT 1",
    .columns = {DB_INT8, DB_INT8},
};

bool db_partition_make(struct db *db, int *ret_made, int64_t *ret_ids_ahead, int64_t *ret_ids_a_day, struct err *err)
{
    DB_RESULT(made);
    DB_RESULT(ahead);
    if (!db_exec_row(db, &MAKE, NULL, &made, err) || !db_exec_row(db, &AHEAD, NULL, &ahead, err)) {
        return false;
    }
    *ret_made = db_get_int4(made, 0, 0);
    *ret_ids_ahead = db_get_int8(ahead, 0, 0);
    *ret_ids_a_day = db_get_int8(ahead, 0, 1);
    return true;
}
