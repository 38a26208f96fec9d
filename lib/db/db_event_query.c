/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions about events. The lists walk an index from the cursor on; what is
 * not settled is looked for where the relays look, above their floors and among
 * the xids that were open below them, so that asking for a backlog costs the
 * backlog and not the outbox.
 */
#include "db/db_event_query.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "db_private.h"

#define EVENT_SQL                                                                                                      \
    "SELECT e.outbox_id, e.event_id, e.topic, e.key, e.type, e.time, e.status, e.deferred_state, e.reason_code, "      \
    "e.reason FROM onceward.events e WHERE e.tenant = $1 AND e.outbox_id < $2 "
#define EVENT_COLUMNS                                                                                                  \
    {                                                                                                                  \
        DB_INT8, DB_UUID, DB_TEXT, DB_TEXT, DB_TEXT, DB_TIMESTAMPTZ, DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT                \
    }

static const struct db_statement LIST_ANY = {
    .sql = EVENT_SQL "ORDER BY e.outbox_id DESC LIMIT $3",
    .columns = EVENT_COLUMNS,
};

static const struct db_statement LIST_COMPLETED = {
    .sql = EVENT_SQL "AND e.status = 'completed' ORDER BY e.outbox_id DESC LIMIT $3",
    .columns = EVENT_COLUMNS,
};

#define EVENT_MEMBERS                                                                                                  \
    "e.outbox_id, e.event_id, e.topic, e.key, e.type, e.time, e.status, e.deferred_state, e.reason_code, e.reason"

/* Driven by what is deferred, which is little, whatever the planner believes. */
#define DEFERRED_SQL                                                                                                   \
    "SELECT " EVENT_MEMBERS " FROM onceward.deferred d CROSS JOIN LATERAL (SELECT * FROM onceward.events e "           \
    "WHERE e.outbox_id = d.id AND e.tenant = $1 OFFSET 0) e WHERE d.id < $2 "

static const struct db_statement LIST_FAILED = {
    .sql = DEFERRED_SQL "AND d.state IN ('parked', 'discarded') ORDER BY d.id DESC LIMIT $3",
    .columns = EVENT_COLUMNS,
};

/* Below the lowest floor only what was open in a lane's `from` can be unsettled; those xids are few, and this form of
 * comparison is one that only the index (xid, id) serves. */
#define FLOOR_SQL "(SELECT min(from_floor) FROM onceward.lane_state)"
#define LATE_SQL(members, conditions)                                                                                  \
    "SELECT " members " FROM (SELECT DISTINCT x.xid FROM onceward.lane_state l, pg_snapshot_xip(l.snapshot_from) "     \
    "AS x(xid)) x CROSS JOIN LATERAL (SELECT * FROM onceward.events e WHERE (e.xid, e.outbox_id) > (x.xid, 0::int8) "  \
    "AND (e.xid, e.outbox_id) <= (x.xid, " FLOOR_SQL ") OFFSET 0) e WHERE " conditions

/* Not settled: above the floors, late below them, or deferred. */
static const struct db_statement LIST_UNSETTLED = {
    .sql = "(" EVENT_SQL "AND e.status = $4 AND e.outbox_id > " FLOOR_SQL " ORDER BY e.outbox_id DESC LIMIT $3) UNION "
           "(" LATE_SQL(EVENT_MEMBERS, "e.status = $4 AND e.tenant = $1 AND e.outbox_id < $2 ORDER BY e.outbox_id DESC "
                                       "LIMIT $3") ") UNION "
                                                   "(" DEFERRED_SQL
                                                   "AND e.status = $4 AND d.state IN ('held', 'waiting', 'in_doubt') "
                                                   "ORDER BY d.id DESC LIMIT $3) ORDER BY 1 DESC LIMIT $3",
    .columns = EVENT_COLUMNS,
};

static const struct db_statement GET = {
    .sql = "SELECT e.outbox_id, e.event_id, e.topic, e.key, e.type, e.time, e.status, e.deferred_state, e.reason_code, "
           "e.reason, p.partition, p.record_offset, p.settled_at FROM onceward.events e "
           "LEFT JOIN LATERAL onceward.event_place(e.lane, e.outbox_id) p ON true "
           "WHERE e.event_id = $1 AND e.tenant = $2 ORDER BY e.outbox_id LIMIT 1",
    .columns = {DB_INT8, DB_UUID, DB_TEXT, DB_TEXT, DB_TEXT, DB_TIMESTAMPTZ, DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT,
                DB_INT4, DB_INT8, DB_TIMESTAMPTZ},
};

#define DELIVERY_COLUMNS                                                                                               \
    {                                                                                                                  \
        DB_INT4, DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT, DB_TIMESTAMPTZ, DB_TEXT, DB_TEXT                         \
    }
