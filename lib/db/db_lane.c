/* SPDX-License-Identifier: Apache-2.0
 *
 * The lanes' log in SQL. The invariant: a row stands behind the row that its
 * writer knew as the last, by seq and token both, or it does not stand at all.
 */
#include "db/db_lane.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/text.h"
#include "db_private.h"

#define MOVE_COUNT_MAX 8
#define DELETE_STRETCH 5000

#define SQL_ROW                                                                                                        \
    "lane, seq, incarnation, attempt, snapshot_from::text, from_floor, snapshot_to::text, coalesce(to_floor, 0),"      \
    " coalesce(to_ceiling, 0), position, claimed_to, system_identifier, coalesce(ahead_from, 0)"

#define ROW_COLUMNS                                                                                                    \
    DB_INT2, DB_INT8, DB_UUID, DB_UUID, DB_TEXT, DB_INT8, DB_TEXT, DB_INT8, DB_INT8, DB_INT8, DB_INT8, DB_INT8, DB_INT8

static struct uuid uuid_of(const PGresult *result, int column)
{
    struct uuid uuid;
    memcpy(uuid.bytes, db_get_uuid(result, 0, column), UUID_SIZE);
    return uuid;
}

static bool fill_row(struct db *db, const PGresult *result, struct db_lane_row *ret_row, struct err *err)
{
    char system_identifier[24];
    bool fits =
        text_format(system_identifier, sizeof system_identifier, "%" PRIu64, (uint64_t)db_get_int8(result, 0, 11));
    if (!fits || strcmp(system_identifier, db_server(db)->system_identifier) != 0) {
        return err_set(err, ERR_FATAL, "other_cluster",
                       "the log of lane %d speaks of cluster %s, this is %s: what is unpublished must be found anew",
                       db_get_int2(result, 0, 0), system_identifier, db_server(db)->system_identifier);
    }
    const char *to_text = db_get_text_or_null(result, 0, 6);
    *ret_row = (struct db_lane_row){
        .lane = db_get_int2(result, 0, 0),
        .seq = db_get_int8(result, 0, 1),
        .incarnation = uuid_of(result, 2),
        .attempt = uuid_of(result, 3),
        .from_text = strdup(db_get_text(result, 0, 4)),
        .from_floor = db_get_int8(result, 0, 5),
        .to_text = to_text == NULL ? NULL : strdup(to_text),
        .to_floor = db_get_int8(result, 0, 7),
        .to_ceiling = db_get_int8(result, 0, 8),
        .position = db_get_int8(result, 0, 9),
        .claimed_to = db_get_int8(result, 0, 10),
        .ahead_from = db_get_int8(result, 0, 12),
    };
    if (ret_row->from_text == NULL || (to_text != NULL && ret_row->to_text == NULL)) {
        db_lane_row_done(ret_row);
        return err_set(err, ERR_FATAL, "memory", "no memory for a row of a lane's log");
    }
    return true;
}

void db_lane_row_done(struct db_lane_row *row)
{
    free(row->from_text);
    free(row->to_text);
    row->lane = -1;
    row->from_text = NULL;
    row->to_text = NULL;
}

/* ---- Taking ---- */

/* Only for somebody who is registered. An end further ahead than a lease is long counts as passed: the clock stepped
 * back. */
static const struct db_statement TAKE_LANE = {
    .sql = "UPDATE onceward.lanes l SET owner = $2 WHERE l.lane = $1"
           " AND EXISTS (SELECT FROM onceward.relays r WHERE r.relay = $2 AND r.incarnation = $3"
           " AND r.until > clock_timestamp())"
           " AND (l.owner IS NULL OR l.owner = $2 OR NOT EXISTS (SELECT FROM onceward.relays r WHERE r.relay = l.owner"
           " AND r.until > clock_timestamp() AND r.until <= clock_timestamp() + $4 * interval '1 millisecond'))"
           " RETURNING l.lane",
    .columns = {DB_INT2},
};

