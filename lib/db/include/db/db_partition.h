/* SPDX-License-Identifier: Apache-2.0
 *
 * Partitions of the outbox, made ahead by the schema's own function.
 */
#ifndef DB_DB_PARTITION_H
#define DB_DB_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct db;

/* Makes partitions ahead where they are needed; several callers at once do no harm. *ret_made is their number,
 * *ret_ids_ahead how many ids are left before the sequence runs out of partitions, *ret_ids_a_day about how many a day
 * takes: the length of the last one. Precondition: no transaction. */
bool db_partition_make(struct db *db, int *ret_made, int64_t *ret_ids_ahead, int64_t *ret_ids_a_day,
                       struct err *err) MUST_CHECK;

#endif
