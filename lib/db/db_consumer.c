/* SPDX-License-Identifier: Apache-2.0
 *
 * Consumers for people. The change and its audit row are one statement, which
 * also decides whether it may be made.
 */
#include "db/db_consumer.h"

#include <assert.h>
#include <stdlib.h>

#include "db_private.h"

/* A consumer is known by its inbox or by a cursor. The two states of consumers in the schema are asked once each. */
#define CONSUMERS                                                                                                      \
    "WITH names AS (SELECT consumer FROM onceward.inbox_scopes UNION SELECT consumer FROM "                            \
    "onceward.consumer_progress),"                                                                                     \
    " places AS (SELECT consumer, count(*) AS partitions, count(stop_code) AS stopped, max(moved_at) AS moved_at"      \
    "              FROM onceward.consumer_state GROUP BY consumer),"                                                   \
    " listed AS (SELECT n.consumer, onceward.consumer_is_connected(n.consumer) AS is_connected,"                       \
    "                   coalesce(p.partitions, 0) AS partitions, coalesce(p.stopped, 0) AS stopped,"                   \
    "                   (SELECT count(*) FROM onceward.dead_letters d"                                                 \
    "                     WHERE d.consumer = n.consumer AND d.acknowledged_at IS NULL) AS dead_letters,"               \
    "                   p.moved_at, r.retired_at"                                                                      \
    "              FROM names n LEFT JOIN places p USING (consumer)"                                                   \
    "              LEFT JOIN onceward.retired_consumers r USING (consumer))"
#define COLUMNS "consumer, is_connected, partitions, stopped, dead_letters, moved_at, retired_at"
#define TYPES DB_TEXT, DB_BOOL, DB_INT8, DB_INT8, DB_INT8, DB_TIMESTAMPTZ, DB_TIMESTAMPTZ

static const struct db_statement LIST = {
    .sql = CONSUMERS " SELECT " COLUMNS " FROM listed ORDER BY consumer LIMIT 1000",
    .columns = {TYPES},
};

static void read_consumer(const PGresult *result, int row, struct db_consumer *consumer)
{
    *consumer = (struct db_consumer){
        .is_connected = db_get_bool(result, row, 1),
        .partition_count = db_get_int8(result, row, 2),
        .stopped_count = db_get_int8(result, row, 3),
        .dead_letter_count = db_get_int8(result, row, 4),
        .has_moved = !db_is_null(result, row, 5),
        .is_retired = !db_is_null(result, row, 6),
    };
    db_copy_text(result, row, 0, consumer->consumer, sizeof consumer->consumer);
    consumer->moved_at_us = consumer->has_moved ? db_get_timestamptz(result, row, 5) : 0;
    consumer->retired_at_us = consumer->is_retired ? db_get_timestamptz(result, row, 6) : 0;
}

bool db_consumer_list(struct db *db, struct db_consumer **ret_consumers, size_t *ret_count, struct err *err)
{
    DB_RESULT(result);
    if (!db_exec(db, &LIST, NULL, &result, err)) {
        return false;
    }
    struct db_consumer *consumers = db_rows_new(db_result_rows(result), sizeof *consumers, err);
    if (consumers == NULL) {
        return false;
    }
    for (int row = 0; row < db_result_rows(result); row++) {
        read_consumer(result, row, &consumers[row]);
    }
    *ret_consumers = consumers;
    *ret_count = (size_t)db_result_rows(result);
    return true;
}

/* A process that connects after the look is no loss: to be connected, or to have moved since, ends a retirement. */
static const struct db_statement RETIRE = {
    .sql = CONSUMERS
    ", retired AS (INSERT INTO onceward.consumer_retirements (consumer) SELECT consumer FROM listed"
    "    WHERE consumer = $1 AND NOT is_connected AND retired_at IS NULL AND NOT $2 RETURNING consumer),"
    " audited AS (INSERT INTO onceward.audit (action, object, detail) SELECT 'consumer retire', l.consumer,"
    "    jsonb_build_object('by', $3::text, 'reason', $4::text, 'partitions', l.partitions, 'stopped', l.stopped,"
    "    'dead_letters', l.dead_letters) FROM retired JOIN listed l USING (consumer))"
    " SELECT " COLUMNS " FROM listed WHERE consumer = $1",
    .columns = {TYPES},
};

bool db_consumer_retire(struct db *db, const char *consumer, const struct db_audit *audit, bool is_dry,
                        struct db_consumer *ret_consumer, enum db_consumer_retirement *ret_outcome, struct err *err)
{
    assert(consumer != NULL && audit != NULL);
    DB_PARAMS(params);
    db_params_text(&params, consumer);
    db_params_bool(&params, is_dry);
    db_params_text(&params, audit->by);
    db_params_text(&params, audit->reason);
    DB_RESULT(result);
    if (!db_exec(db, &RETIRE, &params, &result, err)) {
        return false;
    }
    if (db_result_rows(result) == 0) {
        *ret_outcome = DB_CONSUMER_UNKNOWN;
        return true;
    }
    read_consumer(result, 0, ret_consumer);
    *ret_outcome = DB_CONSUMER_RETIRED;
    if (ret_consumer->is_connected) {
        *ret_outcome = DB_CONSUMER_ALIVE;
    } else if (ret_consumer->is_retired) {
        *ret_outcome = DB_CONSUMER_WAS_RETIRED;
    }
    return true;
}