#define DELIVERY_REASON(id)                                                                                            \
    "LEFT JOIN LATERAL (SELECT d.reason_code, d.reason FROM onceward.dead_letters d WHERE d.event_id = " id            \
    " AND d.consumer = s.consumer AND d.scope = s.scope ORDER BY d.dead_letter_id DESC LIMIT 1) d "                    \
    "ON i.status = 'failed' "

static const struct db_statement GET_DELIVERIES = {
    .sql = "SELECT s.scope_id, s.consumer, s.scope, NULL::text, i.event_id::text, i.status::text, i.applied_at, "
           "d.reason_code, d.reason FROM onceward.inbox_scopes s CROSS JOIN LATERAL (SELECT i.event_id, i.status, "
           "i.applied_at FROM onceward.inbox i WHERE i.scope_id = s.scope_id AND i.event_id = $1 OFFSET 0) "
           "i " DELIVERY_REASON("i.event_id::text") "ORDER BY s.consumer, s.scope",
    .columns = DELIVERY_COLUMNS,
};

/* Only events of the tenant's outbox rows are shown: the inbox itself knows no tenants. */
static const struct db_statement LIST_OWN = {
    .sql = "SELECT s.scope_id, s.consumer, s.scope, NULL::text, i.event_id::text, i.status::text, i.applied_at, "
           "d.reason_code, d.reason FROM onceward.inbox_scopes s CROSS JOIN LATERAL (SELECT i.event_id, i.status, "
           "i.applied_at FROM onceward.inbox i WHERE i.scope_id = s.scope_id AND ($3::text IS NULL OR i.status::text = "
           "$3) "
           "AND i.event_id <= $4 AND (i.event_id < $4 OR s.scope_id > $5) "
           "AND EXISTS (SELECT FROM onceward.outbox o WHERE o.event_id = i.event_id AND o.tenant = $1) "
           "ORDER BY i.event_id DESC LIMIT $6) i " DELIVERY_REASON(
               "i.event_id::text") "WHERE $2::text IS NULL OR s.consumer = $2 ORDER BY i.event_id DESC, s.scope_id "
                                   "LIMIT $6",
    .columns = DELIVERY_COLUMNS,
};

static const struct db_statement LIST_FOREIGN = {
    .sql =
        "SELECT s.scope_id, s.consumer, s.scope, i.source, i.id, i.status::text, i.applied_at, d.reason_code, d.reason "
        "FROM onceward.inbox_scopes s CROSS JOIN LATERAL (SELECT i.source, i.id, i.status, i.applied_at "
        "FROM onceward.inbox_foreign i WHERE i.scope_id = s.scope_id AND ($2::text IS NULL OR i.status::text = $2) "
        "AND (s.scope_id, i.source, i.id) > ($3, $4, $5) ORDER BY i.source, i.id LIMIT $6) i " DELIVERY_REASON(
            "i.id") "WHERE ($1::text IS NULL OR s.consumer = $1) AND s.scope_id >= $3 "
                    "ORDER BY s.scope_id, i.source, i.id LIMIT $6",
    .columns = DELIVERY_COLUMNS,
};

/* What is pending, without what was deferred: that waits for something else than a relay. A lease that ends later than
 * any lease is long belongs to a clock that was set back. */
#define PENDING_AT                                                                                                     \
    "e.status = 'pending' AND e.deferred_state IS NULL "                                                               \
    "AND pg_visible_in_snapshot(e.xid, coalesce($1::pg_snapshot, pg_current_snapshot()))"

static const struct db_statement BACKLOG = {
    .sql = "SELECT (SELECT count(*) FROM onceward.relays WHERE until > clock_timestamp() "
           "AND until < clock_timestamp() + interval '1 minute'), "
           "(SELECT count(*) FROM (SELECT e.outbox_id FROM onceward.events e WHERE e.outbox_id > " FLOOR_SQL
           " AND " PENDING_AT " ORDER BY e.outbox_id) a) + "
           "(SELECT count(*) FROM (" LATE_SQL("e.outbox_id", PENDING_AT) ") b), pg_current_snapshot()::text",
    .columns = {DB_INT8, DB_INT8, DB_TEXT},
};

struct db_event_page {
    PGresult *result;
    struct db_event_row *rows;
    size_t count;
};

struct db_delivery_page {
    PGresult *results[2];
    struct db_delivery_row *rows;
    size_t count;
};

static bool no_memory(struct err *err)
{
    return err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for a page of events");
}

