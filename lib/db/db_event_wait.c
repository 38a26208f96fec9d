/* SPDX-License-Identifier: Apache-2.0
 *
 * The one look for all who wait. Each row costs index probes only: of its
 * outbox row (by id once that is known, since that alone names the partition),
 * of `deferred`, and of the inbox of each consumer.
 */
#include "db/db_event_wait.h"

#include <assert.h>
#include <string.h>

#include "db_private.h"

static const struct db_statement LOOK = {
    .sql =
        "WITH retired AS MATERIALIZED (SELECT consumer FROM onceward.retired_consumers) "
        "SELECT w.n, coalesce(o.id, 0), "
        "CASE WHEN o.id IS NULL THEN 'unknown' "
        "WHEN d.state IN ('parked', 'discarded') OR c.failed_count > 0 THEN 'failed' "
        "WHEN c.consumer_count > 0 THEN CASE WHEN c.open_count = 0 THEN 'applied' END "
        "WHEN w.consumer IS NULL AND (SELECT e.status = 'completed' FROM onceward.events e WHERE e.outbox_id = o.id "
        "LIMIT 1) THEN 'published' END "
        "FROM unnest($1::uuid[], $2::int8[], $3::text[], $4::text[], $5::int4[]) "
        "AS w(event_id, outbox_id, tenant, consumer, n) "
        "LEFT JOIN LATERAL ((SELECT b.id, b.topic FROM onceward.outbox b WHERE w.outbox_id > 0 AND b.id = w.outbox_id) "
        "UNION ALL (SELECT b.id, b.topic FROM onceward.outbox b WHERE w.outbox_id = 0 AND b.event_id = w.event_id "
        "AND b.tenant = w.tenant ORDER BY b.id LIMIT 1)) o ON true "
        "LEFT JOIN LATERAL (SELECT state FROM onceward.deferred d WHERE d.id = o.id OFFSET 0) d ON true "
        "CROSS JOIN LATERAL (SELECT count(*) AS consumer_count, "
        "count(*) FILTER (WHERE i.status = 'failed' OR l.is_dead) AS failed_count, "
        "count(*) FILTER (WHERE i.status IS DISTINCT FROM 'completed') AS open_count "
        "FROM onceward.inbox_scopes s "
        "LEFT JOIN LATERAL (SELECT i.status FROM onceward.inbox i WHERE i.scope_id = s.scope_id "
        "AND i.event_id = w.event_id OFFSET 0) i ON true "
        "LEFT JOIN LATERAL (SELECT true AS is_dead FROM onceward.dead_letters l WHERE i.status IS NULL "
        "AND l.event_id = w.event_id::text AND l.consumer = s.consumer AND l.scope = s.scope LIMIT 1) l ON true "
        "WHERE s.scope = 'live' AND CASE WHEN w.consumer IS NULL THEN s.consumer NOT IN (SELECT r.consumer FROM "
        "retired r) "
        "ELSE s.consumer = w.consumer END "
        "AND (i.status IS NOT NULL OR EXISTS (SELECT FROM onceward.consumer_progress p "
        "WHERE p.consumer = s.consumer AND p.scope = s.scope AND p.topic = o.topic))) c",
    .columns = {DB_INT4, DB_INT8, DB_TEXT},
};

static enum db_event_wait_outcome outcome_of(const char *text)
{
    static const char *const names[] = {[DB_EVENT_WAIT_OPEN] = "",
                                        [DB_EVENT_WAIT_UNKNOWN] = "unknown",
                                        [DB_EVENT_WAIT_APPLIED] = "applied",
                                        [DB_EVENT_WAIT_PUBLISHED] = "published",
                                        [DB_EVENT_WAIT_FAILED] = "failed"};
    size_t i = 0;
    while (text != NULL && i < sizeof names / sizeof *names && strcmp(names[i], text) != 0) {
        i++;
    }
    assert(i < sizeof names / sizeof *names);
    return (enum db_event_wait_outcome)i;
}

static void add_waits(struct db_params *params, const struct db_event_wait *waits, size_t count)
{
    db_params_array_open(params, DB_UUID);
    for (size_t i = 0; i < count; i++) {
        db_params_uuid(params, waits[i].event_id.bytes);
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_INT8);
    for (size_t i = 0; i < count; i++) {
        db_params_int8(params, waits[i].outbox_id);
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_params_text(params, waits[i].tenant);
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_params_text(params, waits[i].consumer);
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_INT4);
    for (size_t i = 0; i < count; i++) {
        db_params_int4(params, (int32_t)i);
    }
    db_params_array_close(params);
}

bool db_event_wait_look(struct db *db, struct db_event_wait *waits, size_t count, struct err *err)
{
    DB_PARAMS(params);
    DB_RESULT(result);
    add_waits(&params, waits, count);
    if (!db_exec(db, &LOOK, &params, &result, err)) {
        return false;
    }
    for (int row = 0; row < db_result_rows(result); row++) {
        int32_t n = db_get_int4(result, row, 0);
        assert(n >= 0 && (size_t)n < count);
        waits[n].outbox_id = db_get_int8(result, row, 1);
        waits[n].outcome = outcome_of(db_get_text_or_null(result, row, 2));
    }
    return true;
}