static const struct db_statement TAKE_LOG = {
    .sql =
        "INSERT INTO onceward.lane_progress (lane, seq, owner, incarnation, attempt, kind, snapshot_from, from_floor,"
        " snapshot_to, to_floor, to_ceiling, position, claimed_to, ahead_from, starts, system_identifier)"
        " SELECT last.lane, last.seq + 1, $2, $3, $4, 'taken', last.snapshot_from, last.from_floor, last.snapshot_to,"
        " last.to_floor, last.to_ceiling, last.position, last.claimed_to, last.ahead_from, last.starts,"
        " last.system_identifier"
        " FROM (SELECT * FROM onceward.lane_progress WHERE lane = $1 ORDER BY seq DESC LIMIT 1) last"
        " ON CONFLICT DO NOTHING RETURNING " SQL_ROW,
    .columns = {ROW_COLUMNS},
};

static bool take_lane(struct db *db, const struct db_lane_owner *owner, int lane, bool *ret_is_ours, struct err *err)
{
    DB_PARAMS(params);
    db_params_int2(&params, (int16_t)lane);
    db_params_text(&params, owner->relay);
    db_params_uuid(&params, owner->incarnation.bytes);
    db_params_float8(&params, (double)owner->lease_ms);
    DB_RESULT(result);
    if (!db_exec(db, &TAKE_LANE, &params, &result, err)) {
        return false;
    }
    *ret_is_ours = db_result_rows(result) == 1;
    return true;
}

static bool take_log(struct db *db, const struct db_lane_owner *owner, int lane, const struct uuid *attempt,
                     bool *ret_is_ours, struct db_lane_row *ret_row, struct err *err)
{
    DB_PARAMS(params);
    db_params_int2(&params, (int16_t)lane);
    db_params_text(&params, owner->relay);
    db_params_uuid(&params, owner->incarnation.bytes);
    db_params_uuid(&params, attempt->bytes);
    DB_RESULT(result);
    if (!db_exec(db, &TAKE_LOG, &params, &result, err)) {
        return false;
    }
    *ret_is_ours = db_result_rows(result) == 1;
    return !*ret_is_ours || fill_row(db, result, ret_row, err);
}

bool db_lane_take(struct db *db, const struct db_lane_owner *owner, int lane, const struct uuid *attempt,
                  enum db_lane_take *ret_take, struct db_lane_row *ret_row, struct err *err)
{
    assert(lane >= 0 && owner->lease_ms > 0);
    DB_TX_AUTO struct db_tx *tx = NULL;
    bool is_ours = false;
    *ret_take = DB_LANE_BUSY;
    if (!db_tx_begin(db, &tx, err) || !take_lane(db, owner, lane, &is_ours, err)) {
        return false;
    }
    if (!is_ours) {
        return true;
    }
    FAILPOINT("relay.after_lane_before_log");
    /* A statement of its own, so that it sees what the owner before wrote while we waited for the lane's row. */
    if (!take_log(db, owner, lane, attempt, &is_ours, ret_row, err)) {
        return false;
    }
    if (!is_ours) {
        return true;
    }
    if (db_tx_commit(&tx, err) != DB_TX_COMMITTED) {
        db_lane_row_done(ret_row);
        return false;
    }
    FAILPOINT("relay.after_take");
    *ret_take = DB_LANE_TAKEN;
    return true;
}

/* ---- Moving ---- */

/* The server stands in the guard too: behind a pooler it can be swapped for one that was restored to an earlier time,
 * whose last row is the one that we know. What we hold as acknowledged would then settle events that took its ids. */
#define SQL_MOVED                                                                                                      \
    "INSERT INTO onceward.lane_progress (lane, seq, owner, incarnation, attempt, kind, snapshot_from, from_floor,"     \
    " snapshot_to, to_floor, to_ceiling, position, claimed_to, claimed_count, starts, settled_ids, settled_least,"     \
    " settled_greatest, settled_topics, settled_partitions, settled_offsets, ahead_from, system_identifier)"           \
    " SELECT $1, last.seq + 1, $4, $5, $6, 'moved', $7::pg_snapshot, $8, $9::pg_snapshot, $10, $11, $12, $13, $14,"    \
    " last.starts, $15, $16, $17, $18, $19, $20, nullif($23::int8, 0), last.system_identifier"                         \
    " FROM (SELECT seq, attempt, starts, system_identifier FROM onceward.lane_progress"                                \
    " WHERE lane = $1 AND seq >= $2 ORDER BY seq DESC LIMIT 1) last"                                                   \
    " WHERE last.seq = $2 AND last.attempt = $3 AND pg_catalog.pg_postmaster_start_time() = $21"                       \
    " AND " DB_SQL_TIMELINE " = $22 ON CONFLICT DO NOTHING RETURNING lane"

