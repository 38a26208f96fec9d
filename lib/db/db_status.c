/* SPDX-License-Identifier: Apache-2.0
 *
 * The one screen: flow, lanes, consumers. Every statement's cost is bounded,
 * whatever the backlog, since it is asked when things are bad.
 */
#include "db/db_status.h"

#include <assert.h>

#include "db_private.h"

/* ---- Flow --------------------------------------------------------------------------------------------------- */

static const struct db_statement READ_FLOW = {
    .sql = "WITH backlog AS MATERIALIZED (SELECT * FROM onceward.backlog)"
           " SELECT (SELECT count(*) FROM backlog), (SELECT count(*) FROM backlog WHERE is_claimed),"
           "        coalesce((SELECT is_cut FROM backlog LIMIT 1), false),"
           "        (extract(epoch FROM clock_timestamp() - (SELECT min(time) FROM backlog)) * 1000000)::int8,"
           "        f.deferred_count, f.parked_count, f.dead_letter_count, f.relays_alive,"
           "        coalesce(pg_catalog.pg_sequence_last_value('onceward.outbox_id_seq'), 0),"
           "        EXISTS (SELECT FROM onceward.requests) AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_activity a"
           "           WHERE a.datname = current_database() AND a.application_name LIKE 'onceward-producer%')"
           "   FROM onceward.flow f",
    .columns = {DB_INT8, DB_INT8, DB_BOOL, DB_INT8, DB_INT8, DB_INT8, DB_INT8, DB_INT8, DB_INT8, DB_BOOL},
};

bool db_status_flow(struct db *db, struct db_status_flow *ret_flow, struct err *err)
{
    DB_RESULT(result);
    if (!db_exec_row(db, &READ_FLOW, NULL, &result, err)) {
        return false;
    }
    bool has_oldest = !db_is_null(result, 0, 3);
    *ret_flow = (struct db_status_flow){
        .backlog_count = db_get_int8(result, 0, 0),
        .claimed_count = db_get_int8(result, 0, 1),
        .is_backlog_cut = db_get_bool(result, 0, 2),
        .has_oldest = has_oldest,
        .oldest_age_us = has_oldest ? db_get_int8(result, 0, 3) : 0,
        .deferred_count = db_get_int8(result, 0, 4),
        .parked_count = db_get_int8(result, 0, 5),
        .dead_letter_count = db_get_int8(result, 0, 6),
        .relay_count = db_get_int8(result, 0, 7),
        .last_outbox_id = db_get_int8(result, 0, 8),
        .is_producer_missing = db_get_bool(result, 0, 9),
    };
    return true;
}

/* ---- Lanes -------------------------------------------------------------------------------------------------- */

static const struct db_statement LIST_LANES = {
    .sql = "SELECT lane::int4, owner, is_owned, seq, position, claimed_to, starts,"
           "       (extract(epoch FROM clock_timestamp() - moved_at) * 1000000)::int8"
           "  FROM onceward.lane_state ORDER BY lane LIMIT 1000",
    .columns = {DB_INT4, DB_TEXT, DB_BOOL, DB_INT8, DB_INT8, DB_INT8, DB_INT4, DB_INT8},
};

bool db_status_lanes(struct db *db, struct db_status_lane **ret_lanes, size_t *ret_count, struct err *err)
{
    DB_RESULT(result);
    if (!db_exec(db, &LIST_LANES, NULL, &result, err)) {
        return false;
    }
    struct db_status_lane *lanes = db_rows_new(db_result_rows(result), sizeof *lanes, err);
    if (lanes == NULL) {
        return false;
    }
    for (int row = 0; row < db_result_rows(result); row++) {
        lanes[row] = (struct db_status_lane){
            .lane = db_get_int4(result, row, 0),
            .is_owned = db_get_bool(result, row, 2),
            .seq = db_get_int8(result, row, 3),
            .position = db_get_int8(result, row, 4),
            .claimed_to = db_get_int8(result, row, 5),
            .starts = db_get_int4(result, row, 6),
            .moved_age_us = db_get_int8(result, row, 7),
        };
        db_copy_text(result, row, 1, lanes[row].owner, sizeof lanes[row].owner);
    }
    *ret_lanes = lanes;
    *ret_count = (size_t)db_result_rows(result);
    return true;
}

/* ---- Consumers ---------------------------------------------------------------------------------------------- */

/* What was published a while ago, by the last rows that said so then: an event of it that is not applied waits for a
 * consumer that does not come. */
