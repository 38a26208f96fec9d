/* SPDX-License-Identifier: Apache-2.0
 *
 * Events for people: a list with filters, and one event's whole way.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/uuid.h"
#include "db/db_status.h"
#include "db_private.h"

static void copy_uuid(char ret_text[UUID_TEXT_SIZE], const unsigned char *bytes)
{
    struct uuid uuid;
    for (size_t i = 0; i < sizeof uuid.bytes; i++) {
        uuid.bytes[i] = bytes[i];
    }
    uuid_to_text(&uuid, ret_text);
}

/* ---- Events ------------------------------------------------------------------------------------------------- */

#define EVENT_COLUMNS                                                                                                  \
    "e.event_id, e.outbox_id, e.lane::int4, e.tenant, e.topic, e.key, e.type, e.time, e.value_bytes, e.status,"        \
    " p.partition, p.record_offset, p.settled_at, e.deferred_state, e.reason_code, e.reason"
#define EVENT_TYPES                                                                                                    \
    DB_UUID, DB_INT8, DB_INT4, DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT, DB_TIMESTAMPTZ, DB_INT4, DB_TEXT, DB_INT4, DB_INT8, \
        DB_TIMESTAMPTZ, DB_TEXT, DB_TEXT, DB_TEXT

/* The places are looked up for the page's rows only. */
#define LIST_SQL(more)                                                                                                 \
    "SELECT " EVENT_COLUMNS " FROM ("                                                                                  \
    "SELECT * FROM onceward.events WHERE ($1::text IS NULL OR status = $1) AND ($2::text IS NULL OR tenant = $2)"      \
    " AND ($3::text IS NULL OR topic = $3) AND ($4::text IS NULL OR key = $4) AND ($5::text IS NULL OR type = $5)"     \
    " AND outbox_id < $6 " more " ORDER BY outbox_id DESC LIMIT $7) e"                                                 \
    " LEFT JOIN LATERAL onceward.event_place(e.lane, e.outbox_id) p ON true ORDER BY e.outbox_id DESC"

static const struct db_statement LIST_ANY = {.sql = LIST_SQL(""), .columns = {EVENT_TYPES}};

/* What failed is deferred; what is pending is deferred or not below the bound. So the outbox's past is not read for
 * it. */
static const struct db_statement LIST_FAILED = {
    .sql = LIST_SQL("AND outbox_id IN (SELECT id FROM onceward.deferred WHERE state IN ('parked', 'discarded'))"),
    .columns = {EVENT_TYPES},
};
static const struct db_statement LIST_OPEN = {
    .sql = LIST_SQL("AND (xid >= (SELECT xid_min FROM onceward.unsettled_bound) OR outbox_id IN"
                    " (SELECT id FROM onceward.deferred WHERE state NOT IN ('published', 'discarded')))"),
    .columns = {EVENT_TYPES},
};

/* The two below by the views' own words: what is claimed lies between the places of the lanes and what they have handed
 * over, what is completed was handed over, but for what was deferred. So the backlog is not read for it. */
static const struct db_statement LIST_CLAIMED = {
    .sql = LIST_SQL("AND outbox_id > (SELECT least(min(position), (SELECT min(id) - 1 FROM onceward.deferred"
                    "                  WHERE state = 'in_doubt')) FROM onceward.lane_state)"
                    " AND outbox_id <= (SELECT greatest(max(claimed_to), (SELECT max(id) FROM onceward.deferred"
                    "                  WHERE state = 'in_doubt')) FROM onceward.lane_state)"),
    .columns = {EVENT_TYPES},
};
static const struct db_statement LIST_COMPLETED = {
    .sql = LIST_SQL("AND outbox_id <= (SELECT greatest(max(claimed_to), max(from_floor), (SELECT max(id)"
                    "                  FROM onceward.deferred WHERE state = 'published')) FROM onceward.lane_state)"),
    .columns = {EVENT_TYPES},
};

static const struct db_statement FIND_EVENT = {
    .sql = "SELECT " EVENT_COLUMNS " FROM onceward.events e"
           " LEFT JOIN LATERAL onceward.event_place(e.lane, e.outbox_id) p ON true"
           " WHERE e.event_id = $1 ORDER BY e.outbox_id LIMIT 100",
    .columns = {EVENT_TYPES},
};

static void read_event(const PGresult *result, int row, struct db_status_event *event)
{
    event->outbox_id = db_get_int8(result, row, 1);
    event->lane = db_get_int4(result, row, 2);
    event->time_us = db_get_timestamptz(result, row, 7);
    event->value_size = db_get_int4(result, row, 8);
    copy_uuid(event->event_id, db_get_uuid(result, row, 0));
    db_copy_text(result, row, 3, event->tenant, sizeof event->tenant);
    db_copy_text(result, row, 4, event->topic, sizeof event->topic);
    db_copy_text(result, row, 5, event->key, sizeof event->key);
    db_copy_text(result, row, 6, event->type, sizeof event->type);
    db_copy_text(result, row, 9, event->status, sizeof event->status);
    event->has_place = !db_is_null(result, row, 10);
    if (event->has_place) {
        event->partition = db_get_int4(result, row, 10);
        event->offset = db_is_null(result, row, 11) ? -1 : db_get_int8(result, row, 11);
        event->settled_at_us = db_get_timestamptz(result, row, 12);
    }
    db_copy_text(result, row, 13, event->deferred_state, sizeof event->deferred_state);
    db_copy_text(result, row, 14, event->reason_code, sizeof event->reason_code);
    db_copy_text(result, row, 15, event->reason, sizeof event->reason);
}

