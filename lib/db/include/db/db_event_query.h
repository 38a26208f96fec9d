/* SPDX-License-Identifier: Apache-2.0
 *
 * Where events are: on their way to the topic, and at the consumers whose
 * inbox is in this database. Reads views, changes nothing.
 */
#ifndef DB_DB_EVENT_QUERY_H
#define DB_DB_EVENT_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"

struct db;

enum db_event_status { DB_EVENT_ANY, DB_EVENT_PENDING, DB_EVENT_CLAIMED, DB_EVENT_COMPLETED, DB_EVENT_FAILED };

/* Texts are borrowed from the page; NULL where there is nothing. */
struct db_event_row {
    int64_t outbox_id;
    struct uuid event_id;
    const char *topic;
    const char *key;
    const char *type;
    int64_t time_us;
    const char *status; /* "pending", "claimed", "completed", "failed". */
    const char *deferred_state;
    const char *reason_code;
    const char *reason;
    bool has_place; /* In db_event_query_get() only. */
    int32_t partition;
    int64_t record_offset;
    int64_t settled_us;
};

struct db_delivery_row {
    int32_t scope_id;
    const char *consumer;
    const char *scope;
    const char *source; /* NULL: an event of our own. */
    const char *event_id;
    const char *status;
    int64_t at_us;
    const char *reason_code;
    const char *reason;
};

struct db_event_page;
struct db_delivery_page;

/* Newest first, before the outbox id `before` (INT64_MAX for the first page). */
bool db_event_query_list(struct db *db, const char *tenant, enum db_event_status status, int64_t before, int limit,
                         struct db_event_page **ret_page, struct err *err) MUST_CHECK;

/* A page of one row, or of none, and what became of the event at consumers. */
bool db_event_query_get(struct db *db, const char *tenant, const struct uuid *event_id, struct db_event_page **ret_page,
                        struct db_delivery_page **ret_deliveries, struct err *err) MUST_CHECK;

/* Where a page of deliveries begins: after this row. Own events come first, newest first; then the foreign ones by id.
 */
struct db_delivery_cursor {
    bool is_foreign;
    int32_t scope_id;
    const char *source; /* Foreign only. */
    const char *event_id;
};

/* Which deliveries: consumer and status may be NULL for any, after may be NULL for the newest. */
struct db_delivery_filter {
    const char *tenant;
    const char *consumer;
    const char *status;
    const struct db_delivery_cursor *after;
    int limit;
};

bool db_event_query_deliveries(struct db *db, const struct db_delivery_filter *filter,
                               struct db_delivery_page **ret_page, struct err *err) MUST_CHECK;

size_t db_event_page_count(const struct db_event_page *page);
const struct db_event_row *db_event_page_row(const struct db_event_page *page, size_t index);
void db_event_page_free(struct db_event_page **pagep);
size_t db_delivery_page_count(const struct db_delivery_page *page);
const struct db_delivery_row *db_delivery_page_row(const struct db_delivery_page *page, size_t index);
void db_delivery_page_free(struct db_delivery_page **pagep);

#define DB_SNAPSHOT_TEXT_SIZE 16384

/* What is waiting for the relays at this moment. */
struct db_event_backlog {
    int64_t relay_count; /* Alive. */
    int64_t pending_count;
    char snapshot[DB_SNAPSHOT_TEXT_SIZE]; /* The moment; "" when its text is longer than that. */
};

/* `since`: NULL counts what is pending now and fills snapshot; else only what was there at that moment is counted. */
bool db_event_query_backlog(struct db *db, const char *since, struct db_event_backlog *ret_backlog,
                            struct err *err) MUST_CHECK;

#endif
