/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables topics and routes. Each change and its audit row are one statement.
 */
#include "db/db_topic.h"

#include <assert.h>

#include "db_private.h"

/* ---- Topics ------------------------------------------------------------------------------------------------- */

/* Gives what happened: inserted, changed or nothing. The old limit comes from the statement's snapshot. */
static const struct db_statement ADD_TOPIC = {
    .sql = "WITH old AS (SELECT event_bytes_max FROM onceward.topics WHERE topic = $1),"
           " added AS ("
           "   INSERT INTO onceward.topics AS t (topic, event_bytes_max)"
           "   VALUES ($1, coalesce(nullif($2, 0), 1048588))"
           "   ON CONFLICT (topic) DO UPDATE SET event_bytes_max = $2"
           "     WHERE $2 > 0 AND t.event_bytes_max <> $2"
           "   RETURNING event_bytes_max),"
           " audited AS ("
           "   INSERT INTO onceward.audit (action, object, detail)"
           "   SELECT 'topic add', $1, jsonb_build_object('event_bytes_max', added.event_bytes_max,"
           "          'event_bytes_max_before', (SELECT event_bytes_max FROM old)) FROM added)"
           " SELECT EXISTS (SELECT FROM added), EXISTS (SELECT FROM old)",
    .columns = {DB_BOOL, DB_BOOL},
};

bool db_topic_add(struct db *db, const char *topic, int32_t event_bytes_max, enum db_topic_outcome *ret_outcome,
                  struct err *err)
{
    assert(topic != NULL && event_bytes_max >= 0);
    DB_PARAMS(params);
    db_params_text(&params, topic);
    db_params_int4(&params, event_bytes_max);
    DB_RESULT(result);
    if (!db_exec_row(db, &ADD_TOPIC, &params, &result, err)) {
        return false;
    }
    bool was_written = db_get_bool(result, 0, 0);
    bool was_there = db_get_bool(result, 0, 1);
    if (!was_written) {
        *ret_outcome = DB_TOPIC_UNCHANGED;
    } else {
        *ret_outcome = was_there ? DB_TOPIC_CHANGED : DB_TOPIC_ADDED;
    }
    return true;
}

static const struct db_statement LIST_TOPICS = {
    .sql =
        "SELECT topic, event_bytes_max, in_flight_per_key, created_at FROM onceward.topics ORDER BY topic LIMIT 10000",
    .columns = {DB_TEXT, DB_INT4, DB_INT4, DB_TIMESTAMPTZ},
};

bool db_topic_list(struct db *db, struct db_topic **ret_topics, size_t *ret_count, struct err *err)
{
    DB_RESULT(result);
    if (!db_exec(db, &LIST_TOPICS, NULL, &result, err)) {
        return false;
    }
    size_t count = (size_t)db_result_rows(result);
    struct db_topic *topics = db_rows_new(db_result_rows(result), sizeof *topics, err);
    if (topics == NULL) {
        return false;
    }
    for (int row = 0; row < db_result_rows(result); row++) {
        db_copy_text(result, row, 0, topics[row].topic, sizeof topics[row].topic);
        topics[row].event_bytes_max = db_get_int4(result, row, 1);
        topics[row].in_flight_per_key = db_get_int4(result, row, 2);
        topics[row].created_at_us = db_get_timestamptz(result, row, 3);
    }
    *ret_topics = topics;
    *ret_count = count;
    return true;
}

/* ---- Routes ------------------------------------------------------------------------------------------------- */

static const struct db_statement ADD_ROUTE = {
    .sql = "WITH old AS (SELECT topic, dataschema FROM onceward.routes WHERE type = $1),"
           " added AS ("
           "   INSERT INTO onceward.routes AS r (type, topic, dataschema)"
           "   SELECT $1, t.topic, $3 FROM onceward.topics t WHERE t.topic = $2"
           "   ON CONFLICT (type) DO UPDATE SET topic = excluded.topic, dataschema = excluded.dataschema"
           "     WHERE r.topic <> excluded.topic OR r.dataschema IS DISTINCT FROM excluded.dataschema"
           "   RETURNING topic),"
           " audited AS ("
           "   INSERT INTO onceward.audit (action, object, detail)"
           "   SELECT 'route add', $1, jsonb_build_object('topic', $2::text, 'dataschema', $3::text,"
           "          'topic_before', (SELECT topic FROM old)) FROM added)"
           " SELECT EXISTS (SELECT FROM added), EXISTS (SELECT FROM old),"
           "        EXISTS (SELECT FROM onceward.topics WHERE topic = $2)",
    .columns = {DB_BOOL, DB_BOOL, DB_BOOL},
};

bool db_topic_route_add(struct db *db, const char *type, const char *topic, const char *dataschema,
                        enum db_topic_route_outcome *ret_outcome, struct err *err)
{
    assert(type != NULL && topic != NULL);
    DB_PARAMS(params);
    db_params_text(&params, type);
    db_params_text(&params, topic);
    db_params_text(&params, dataschema);
    DB_RESULT(result);
    if (!db_exec_row(db, &ADD_ROUTE, &params, &result, err)) {
        return false;
    }
    bool was_written = db_get_bool(result, 0, 0);
    bool was_there = db_get_bool(result, 0, 1);
    if (!db_get_bool(result, 0, 2)) {
        *ret_outcome = DB_TOPIC_ROUTE_UNKNOWN_TOPIC;
    } else if (!was_written) {
        *ret_outcome = DB_TOPIC_ROUTE_UNCHANGED;
    } else {
        *ret_outcome = was_there ? DB_TOPIC_ROUTE_CHANGED : DB_TOPIC_ROUTE_ADDED;
    }
    return true;
}

