/* SPDX-License-Identifier: Apache-2.0
 *
 * Each bite is one transaction of two statements: the first locks the requests
 * (or documents) whose time has come, the second removes. What a single one
 * would take for an open request could have been submitted since its snapshot.
 */
#include "db/db_retention.h"

#include <assert.h>

#include "db_private.h"

#define OLDER(column) column " < (SELECT clock_timestamp() - $1 * interval '1 day')"

/* Its payload is needed no more. Where its outbox row is gone it was published long ago. */
#define IS_PUBLISHED                                                                                                   \
    "NOT EXISTS (SELECT FROM onceward.events e WHERE e.event_id = s.event_id AND e.tenant = s.tenant "                 \
    "AND e.status <> 'completed' AND e.deferred_state IS DISTINCT FROM 'discarded')"

/* Every tenant, by one probe of the index for each. */
#define TENANTS                                                                                                        \
    "WITH RECURSIVE t(tenant) AS ((SELECT tenant FROM onceward.requests ORDER BY tenant LIMIT 1) UNION ALL "           \
    "SELECT (SELECT r.tenant FROM onceward.requests r WHERE r.tenant > t.tenant ORDER BY r.tenant LIMIT 1) FROM t "    \
    "WHERE t.tenant IS NOT NULL) "

#define OLDEST_OF_TENANTS(conditions)                                                                                  \
    TENANTS                                                                                                            \
    "SELECT o.tenant, o.request_id FROM t CROSS JOIN LATERAL (SELECT r.tenant, r.request_id FROM onceward.requests r " \
    "WHERE r.tenant = t.tenant AND " OLDER(                                                                            \
        "r.created_at") " AND " conditions " ORDER BY r.created_at LIMIT $2 FOR UPDATE OF r SKIP LOCKED) o LIMIT $2"

#define SUBMITTED                                                                                                      \
    "EXISTS (SELECT FROM onceward.submissions s WHERE s.tenant = r.tenant AND s.request_id = r.request_id AND " OLDER( \
        "s.submitted_at") " AND " IS_PUBLISHED ")"

static const struct db_statement FIND[DB_RETENTION_COUNT] = {
    [DB_RETENTION_REQUESTS] = {.sql =
                                   "SELECT r.tenant, r.request_id FROM onceward.requests r WHERE r.erased_at IS NULL "
                                   "AND " OLDER(
                                       "r.created_at") " AND " SUBMITTED
                                                       " ORDER BY r.created_at LIMIT $2 FOR UPDATE OF r SKIP LOCKED",
                               .columns = {DB_TEXT, DB_UUID}},
    [DB_RETENTION_DOCUMENTS] = {.sql =
                                    "SELECT r.tenant, r.request_id FROM onceward.documents r "
                                    "WHERE r.content IS NOT NULL AND " OLDER(
                                        "r.created_at") " AND " SUBMITTED
                                                        " ORDER BY r.created_at LIMIT $2 FOR UPDATE OF r SKIP LOCKED",
                                .columns = {DB_TEXT, DB_UUID}},
    [DB_RETENTION_OPEN] = {.sql = OLDEST_OF_TENANTS(
                               "NOT EXISTS (SELECT FROM onceward.submissions s WHERE s.tenant = r.tenant "
                               "AND s.request_id = r.request_id)"),
                           .columns = {DB_TEXT, DB_UUID}},
    [DB_RETENTION_SUBMISSIONS] = {.sql = OLDEST_OF_TENANTS(SUBMITTED), .columns = {DB_TEXT, DB_UUID}},
};

#define ITEMS                                                                                                          \
    "WITH i AS (SELECT DISTINCT tenant, request_id FROM unnest($1::text[], $2::uuid[]) AS i(tenant, request_id)) "
#define OF_ITEM(alias) alias ".tenant = i.tenant AND " alias ".request_id = i.request_id"

static const struct db_statement REMOVE[DB_RETENTION_COUNT] = {
    [DB_RETENTION_REQUESTS] =
        {.sql = ITEMS ", d AS (UPDATE onceward.documents d SET content = NULL, name = '' FROM i WHERE " OF_ITEM(
             "d") ") "
                  "UPDATE onceward.requests r SET data = NULL, erased_at = clock_timestamp() "
                  "FROM i WHERE " OF_ITEM("r")},
    [DB_RETENTION_DOCUMENTS] = {.sql =
                                    ITEMS "UPDATE onceward.documents d SET content = NULL FROM i WHERE " OF_ITEM("d")},
    [DB_RETENTION_OPEN] = {.sql = ITEMS ", r AS (DELETE FROM onceward.requests r USING i WHERE " OF_ITEM(
                               "r") " AND NOT EXISTS (SELECT FROM onceward.submissions s "
                                    "WHERE " OF_ITEM("s") ") RETURNING r.tenant, r.request_id) "
                                                          "DELETE FROM onceward.documents d USING r AS "
                                                          "i WHERE " OF_ITEM("d")},
    [DB_RETENTION_SUBMISSIONS] = {.sql = ITEMS ", d AS (DELETE FROM onceward.documents d USING i WHERE " OF_ITEM(
                                      "d") "), r AS (DELETE FROM onceward.requests r USING i "
                                           "WHERE " OF_ITEM("r") ") DELETE FROM onceward.submissions s "
                                                                 "USING i WHERE " OF_ITEM("s")},
};

static void add_found(struct db_params *params, const PGresult *found)
{
    db_params_array_open(params, DB_TEXT);
    for (int row = 0; row < db_result_rows(found); row++) {
        db_params_text(params, db_get_text(found, row, 0));
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_UUID);
    for (int row = 0; row < db_result_rows(found); row++) {
        db_params_uuid(params, db_get_uuid(found, row, 1));
    }
    db_params_array_close(params);
}

bool db_retention_reap(struct db *db, enum db_retention what, int64_t kept_days, int count_max, int64_t *ret_count,
                       struct err *err)
{
    assert(kept_days > 0 && what < DB_RETENTION_COUNT);
    DB_PARAMS(params);
    DB_PARAMS(items);
    DB_RESULT(found);
    DB_TX_AUTO struct db_tx *tx = NULL;
    db_params_int8(&params, kept_days);
    db_params_int8(&params, count_max);
    if (!db_tx_begin(db, &tx, err) || !db_exec(db, &FIND[what], &params, &found, err)) {
        return false;
    }
    int64_t count = db_result_rows(found);
    add_found(&items, found);
    if ((count > 0 && !db_exec(db, &REMOVE[what], &items, NULL, err)) || db_tx_commit(&tx, err) != DB_TX_COMMITTED) {
        return false;
    }
    *ret_count = count;
    return true;
}