static void read_event(const PGresult *result, int row, struct db_event_row *ret_row)
{
    ret_row->outbox_id = db_get_int8(result, row, 0);
    memcpy(ret_row->event_id.bytes, db_get_uuid(result, row, 1), UUID_SIZE);
    ret_row->topic = db_get_text(result, row, 2);
    ret_row->key = db_get_text(result, row, 3);
    ret_row->type = db_get_text(result, row, 4);
    ret_row->time_us = db_get_timestamptz(result, row, 5);
    ret_row->status = db_get_text(result, row, 6);
    ret_row->deferred_state = db_get_text_or_null(result, row, 7);
    ret_row->reason_code = db_get_text_or_null(result, row, 8);
    ret_row->reason = db_get_text_or_null(result, row, 9);
}

static void read_place(const PGresult *result, struct db_event_row *ret_row)
{
    ret_row->has_place = !db_is_null(result, 0, 10);
    if (ret_row->has_place) {
        ret_row->partition = db_get_int4(result, 0, 10);
        ret_row->record_offset = db_is_null(result, 0, 11) ? -1 : db_get_int8(result, 0, 11);
        ret_row->settled_us = db_get_timestamptz(result, 0, 12);
    }
}

/* Takes the result over. */
static bool event_page_new(PGresult *result, struct db_event_page **ret_page, struct err *err)
{
    struct db_event_page *page = calloc(1, sizeof *page);
    size_t count = (size_t)db_result_rows(result);
    struct db_event_row *rows = calloc(count + 1, sizeof *rows);
    if (page == NULL || rows == NULL) {
        db_result_clear(&result);
        free(rows);
        free(page);
        return no_memory(err);
    }
    *page = (struct db_event_page){.result = result, .rows = rows, .count = count};
    for (size_t i = 0; i < count; i++) {
        read_event(result, (int)i, &rows[i]);
    }
    *ret_page = page;
    return true;
}

static void read_deliveries(struct db_delivery_page *page, const PGresult *result)
{
    for (int row = 0; row < db_result_rows(result); row++) {
        page->rows[page->count++] = (struct db_delivery_row){
            .scope_id = db_get_int4(result, row, 0),
            .consumer = db_get_text(result, row, 1),
            .scope = db_get_text(result, row, 2),
            .source = db_get_text_or_null(result, row, 3),
            .event_id = db_get_text(result, row, 4),
            .status = db_get_text(result, row, 5),
            .at_us = db_get_timestamptz(result, row, 6),
            .reason_code = db_get_text_or_null(result, row, 7),
            .reason = db_get_text_or_null(result, row, 8),
        };
    }
}

/* Takes the results over; either may be NULL. */
static bool delivery_page_new(PGresult *own, PGresult *foreign, struct db_delivery_page **ret_page, struct err *err)
{
    struct db_delivery_page *page = calloc(1, sizeof *page);
    size_t count =
        (own == NULL ? 0 : (size_t)db_result_rows(own)) + (foreign == NULL ? 0 : (size_t)db_result_rows(foreign));
    struct db_delivery_row *rows = calloc(count + 1, sizeof *rows);
    if (page == NULL || rows == NULL) {
        db_result_clear(&own);
        db_result_clear(&foreign);
        free(rows);
        free(page);
        return no_memory(err);
    }
    *page = (struct db_delivery_page){.results = {own, foreign}, .rows = rows};
    if (own != NULL) {
        read_deliveries(page, own);
    }
    if (foreign != NULL) {
        read_deliveries(page, foreign);
    }
    *ret_page = page;
    return true;
}

bool db_event_query_list(struct db *db, const char *tenant, enum db_event_status status, int64_t before, int limit,
                         struct db_event_page **ret_page, struct err *err)
{
    static const struct db_statement *const statements[] = {&LIST_ANY, &LIST_UNSETTLED, &LIST_UNSETTLED,
                                                            &LIST_COMPLETED, &LIST_FAILED};
    DB_PARAMS(params);
    db_params_text(&params, tenant);
    db_params_int8(&params, before);
    db_params_int8(&params, limit);
    if (status == DB_EVENT_PENDING || status == DB_EVENT_CLAIMED) {
        db_params_text(&params, status == DB_EVENT_PENDING ? "pending" : "claimed");
    }
    PGresult *result = NULL;
    return db_exec(db, statements[status], &params, &result, err) && event_page_new(result, ret_page, err);
}