static const struct db_statement LIST_ROUTES = {
    .sql = "SELECT type, topic, dataschema, created_at FROM onceward.routes ORDER BY type LIMIT 10000",
    .columns = {DB_TEXT, DB_TEXT, DB_TEXT, DB_TIMESTAMPTZ},
};

bool db_topic_route_list(struct db *db, struct db_topic_route **ret_routes, size_t *ret_count, struct err *err)
{
    DB_RESULT(result);
    if (!db_exec(db, &LIST_ROUTES, NULL, &result, err)) {
        return false;
    }
    size_t count = (size_t)db_result_rows(result);
    struct db_topic_route *routes = db_rows_new(db_result_rows(result), sizeof *routes, err);
    if (routes == NULL) {
        return false;
    }
    for (int row = 0; row < db_result_rows(result); row++) {
        db_copy_text(result, row, 0, routes[row].type, sizeof routes[row].type);
        db_copy_text(result, row, 1, routes[row].topic, sizeof routes[row].topic);
        db_copy_text(result, row, 2, routes[row].dataschema, sizeof routes[row].dataschema);
        routes[row].created_at_us = db_get_timestamptz(result, row, 3);
    }
    *ret_routes = routes;
    *ret_count = count;
    return true;
}

/* ---- Removal ------------------------------------------------------------------------------------------------ */

/* Both statements take name, is_dry, by, reason, is_forced, and give: was there, the three counts, is it in use. */
static bool run_removal(struct db *db, const struct db_statement *statement, const char *name,
                        const struct db_topic_removal_options *options, struct db_topic_uses *ret_uses,
                        enum db_topic_removal *ret_outcome, struct err *err)
{
    assert(name != NULL);
    DB_PARAMS(params);
    db_params_text(&params, name);
    db_params_bool(&params, options->is_dry);
    db_params_text(&params, options->audit.by);
    db_params_text(&params, options->audit.reason);
    db_params_bool(&params, options->is_forced);
    DB_RESULT(result);
    if (!db_exec_row(db, statement, &params, &result, err)) {
        return false;
    }
    *ret_uses = (struct db_topic_uses){
        .route_count = db_get_int8(result, 0, 1),
        .waiting_count = db_get_int8(result, 0, 2),
        .recent_count = db_get_int8(result, 0, 3),
    };
    *ret_outcome = DB_TOPIC_REMOVED;
    if (!db_get_bool(result, 0, 0)) {
        *ret_outcome = DB_TOPIC_UNKNOWN;
    } else if (db_get_bool(result, 0, 4)) {
        *ret_outcome = DB_TOPIC_IN_USE;
    }
    return true;
}

#define REMOVAL_TYPES DB_BOOL, DB_INT8, DB_INT8, DB_INT8, DB_BOOL

/* A route that is added at the same moment is refused by its key, or refuses this. */
static const struct db_statement REMOVE_TOPIC = {
    .sql =
        "WITH old AS (SELECT topic FROM onceward.topics WHERE topic = $1),"
        " uses AS MATERIALIZED (SELECT (SELECT count(*) FROM onceward.routes WHERE topic = $1) AS routes,"
        "      (SELECT count(*) FROM onceward.backlog WHERE topic = $1) + (SELECT count(*) FROM onceward.deferred"
        "        WHERE topic = $1 AND state NOT IN ('published', 'discarded')) AS waiting),"
        " removed AS (DELETE FROM onceward.topics t USING uses u WHERE t.topic = $1 AND NOT $2"
        "      AND ($5 OR u.routes + u.waiting = 0) RETURNING t.topic, t.event_bytes_max),"
        " audited AS (INSERT INTO onceward.audit (action, object, detail) SELECT 'topic remove', topic,"
        "      jsonb_build_object('by', $3::text, 'reason', $4::text, 'event_bytes_max', event_bytes_max) FROM removed)"
        " SELECT EXISTS (SELECT FROM old), routes, waiting, 0::int8, routes + waiting > 0 AND NOT $5 FROM uses",
    .columns = {REMOVAL_TYPES},
};

bool db_topic_remove(struct db *db, const char *topic, const struct db_topic_removal_options *options,
                     struct db_topic_uses *ret_uses, enum db_topic_removal *ret_outcome, struct err *err)
{
    assert(!options->is_forced);
    return run_removal(db, &REMOVE_TOPIC, topic, options, ret_uses, ret_outcome, err);
}

static const struct db_statement REMOVE_ROUTE = {
    .sql = "WITH old AS (SELECT type FROM onceward.routes WHERE type = $1),"
           " uses AS MATERIALIZED (SELECT count(*) FILTER (WHERE o.type = $1"
           "        AND o.time > clock_timestamp() - interval '1 hour') AS recent"
           "      FROM (SELECT type, time FROM onceward.outbox ORDER BY id DESC LIMIT 10000) o),"
           " removed AS (DELETE FROM onceward.routes r USING uses u WHERE r.type = $1 AND NOT $2"
           "      AND ($5 OR u.recent = 0) RETURNING r.type, r.topic, r.dataschema),"
           " audited AS (INSERT INTO onceward.audit (action, object, detail) SELECT 'route remove', type,"
           "      jsonb_build_object('by', $3::text, 'reason', $4::text, 'topic', topic, 'dataschema', dataschema)"
           "      FROM removed)"
           " SELECT EXISTS (SELECT FROM old), 0::int8, 0::int8, recent, recent > 0 AND NOT $5 FROM uses",
    .columns = {REMOVAL_TYPES},
};

bool db_topic_route_remove(struct db *db, const char *type, const struct db_topic_removal_options *options,
                           struct db_topic_uses *ret_uses, enum db_topic_removal *ret_outcome, struct err *err)
{
    return run_removal(db, &REMOVE_ROUTE, type, options, ret_uses, ret_outcome, err);
}