static const struct db_statement MOVE = {
    .sql = SQL_MOVED,
    .columns = {DB_INT2},
};

/* The same with what hangs on it: nothing is deferred and nothing let go unless the row was added. */
static const struct db_statement MOVE_AND_DEFER = {
    .sql = "WITH moved AS (" SQL_MOVED "), deferred AS ("
           "INSERT INTO onceward.deferred (id, lane, tenant, event_id, topic, key, type, source, subject, time,"
           " content_type, dataschema, traceparent, header_names, header_values, value, state, reason_code, reason)"
           " SELECT o.id, o.lane, o.tenant, o.event_id, o.topic, o.key, o.type, o.source, o.subject, o.time,"
           " o.content_type, o.dataschema, o.traceparent, o.header_names, o.header_values, o.value, d.state,"
           " d.reason_code, d.reason"
           " FROM moved CROSS JOIN unnest($24::int8[], $25::text[], $26::text[], $27::text[])"
           " AS d (id, state, reason_code, reason) JOIN onceward.outbox o ON o.id = d.id ON CONFLICT (id) DO NOTHING"
           "), released AS ("
           "UPDATE onceward.lanes l SET owner = NULL FROM moved WHERE $28 AND l.lane = moved.lane AND l.owner = $4"
           ") SELECT lane FROM moved",
    .columns = {DB_INT2},
};

static void add_place(struct db_params *params, const struct db_lane_owner *owner, const struct db_lane_move *move)
{
    db_params_int2(params, (int16_t)move->lane);
    db_params_int8(params, move->seq);
    db_params_uuid(params, move->attempt.bytes);
    db_params_text(params, owner->relay);
    db_params_uuid(params, owner->incarnation.bytes);
    db_params_uuid(params, move->new_attempt.bytes);
    db_params_literal(params, move->from_text);
    db_params_int8(params, move->from_floor);
    db_params_literal(params, move->to_text);
    if (move->to_text == NULL) {
        db_params_null(params, DB_INT8);
        db_params_null(params, DB_INT8);
    } else {
        db_params_int8(params, move->to_floor);
        db_params_int8(params, move->to_ceiling);
    }
    db_params_int8(params, move->position);
    db_params_int8(params, move->claimed_to);
    db_params_int4(params, move->claimed_count);
}

static void add_settled_bounds(struct db_params *params, const struct db_lane_move *move)
{
    int64_t least = move->settled[0].id;
    int64_t greatest = least;
    db_params_array_open(params, DB_INT8);
    for (size_t i = 0; i < move->settled_count; i++) {
        int64_t id = move->settled[i].id;
        db_params_int8(params, id);
        least = id < least ? id : least;
        greatest = id > greatest ? id : greatest;
    }
    db_params_array_close(params);
    db_params_int8(params, least);
    db_params_int8(params, greatest);
}

static void add_settled(struct db_params *params, const struct db_lane_move *move)
{
    if (move->settled_count == 0) {
        db_params_null(params, DB_INT8_ARRAY);
        db_params_null(params, DB_INT8);
        db_params_null(params, DB_INT8);
        db_params_null(params, DB_TEXT_ARRAY);
        db_params_null(params, DB_INT4_ARRAY);
        db_params_null(params, DB_INT8_ARRAY);
        return;
    }
    add_settled_bounds(params, move);
    db_params_array_open(params, DB_TEXT);
    for (size_t i = 0; i < move->settled_count; i++) {
        db_params_text(params, move->settled[i].topic);
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_INT4);
    for (size_t i = 0; i < move->settled_count; i++) {
        db_params_int4(params, move->settled[i].partition);
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_INT8);
    for (size_t i = 0; i < move->settled_count; i++) {
        if (move->settled[i].offset < 0) {
            db_params_null(params, DB_INT8);
        } else {
            db_params_int8(params, move->settled[i].offset);
        }
    }
    db_params_array_close(params);
}

static void add_server(struct db_params *params, const struct db_server *server)
{
    db_params_timestamptz(params, server->postmaster_start_us);
    db_params_int4(params, server->timeline);
}