bool db_event_query_get(struct db *db, const char *tenant, const struct uuid *event_id, struct db_event_page **ret_page,
                        struct db_delivery_page **ret_deliveries, struct err *err)
{
    DB_PARAMS(params);
    db_params_uuid(&params, event_id->bytes);
    db_params_text(&params, tenant);
    DB_PARAMS(id_only);
    db_params_uuid(&id_only, event_id->bytes);
    struct db_call calls[2] = {{.statement = &GET, .params = &params},
                               {.statement = &GET_DELIVERIES, .params = &id_only}};
    if (!db_exec_all(db, calls, 2, err)) {
        return false;
    }
    if (!event_page_new(calls[0].result, ret_page, err)) {
        db_result_clear(&calls[1].result);
        return false;
    }
    if ((*ret_page)->count > 0) {
        read_place((*ret_page)->result, &(*ret_page)->rows[0]);
    }
    if (!delivery_page_new(calls[1].result, NULL, ret_deliveries, err)) {
        db_event_page_free(ret_page);
        return false;
    }
    return true;
}

static bool list_own(struct db *db, const struct db_delivery_filter *filter, PGresult **ret_result, struct err *err)
{
    struct uuid last;
    int32_t scope_id = INT32_MAX;
    memset(last.bytes, 0xff, UUID_SIZE);
    if (filter->after != NULL) {
        scope_id = filter->after->scope_id;
        if (!uuid_from_text(filter->after->event_id, strlen(filter->after->event_id), &last)) {
            return err_set(err, ERR_PERMANENT, "cursor_invalid", "the cursor holds no event id");
        }
    }
    DB_PARAMS(params);
    db_params_text(&params, filter->tenant);
    db_params_text(&params, filter->consumer);
    db_params_text(&params, filter->status);
    db_params_uuid(&params, last.bytes);
    db_params_int4(&params, scope_id);
    db_params_int8(&params, filter->limit);
    return db_exec(db, &LIST_OWN, &params, ret_result, err);
}

/* Foreign deliveries follow the own ones, so limit is what those have left. */
static bool list_foreign(struct db *db, const struct db_delivery_filter *filter, int limit, PGresult **ret_result,
                         struct err *err)
{
    const struct db_delivery_cursor *after = filter->after;
    bool is_first = after == NULL || !after->is_foreign;
    DB_PARAMS(params);
    db_params_text(&params, filter->consumer);
    db_params_text(&params, filter->status);
    db_params_int4(&params, is_first ? 0 : after->scope_id);
    db_params_text(&params, is_first ? "" : after->source);
    db_params_text(&params, is_first ? "" : after->event_id);
    db_params_int8(&params, limit);
    return db_exec(db, &LIST_FOREIGN, &params, ret_result, err);
}

bool db_event_query_deliveries(struct db *db, const struct db_delivery_filter *filter,
                               struct db_delivery_page **ret_page, struct err *err)
{
    PGresult *own = NULL;
    PGresult *foreign = NULL;
    int limit = filter->limit;
    if (filter->after == NULL || !filter->after->is_foreign) {
        if (!list_own(db, filter, &own, err)) {
            return false;
        }
        limit -= db_result_rows(own);
    }
    if (limit > 0 && !list_foreign(db, filter, limit, &foreign, err)) {
        db_result_clear(&own);
        return false;
    }
    return delivery_page_new(own, foreign, ret_page, err);
}

size_t db_event_page_count(const struct db_event_page *page)
{
    return page->count;
}

const struct db_event_row *db_event_page_row(const struct db_event_page *page, size_t index)
{
    assert(index < page->count);
    return &page->rows[index];
}

void db_event_page_free(struct db_event_page **pagep)
{
    struct db_event_page *page = *pagep;
    *pagep = NULL;
    if (page != NULL) {
        db_result_clear(&page->result);
        free(page->rows);
        free(page);
    }
}

size_t db_delivery_page_count(const struct db_delivery_page *page)
{
    return page->count;
}

const struct db_delivery_row *db_delivery_page_row(const struct db_delivery_page *page, size_t index)
{
    assert(index < page->count);
    return &page->rows[index];
}

void db_delivery_page_free(struct db_delivery_page **pagep)
{
    struct db_delivery_page *page = *pagep;
    *pagep = NULL;
    if (page != NULL) {
        db_result_clear(&page->results[0]);
        db_result_clear(&page->results[1]);
        free(page->rows);
        free(page);
    }
}

bool db_event_query_backlog(struct db *db, const char *since, struct db_event_backlog *ret_backlog, struct err *err)
{
    DB_PARAMS(params);
    db_params_text(&params, since);
    DB_RESULT(result);
    if (!db_exec_row(db, &BACKLOG, &params, &result, err)) {
        return false;
    }
    ret_backlog->relay_count = db_get_int8(result, 0, 0);
    ret_backlog->pending_count = db_get_int8(result, 0, 1);
    if (since == NULL && !text_copy(ret_backlog->snapshot, sizeof ret_backlog->snapshot, db_get_text(result, 0, 2))) {
        ret_backlog->snapshot[0] = '\0';
    }
    return true;
}
