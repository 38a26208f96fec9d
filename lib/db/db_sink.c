/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a user's statement over events. The invariant: the statement runs in
 * the caller's transaction and never ends it, and only what is the events' own
 * fault is called so.
 */
#include "db/db_sink.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/text.h"
#include "db_private.h"

#define STATEMENT_SIZE_MAX ((size_t)1024 * 1024)

struct db_sink {
    struct db_statement statement;
    char *sql;
};

/* NOT MATERIALIZED: what is not asked for is not computed. */
#define EVENTS                                                                                                         \
    "WITH events AS NOT MATERIALIZED (SELECT e.ord, e.ce_id, e.ce_source, e.ce_type, e.ce_subject, "                   \
    "e.ce_time::timestamptz AS ce_time, e.ce_sequence, e.ce_dataschema, e.content_type, e.ce_tenantid, "               \
    "e.traceparent, "                                                                                                  \
    "e.kafka_topic, e.kafka_partition, e.kafka_offset, e.kafka_key, convert_from(e.value_bytes, 'UTF8')::jsonb AS "    \
    "value, "                                                                                                          \
    "convert_from(e.value_bytes, 'UTF8')::json AS value_json, convert_from(e.value_bytes, 'UTF8') AS value_text, "     \
    "e.value_bytes FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int8[], $7::text[], "   \
    "$8::text[], $9::text[], $10::text[], $11::text[], $12::int4[], $13::int8[], $14::text[], $15::bytea[]) "          \
    "WITH ORDINALITY AS e (ce_id, ce_source, ce_type, ce_subject, ce_time, ce_sequence, ce_dataschema, content_type, " \
    "ce_tenantid, traceparent, kafka_topic, kafka_partition, kafka_offset, kafka_key, value_bytes, ord))"

/* SQLSTATE classes and codes that are a verdict on the data. Everything else is the statement's, the table's or the
 * server's trouble, and stays until somebody mends it: an event must not be given up for it. */
static const char *const data_codes[] = {
    "21",          /* Cardinality: two rows for one conflict target. */
    "22",          /* Data exception. */
    "23",          /* Integrity constraint. */
    "40002", "44", /* WITH CHECK OPTION. */
    "54",          /* Program limit: a row or index entry that is too large. */
    "P0001",       /* raise_exception of a trigger. */
};

static bool is_data_code(const char *code)
{
    for (size_t i = 0; i < sizeof data_codes / sizeof data_codes[0]; i++) {
        if (text_has_prefix(code, data_codes[i])) {
            return true;
        }
    }
    return false;
}

/* The statement's text behind "WITH", if that is how it begins. */
static const char *behind_with(const char *statement)
{
    bool begins_with = strncasecmp(statement, "with", 4) == 0 && strchr(" \t\r\n", statement[4]) != NULL;
    return begins_with ? statement + 4 : NULL;
}

struct db_sink *db_sink_new(const char *statement, struct err *err)
{
    assert(statement != NULL);
    statement += strspn(statement, " \t\r\n");
    struct db_sink *sink = calloc(1, sizeof *sink);
    if (sink == NULL) {
        err_set(err, ERR_FATAL, "out_of_memory", "sink");
        return NULL;
    }
    struct buf buf;
    buf_init(&buf, STATEMENT_SIZE_MAX);
    buf_text(&buf, EVENTS);
    const char *rest = behind_with(statement);
    buf_text(&buf, rest == NULL ? " " : ",");
    buf_text(&buf, rest == NULL ? statement : rest);
    if (buf_check(&buf, err)) {
        sink->sql = buf_take(&buf, NULL);
    }
    buf_done(&buf);
    if (sink->sql == NULL) {
        err_set(err, ERR_FATAL, "out_of_memory", "sink");
        free(sink);
        return NULL;
    }
    sink->statement.sql = sink->sql;
    return sink;
}

void db_sink_free(struct db_sink **sinkp)
{
    struct db_sink *sink = *sinkp;
    *sinkp = NULL;
    if (sink != NULL) {
        free(sink->sql);
        free(sink);
    }
}

#define ATTRIBUTE(member)                                                                                              \
    static const char *attribute_##member(const struct event *event)                                                   \
    {                                                                                                                  \
        return event->member;                                                                                          \
    }