static bool read_events(const PGresult *result, struct db_status_event **ret_events, size_t *ret_count, struct err *err)
{
    struct db_status_event *events = db_rows_new(db_result_rows(result), sizeof *events, err);
    if (events == NULL) {
        return false;
    }
    for (int row = 0; row < db_result_rows(result); row++) {
        read_event(result, row, &events[row]);
    }
    *ret_events = events;
    *ret_count = (size_t)db_result_rows(result);
    return true;
}

static const struct db_statement *list_statement(const char *status)
{
    static const struct {
        const char *status;
        const struct db_statement *statement;
    } rows[] = {
        {"failed", &LIST_FAILED}, {"pending", &LIST_OPEN}, {"claimed", &LIST_CLAIMED}, {"completed", &LIST_COMPLETED}};
    for (size_t i = 0; status != NULL && i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].status, status) == 0) {
            return rows[i].statement;
        }
    }
    return &LIST_ANY;
}

bool db_status_event_list(struct db *db, const struct db_status_filter *filter, struct db_status_event **ret_events,
                          size_t *ret_count, struct err *err)
{
    assert(filter->limit > 0 && filter->limit <= DB_STATUS_ROW_COUNT_MAX && filter->before >= 0);
    DB_PARAMS(params);
    db_params_text(&params, filter->status);
    db_params_text(&params, filter->tenant);
    db_params_text(&params, filter->topic);
    db_params_text(&params, filter->key);
    db_params_text(&params, filter->type);
    db_params_int8(&params, filter->before > 0 ? filter->before : INT64_MAX);
    db_params_int8(&params, filter->limit);
    DB_RESULT(result);
    return db_exec(db, list_statement(filter->status), &params, &result, err) &&
           read_events(result, ret_events, ret_count, err);
}

bool db_status_event_find(struct db *db, const unsigned char *event_id, struct db_status_event **ret_events,
                          size_t *ret_count, struct err *err)
{
    assert(event_id != NULL);
    DB_PARAMS(params);
    db_params_uuid(&params, event_id);
    DB_RESULT(result);
    return db_exec(db, &FIND_EVENT, &params, &result, err) && read_events(result, ret_events, ret_count, err);
}

/* ---- Submissions -------------------------------------------------------------------------------------------- */

static const struct db_statement FIND_SUBMISSION = {
    .sql =
        "SELECT s.tenant, s.request_id, r.type, s.submitted_at,"
        "       (SELECT count(*) FROM onceward.documents d WHERE (d.tenant, d.request_id) = (s.tenant, s.request_id))"
        "  FROM onceward.submissions s JOIN onceward.requests r USING (tenant, request_id)"
        " WHERE s.tenant = $1 AND s.request_id = $2 AND s.event_id = $3",
    .columns = {DB_TEXT, DB_UUID, DB_TEXT, DB_TIMESTAMPTZ, DB_INT8},
};

bool db_status_event_submission(struct db *db, const struct db_status_event *event,
                                struct db_status_submission *ret_submission, bool *ret_found, struct err *err)
{
    struct uuid request_id;
    struct uuid event_id;
    *ret_found = false;
    if (!uuid_from_text(event->key, strlen(event->key), &request_id) ||
        !uuid_from_text(event->event_id, strlen(event->event_id), &event_id)) {
        return true;
    }
    DB_PARAMS(params);
    db_params_text(&params, event->tenant);
    db_params_uuid(&params, request_id.bytes);
    db_params_uuid(&params, event_id.bytes);
    DB_RESULT(result);
    if (!db_exec(db, &FIND_SUBMISSION, &params, &result, err)) {
        return false;
    }
    if (db_result_rows(result) == 1) {
        struct db_status_submission submission = {
            .submitted_at_us = db_get_timestamptz(result, 0, 3),
            .document_count = db_get_int8(result, 0, 4),
        };
        db_copy_text(result, 0, 0, submission.tenant, sizeof submission.tenant);
        copy_uuid(submission.request_id, db_get_uuid(result, 0, 1));
        db_copy_text(result, 0, 2, submission.type, sizeof submission.type);
        *ret_submission = submission;
        *ret_found = true;
    }
    return true;
}

/* ---- Deliveries --------------------------------------------------------------------------------------------- */