static void add_deferred(struct db_params *params, const struct db_lane_move *move)
{
    db_params_array_open(params, DB_INT8);
    for (size_t i = 0; i < move->deferred_count; i++) {
        db_params_int8(params, move->deferred[i].id);
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_TEXT);
    for (size_t i = 0; i < move->deferred_count; i++) {
        db_params_text(params, move->deferred[i].is_parked ? "parked" : "held");
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_TEXT);
    for (size_t i = 0; i < move->deferred_count; i++) {
        db_params_text(params, move->deferred[i].reason_code);
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_TEXT);
    for (size_t i = 0; i < move->deferred_count; i++) {
        db_params_text(params, move->deferred[i].reason);
    }
    db_params_array_close(params);
    db_params_bool(params, move->is_release);
}

enum db_lane_outcome db_lane_move(struct db *db, const struct db_lane_owner *owner, struct db_lane_move *moves,
                                  size_t move_count, struct err *err)
{
    assert(move_count > 0 && move_count <= MOVE_COUNT_MAX);
    struct db_params params[MOVE_COUNT_MAX];
    struct db_call calls[MOVE_COUNT_MAX];
    memset(params, 0, sizeof params);
    for (size_t i = 0; i < move_count; i++) {
        const struct db_lane_move *move = &moves[i];
        bool is_plain = move->deferred_count == 0 && !move->is_release;
        add_place(&params[i], owner, move);
        add_settled(&params[i], move);
        add_server(&params[i], db_server(db));
        db_params_int8(&params[i], move->ahead_from);
        if (!is_plain) {
            add_deferred(&params[i], move);
        }
        calls[i] = (struct db_call){.statement = is_plain ? &MOVE : &MOVE_AND_DEFER, .params = &params[i]};
    }
    FAILPOINT("relay.before_log_insert");
    enum db_tx_outcome outcome = db_exec_tx(db, calls, move_count, err);
    FAILPOINT("relay.after_log_insert");
    for (size_t i = 0; i < move_count; i++) {
        moves[i].was_moved = outcome == DB_TX_COMMITTED && db_result_rows(calls[i].result) == 1;
        db_params_done(&params[i]);
    }
    db_calls_clear(calls, move_count);
    switch (outcome) {
    case DB_TX_COMMITTED: return DB_LANE_WRITTEN;
    case DB_TX_FAILED: return DB_LANE_FAILED;
    case DB_TX_UNKNOWN: return DB_LANE_UNKNOWN;
    }
    assert(!"no such outcome");
    return DB_LANE_UNKNOWN;
}

/* ---- Looking ---- */

static const struct db_statement READ_TAIL = {
    .sql = "SELECT " SQL_ROW ", EXISTS (SELECT FROM onceward.lane_progress p WHERE p.lane = $1 AND p.seq > $2"
           " AND p.incarnation <> $3), " DB_SQL_SERVER
           " FROM onceward.lane_progress WHERE lane = $1 ORDER BY seq DESC LIMIT 1",
    .columns = {ROW_COLUMNS, DB_BOOL, DB_SERVER_COLUMNS},
};

bool db_lane_read_tail(struct db *db, int lane, int64_t seq, const struct uuid *incarnation,
                       struct db_lane_tail *ret_tail, struct err *err)
{
    DB_PARAMS(params);
    db_params_int2(&params, (int16_t)lane);
    db_params_int8(&params, seq);
    db_params_uuid(&params, incarnation->bytes);
    DB_RESULT(result);
    if (!db_exec_row(db, &READ_TAIL, &params, &result, err) || !db_check_server(db, result, 14, err) ||
        !fill_row(db, result, &ret_tail->last, err)) {
        return false;
    }
    ret_tail->has_foreign_after = db_get_bool(result, 0, 13);
    return true;
}

/* Of what the rows name, only that which will be read again: not behind the place. */
static const struct db_statement READ_AHEAD = {
    .sql = "SELECT i.id, i.partition, coalesce(i.record_offset, -1), p.seq FROM onceward.lane_progress p"
           " CROSS JOIN LATERAL unnest(p.settled_ids, p.settled_partitions, p.settled_offsets)"
           " AS i (id, partition, record_offset)"
           " CROSS JOIN LATERAL (SELECT xid FROM onceward.outbox WHERE id = i.id LIMIT 1) o"
           " WHERE p.lane = $1 AND p.seq >= $2 AND p.seq <= $3 AND p.settled_ids IS NOT NULL"
           " AND NOT pg_catalog.pg_visible_in_snapshot(o.xid, $4::pg_snapshot)"
           " AND NOT (i.id <= $6 AND coalesce(pg_catalog.pg_visible_in_snapshot(o.xid, $5::pg_snapshot), false))",
    .columns = {DB_INT8, DB_INT4, DB_INT8, DB_INT8},
};