static const struct db_statement LIST_PARTITIONS = {
    .sql = "WITH published AS MATERIALIZED ("
           "   SELECT s.topic, s.partition, max(s.record_offset) AS record_offset FROM onceward.lanes l"
           "    CROSS JOIN LATERAL ("
           "          SELECT settled_topics, settled_partitions, settled_offsets FROM onceward.lane_progress p"
           "           WHERE p.lane = l.lane AND p.settled_ids IS NOT NULL"
           "             AND p.created_at < clock_timestamp() - $1 * interval '1 millisecond'"
           "           ORDER BY p.seq DESC LIMIT 5) p"
           "    CROSS JOIN LATERAL unnest(p.settled_topics, p.settled_partitions, p.settled_offsets)"
           "       AS s (topic, partition, record_offset) GROUP BY s.topic, s.partition)"
           " SELECT c.consumer, c.scope, c.topic, c.partition, c.owner, c.next_offset,"
           "       (extract(epoch FROM clock_timestamp() - c.moved_at) * 1000000)::int8,"
           "       onceward.consumer_is_connected(c.consumer),"
           "       CASE WHEN p.record_offset >= c.next_offset THEN p.record_offset ELSE -1 END,"
           "       c.stop_code, c.stop_reason, coalesce(c.stopped_at, 'epoch')"
           "  FROM onceward.consumer_state c LEFT JOIN published p ON p.topic = c.topic AND p.partition = c.partition"
           " WHERE c.consumer NOT IN (SELECT consumer FROM onceward.retired_consumers)"
           " ORDER BY c.consumer, c.scope, c.topic, c.partition LIMIT 1000",
    .columns = {DB_TEXT, DB_TEXT, DB_TEXT, DB_INT4, DB_TEXT, DB_INT8, DB_INT8, DB_BOOL, DB_INT8, DB_TEXT, DB_TEXT,
                DB_TIMESTAMPTZ},
};

bool db_status_partitions(struct db *db, struct db_status_partition **ret_partitions, size_t *ret_count,
                          struct err *err)
{
    DB_PARAMS(params);
    db_params_float8(&params, DB_STATUS_OVERDUE_MS);
    DB_RESULT(result);
    if (!db_exec(db, &LIST_PARTITIONS, &params, &result, err)) {
        return false;
    }
    struct db_status_partition *partitions = db_rows_new(db_result_rows(result), sizeof *partitions, err);
    if (partitions == NULL) {
        return false;
    }
    for (int row = 0; row < db_result_rows(result); row++) {
        struct db_status_partition *partition = &partitions[row];
        db_copy_text(result, row, 0, partition->consumer, sizeof partition->consumer);
        db_copy_text(result, row, 1, partition->scope, sizeof partition->scope);
        db_copy_text(result, row, 2, partition->topic, sizeof partition->topic);
        db_copy_text(result, row, 4, partition->owner, sizeof partition->owner);
        partition->partition = db_get_int4(result, row, 3);
        partition->next_offset = db_get_int8(result, row, 5);
        partition->moved_age_us = db_get_int8(result, row, 6);
        partition->is_connected = db_get_bool(result, row, 7);
        partition->overdue_offset = db_get_int8(result, row, 8);
        db_copy_text(result, row, 9, partition->stop_code, sizeof partition->stop_code);
        db_copy_text(result, row, 10, partition->stop_reason, sizeof partition->stop_reason);
        partition->stopped_at_us = db_get_timestamptz(result, row, 11);
    }
    *ret_partitions = partitions;
    *ret_count = (size_t)db_result_rows(result);
    return true;
}

/* Completed ones are nearly all of an inbox, so each kind's count stops by itself: the failed and claimed few are
 * counted where they stand among the newest rows. Foreign ids count with the own ones. */
static const struct db_statement LIST_INBOXES = {
    .sql = "SELECT s.consumer, s.scope, n.completed, n.failed, n.claimed,"
           "       (SELECT count(*) FROM onceward.dead_letters d WHERE d.consumer = s.consumer AND d.scope = s.scope"
           "           AND d.acknowledged_at IS NULL)"
           "  FROM onceward.inbox_scopes s"
           " CROSS JOIN LATERAL ("
           "       SELECT count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'failed'),"
           "              count(*) FILTER (WHERE status = 'claimed')"
           "         FROM (SELECT status FROM onceward.inbox WHERE scope_id = s.scope_id"
           "                UNION ALL"
           "               SELECT status FROM onceward.inbox_foreign WHERE scope_id = s.scope_id"
           "                LIMIT 100001) counted) n (completed, failed, claimed)"
           " WHERE s.consumer NOT IN (SELECT consumer FROM onceward.retired_consumers)"
           " ORDER BY s.consumer, s.scope LIMIT 1000",
    .columns = {DB_TEXT, DB_TEXT, DB_INT8, DB_INT8, DB_INT8, DB_INT8},
};

bool db_status_inboxes(struct db *db, struct db_status_inbox **ret_inboxes, size_t *ret_count, struct err *err)
{
    DB_RESULT(result);
    if (!db_exec(db, &LIST_INBOXES, NULL, &result, err)) {
        return false;
    }
    struct db_status_inbox *inboxes = db_rows_new(db_result_rows(result), sizeof *inboxes, err);
    if (inboxes == NULL) {
        return false;
    }
    for (int row = 0; row < db_result_rows(result); row++) {
        db_copy_text(result, row, 0, inboxes[row].consumer, sizeof inboxes[row].consumer);
        db_copy_text(result, row, 1, inboxes[row].scope, sizeof inboxes[row].scope);
        inboxes[row].completed_count = db_get_int8(result, row, 2);
        inboxes[row].failed_count = db_get_int8(result, row, 3);
        inboxes[row].claimed_count = db_get_int8(result, row, 4);
        inboxes[row].dead_letter_count = db_get_int8(result, row, 5);
    }
    *ret_inboxes = inboxes;
    *ret_count = (size_t)db_result_rows(result);
    return true;
}