/* The inbox says what became of the event; a dead letter says where it lies and why. One that never got an inbox row
 * (it could not be decoded, or its id does not fit) is only a dead letter. A consumer of the event's partition that has
 * neither is on its way there, or has passed by. The id is compared as a uuid where the inbox is one, and with each
 * source that a consumer knows where it is a text, so that the keys serve. */
static const struct db_statement LIST_DELIVERIES = {
    .sql =
        "WITH inbox AS ("
        "   SELECT s.consumer, s.scope, i.status::text, i.applied_at AS at, NULL::text AS source"
        "     FROM onceward.inbox_scopes s JOIN onceward.inbox i ON i.scope_id = s.scope_id AND i.event_id = $5"
        "   UNION ALL"
        "   SELECT s.consumer, s.scope, f.status::text, f.applied_at, f.source"
        "     FROM onceward.inbox_scopes s JOIN onceward.sources o ON o.consumer = s.consumer AND o.kind = 'foreign'"
        "     JOIN onceward.inbox_foreign f ON f.scope_id = s.scope_id AND f.source = o.source AND f.id = $1),"
        " dead AS (SELECT * FROM onceward.dead_letters WHERE event_id = $1),"
        " known AS ("
        "   SELECT coalesce(i.consumer, d.consumer) AS consumer, coalesce(i.scope, d.scope) AS scope,"
        "          coalesce(i.status, 'dead_letter') AS status, coalesce(i.at, d.created_at) AS at, d.topic,"
        "          d.partition, d.record_offset, d.reason_code, d.reason, coalesce(i.source, d.source) AS source"
        "     FROM inbox i FULL JOIN dead d ON d.consumer = i.consumer AND d.scope = i.scope)"
        " SELECT * FROM known"
        "  UNION ALL"
        " SELECT c.consumer, c.scope,"
        "        CASE WHEN c.stop_code IS NOT NULL THEN 'stopped' WHEN c.next_offset > $4 THEN 'passed' ELSE 'waiting' "
        "END,"
        "        coalesce(c.stopped_at, c.moved_at), c.topic, c.partition, c.next_offset, c.stop_code, c.stop_reason, "
        "NULL"
        "   FROM onceward.consumer_state c"
        "  WHERE c.topic = $2 AND c.partition = $3 AND $4 >= 0"
        "    AND c.consumer NOT IN (SELECT consumer FROM onceward.retired_consumers)"
        "    AND NOT EXISTS (SELECT FROM known k WHERE k.consumer = c.consumer AND k.scope = c.scope)"
        "  ORDER BY 1, 2, 4 LIMIT 1000",
    .columns = {DB_TEXT, DB_TEXT, DB_TEXT, DB_TIMESTAMPTZ, DB_TEXT, DB_INT4, DB_INT8, DB_TEXT, DB_TEXT, DB_TEXT},
};

static void read_delivery(const PGresult *result, int row, struct db_status_delivery *delivery)
{
    db_copy_text(result, row, 0, delivery->consumer, sizeof delivery->consumer);
    db_copy_text(result, row, 1, delivery->scope, sizeof delivery->scope);
    db_copy_text(result, row, 2, delivery->status, sizeof delivery->status);
    delivery->at_us = db_get_timestamptz(result, row, 3);
    db_copy_text(result, row, 4, delivery->topic, sizeof delivery->topic);
    delivery->partition = db_is_null(result, row, 5) ? -1 : db_get_int4(result, row, 5);
    delivery->offset = db_is_null(result, row, 6) ? -1 : db_get_int8(result, row, 6);
    db_copy_text(result, row, 7, delivery->reason_code, sizeof delivery->reason_code);
    db_copy_text(result, row, 8, delivery->reason, sizeof delivery->reason);
    db_copy_text(result, row, 9, delivery->source, sizeof delivery->source);
}

bool db_status_event_deliveries(struct db *db, const char *event_id, const struct db_status_event *event,
                                struct db_status_delivery **ret_deliveries, size_t *ret_count, struct err *err)
{
    struct uuid uuid;
    bool is_uuid = uuid_from_text(event_id, strlen(event_id), &uuid);
    DB_PARAMS(params);
    db_params_text(&params, event_id);
    db_params_text(&params, event == NULL ? "" : event->topic);
    db_params_int4(&params, event == NULL ? -1 : event->partition);
    db_params_int8(&params, event == NULL || !event->has_place ? -1 : event->offset);
    if (is_uuid) {
        db_params_uuid(&params, uuid.bytes);
    } else {
        db_params_null(&params, DB_UUID);
    }
    DB_RESULT(result);
    if (!db_exec(db, &LIST_DELIVERIES, &params, &result, err)) {
        return false;
    }
    struct db_status_delivery *deliveries = db_rows_new(db_result_rows(result), sizeof *deliveries, err);
    if (deliveries == NULL) {
        return false;
    }
    for (int row = 0; row < db_result_rows(result); row++) {
        read_delivery(result, row, &deliveries[row]);
    }
    *ret_deliveries = deliveries;
    *ret_count = (size_t)db_result_rows(result);
    return true;
}