bool db_lane_each_ahead(struct db *db, const struct db_lane_row *row,
                        bool (*visit)(void *context, const struct db_lane_ahead *ahead, struct err *err), void *context,
                        struct err *err)
{
    if (row->ahead_from == 0) {
        return true;
    }
    DB_PARAMS(params);
    db_params_int2(&params, (int16_t)row->lane);
    db_params_int8(&params, row->ahead_from);
    db_params_int8(&params, row->seq);
    db_params_literal(&params, row->from_text);
    db_params_literal(&params, row->to_text);
    db_params_int8(&params, row->position);
    DB_RESULT(result);
    if (!db_exec(db, &READ_AHEAD, &params, &result, err)) {
        return false;
    }
    for (int i = 0; i < db_result_rows(result); i++) {
        struct db_lane_ahead ahead = {.id = db_get_int8(result, i, 0),
                                      .partition = db_get_int4(result, i, 1),
                                      .offset = db_get_int8(result, i, 2),
                                      .seq = db_get_int8(result, i, 3)};
        if (!visit(context, &ahead, err)) {
            return false;
        }
    }
    return true;
}

static const struct db_statement READ_HELD_KEYS = {
    .sql =
        "SELECT topic, key, count(*) FROM onceward.deferred WHERE lane = $1 AND state NOT IN ('published', 'discarded')"
        " GROUP BY topic, key ORDER BY topic, key",
    .columns = {DB_TEXT, DB_TEXT, DB_INT8},
};

bool db_lane_each_held_key(struct db *db, int lane,
                           bool (*visit)(void *context, const char *topic, const char *key, struct err *err),
                           void *context, int64_t *ret_count, struct err *err)
{
    DB_PARAMS(params);
    db_params_int2(&params, (int16_t)lane);
    DB_RESULT(result);
    if (!db_exec(db, &READ_HELD_KEYS, &params, &result, err)) {
        return false;
    }
    int64_t count = 0;
    for (int row = 0; row < db_result_rows(result); row++) {
        if (!visit(context, db_get_text(result, row, 0), db_get_text(result, row, 1), err)) {
            return false;
        }
        count += db_get_int8(result, row, 2);
    }
    *ret_count = count;
    return true;
}

static const struct db_statement DELETE_OLD = {
    .sql =
        "WITH stretch AS (SELECT least($2::int8 + $3, max(seq) - 1) AS last FROM onceward.lane_progress WHERE lane = "
        "$1),"
        " kept AS (SELECT min(seq) AS seq FROM onceward.lane_progress, stretch WHERE lane = $1 AND seq > $2"
        " AND seq <= stretch.last AND created_at >= clock_timestamp() - interval '1 hour'),"
        " deleted AS (DELETE FROM onceward.lane_progress p USING stretch, kept WHERE p.lane = $1 AND p.seq > $2"
        " AND p.seq <= stretch.last AND p.seq < coalesce(kept.seq, stretch.last + 1) AND p.settled_ids IS NULL"
        " AND p.created_at < clock_timestamp() - interval '1 hour' RETURNING p.seq)"
        " SELECT coalesce(kept.seq - 1, greatest(stretch.last, $2)), (SELECT count(*) FROM deleted) FROM stretch, kept",
    .columns = {DB_INT8, DB_INT8},
};

bool db_lane_delete_old(struct db *db, int lane, int64_t *seqp, int64_t *ret_count, struct err *err)
{
    DB_PARAMS(params);
    db_params_int2(&params, (int16_t)lane);
    db_params_int8(&params, *seqp);
    db_params_int8(&params, DELETE_STRETCH);
    DB_RESULT(result);
    if (!db_exec_row(db, &DELETE_OLD, &params, &result, err)) {
        return false;
    }
    *seqp = db_get_int8(result, 0, 0);
    *ret_count = db_get_int8(result, 0, 1);
    return true;
}
