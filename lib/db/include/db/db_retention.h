/* SPDX-License-Identifier: Apache-2.0
 *
 * Removes what has been kept long enough, a bounded number of rows at a time.
 * Whoever holds a row is passed over and its turn comes later.
 */
#ifndef DB_DB_RETENTION_H
#define DB_DB_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct db;

enum db_retention {
    DB_RETENTION_REQUESTS,  /* Content of submitted requests, with their documents'. What recognises a repetition stays.
                             */
    DB_RETENTION_DOCUMENTS, /* Bytes of documents of submitted requests. */
    DB_RETENTION_OPEN,      /* Requests that nobody submitted, as a whole. */
    DB_RETENTION_SUBMISSIONS, /* Submissions, with all that is left of their requests: a repetition is new afterwards.
                               */
};

#define DB_RETENTION_COUNT 4

/* One bite, of what is older than kept_days by the database's clock; of submitted ones only where the event is
 * published. *ret_count less than count_max: there is no more for now. */
bool db_retention_reap(struct db *db, enum db_retention what, int64_t kept_days, int count_max, int64_t *ret_count,
                       struct err *err) MUST_CHECK;

#endif