ATTRIBUTE(event_id)
ATTRIBUTE(source)
ATTRIBUTE(type)
ATTRIBUTE(subject)
ATTRIBUTE(time)
ATTRIBUTE(dataschema)
ATTRIBUTE(content_type)
ATTRIBUTE(tenant)
ATTRIBUTE(traceparent)
ATTRIBUTE(topic)
ATTRIBUTE(key)

static void add_texts(struct db_params *params, const struct db_sink_event *events, size_t count,
                      const char *(*attribute)(const struct event *event))
{
    db_params_array_open(params, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_params_text(params, attribute(events[i].event));
    }
    db_params_array_close(params);
}

static void add_sequences(struct db_params *params, const struct db_sink_event *events, size_t count)
{
    db_params_array_open(params, DB_INT8);
    for (size_t i = 0; i < count; i++) {
        if (events[i].event->outbox_id > 0) {
            db_params_int8(params, events[i].event->outbox_id);
        } else {
            db_params_null(params, DB_INT8);
        }
    }
    db_params_array_close(params);
}

static void add_places(struct db_params *params, const struct db_sink_event *events, size_t count)
{
    add_texts(params, events, count, attribute_topic);
    db_params_array_open(params, DB_INT4);
    for (size_t i = 0; i < count; i++) {
        db_params_int4(params, events[i].partition);
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_INT8);
    for (size_t i = 0; i < count; i++) {
        db_params_int8(params, events[i].offset);
    }
    db_params_array_close(params);
    add_texts(params, events, count, attribute_key);
}

static void add_events(struct db_params *params, const struct db_sink_event *events, size_t count)
{
    add_texts(params, events, count, attribute_event_id);
    add_texts(params, events, count, attribute_source);
    add_texts(params, events, count, attribute_type);
    add_texts(params, events, count, attribute_subject);
    add_texts(params, events, count, attribute_time);
    add_sequences(params, events, count);
    add_texts(params, events, count, attribute_dataschema);
    add_texts(params, events, count, attribute_content_type);
    add_texts(params, events, count, attribute_tenant);
    add_texts(params, events, count, attribute_traceparent);
    add_places(params, events, count);
    db_params_array_open(params, DB_BYTEA);
    for (size_t i = 0; i < count; i++) {
        db_params_bytea(params, events[i].event->value);
    }
    db_params_array_close(params);
}

bool db_sink_apply(struct db_tx *tx, struct db_sink *sink, const struct db_sink_event *events, size_t count,
                   struct err *err)
{
    assert(sink != NULL && count > 0);
    DB_PARAMS(params);
    add_events(&params, events, count);
    if (db_exec(db_tx_db(tx), &sink->statement, &params, NULL, err)) {
        return true;
    }
    err->kind = is_data_code(err->code) ? ERR_PERMANENT : ERR_TRANSIENT;
    return false;
}

static const struct db_statement DESCRIBE = {
    .sql = "SELECT c.oid::regclass::text, a.attname::text, format_type(a.atttypid, -1) "
           "FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
           "WHERE c.oid = to_regclass($1) ORDER BY a.attnum",
    .columns = {DB_TEXT, DB_TEXT, DB_TEXT},
};

bool db_sink_describe(struct db *db, const char *table, char ret_name[DB_SINK_TEXT_SIZE],
                      struct db_sink_column *ret_columns, size_t column_count_max, size_t *ret_count, struct err *err)
{
    DB_PARAMS(params);
    db_params_text(&params, table);
    DB_RESULT(result);
    if (!db_exec(db, &DESCRIBE, &params, &result, err)) {
        return false;
    }
    size_t count = (size_t)db_result_rows(result);
    if (count > column_count_max) {
        return err_set(err, ERR_PERMANENT, "columns_too_many", "table %s has %zu columns, allowed are %zu", table,
                       count, column_count_max);
    }
    for (size_t i = 0; i < count; i++) {
        bool has_fitted = text_copy(ret_name, DB_SINK_TEXT_SIZE, db_get_text(result, (int)i, 0)) &&
                          text_copy(ret_columns[i].name, DB_SINK_TEXT_SIZE, db_get_text(result, (int)i, 1)) &&
                          text_copy(ret_columns[i].type, DB_SINK_TEXT_SIZE, db_get_text(result, (int)i, 2));
        if (!has_fitted) {
            return err_set(err, ERR_PERMANENT, "table_unusable", "table %s: a name or type is too long", table);
        }
    }
    *ret_count = count;
    return true;
}
