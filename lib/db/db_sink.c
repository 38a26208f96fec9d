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

#define COLUMN_COUNT 15

struct db_sink {
    struct db_statement statement;
    char *sql;
    bool is_sent[COLUMN_COUNT];
};

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

/* ---- What the statement can ask for ---- */

#define TEXT_COLUMN(member)                                                                                            \
    static void add_##member(struct db_params *params, const struct db_sink_event *event)                              \
    {                                                                                                                  \
        db_params_text(params, event->event->member);                                                                  \
    }
TEXT_COLUMN(event_id)
TEXT_COLUMN(source)
TEXT_COLUMN(type)
TEXT_COLUMN(subject)
TEXT_COLUMN(time)
TEXT_COLUMN(dataschema)
TEXT_COLUMN(content_type)
TEXT_COLUMN(tenant)
TEXT_COLUMN(traceparent)
TEXT_COLUMN(topic)
TEXT_COLUMN(key)

static void add_sequence(struct db_params *params, const struct db_sink_event *event)
{
    if (event->event->outbox_id > 0) {
        db_params_int8(params, event->event->outbox_id);
    } else {
        db_params_null(params, DB_INT8);
    }
}

static void add_partition(struct db_params *params, const struct db_sink_event *event)
{
    db_params_int4(params, event->partition);
}

static void add_offset(struct db_params *params, const struct db_sink_event *event)
{
    db_params_int8(params, event->offset);
}

static void add_value(struct db_params *params, const struct db_sink_event *event)
{
    db_params_bytea(params, event->event->value);
}

/* One array that is sent, and what `events` shows of it. A statement that holds `mark` nowhere does not ask for it. */
static const struct column {
    const char *name;
    const char *array_type;
    enum db_type type;
    const char *mark;
    const char *shown;
    void (*add)(struct db_params *params, const struct db_sink_event *event);
} columns[COLUMN_COUNT] = {
    {"ce_id", "text[]", DB_TEXT, "ce_id", "e.ce_id", add_event_id},
    {"ce_source", "text[]", DB_TEXT, "ce_source", "e.ce_source", add_source},
    {"ce_type", "text[]", DB_TEXT, "ce_type", "e.ce_type", add_type},
    {"ce_subject", "text[]", DB_TEXT, "ce_subject", "e.ce_subject", add_subject},
    {"ce_time", "text[]", DB_TEXT, "ce_time", "e.ce_time::timestamptz AS ce_time", add_time},
    {"ce_sequence", "int8[]", DB_INT8, "ce_sequence", "e.ce_sequence", add_sequence},
    {"ce_dataschema", "text[]", DB_TEXT, "ce_dataschema", "e.ce_dataschema", add_dataschema},
    {"content_type", "text[]", DB_TEXT, "content_type", "e.content_type", add_content_type},
    {"ce_tenantid", "text[]", DB_TEXT, "ce_tenantid", "e.ce_tenantid", add_tenant},
    {"traceparent", "text[]", DB_TEXT, "traceparent", "e.traceparent", add_traceparent},
    {"kafka_topic", "text[]", DB_TEXT, "kafka_topic", "e.kafka_topic", add_topic},
    {"kafka_partition", "int4[]", DB_INT4, "kafka_partition", "e.kafka_partition", add_partition},
    {"kafka_offset", "int8[]", DB_INT8, "kafka_offset", "e.kafka_offset", add_offset},
    {"kafka_key", "text[]", DB_TEXT, "kafka_key", "e.kafka_key", add_key},
    {"value_bytes", "bytea[]", DB_BYTEA, "value",
     "convert_from(e.value_bytes, 'UTF8')::jsonb AS value, convert_from(e.value_bytes, 'UTF8')::json AS value_json, "
     "convert_from(e.value_bytes, 'UTF8') AS value_text, e.value_bytes",
     add_value},
};

/* NOT MATERIALIZED: what is not asked for is not computed. */
static void write_events(struct db_sink *sink, struct buf *sql)
{
    buf_text(sql, "WITH events AS NOT MATERIALIZED (SELECT e.ord");
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (sink->is_sent[i]) {
            buf_format(sql, ", %s", columns[i].shown);
        }
    }
    buf_text(sql, " FROM unnest(");
    int number = 0;
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (sink->is_sent[i]) {
            number++;
            buf_format(sql, "%s$%d::%s", number == 1 ? "" : ", ", number, columns[i].array_type);
        }
    }
    buf_text(sql, ") WITH ORDINALITY AS e (");
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (sink->is_sent[i]) {
            buf_format(sql, "%s, ", columns[i].name);
        }
    }
    buf_text(sql, "ord))");
}

/* Without any array there would be no rows. */
static void choose_columns(struct db_sink *sink, const char *statement, enum db_sink_use use)
{
    bool is_any = false;
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        sink->is_sent[i] = use == DB_SINK_ALL || strstr(statement, columns[i].mark) != NULL;
        is_any = is_any || sink->is_sent[i];
    }
    sink->is_sent[0] = sink->is_sent[0] || !is_any;
}

static void add_events(const struct db_sink *sink, struct db_params *params, const struct db_sink_event *events,
                       size_t count)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (!sink->is_sent[i]) {
            continue;
        }
        db_params_array_open(params, columns[i].type);
        for (size_t n = 0; n < count; n++) {
            columns[i].add(params, &events[n]);
        }
        db_params_array_close(params);
    }
}

/* ---- The statement ---- */

/* The statement's text behind "WITH", if that is how it begins. */
static const char *behind_with(const char *statement)
{
    bool begins_with = strncasecmp(statement, "with", 4) == 0 && strchr(" \t\r\n", statement[4]) != NULL;
    return begins_with ? statement + 4 : NULL;
}

struct db_sink *db_sink_new(const char *statement, enum db_sink_use use, struct err *err)
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
    choose_columns(sink, statement, use);
    write_events(sink, &buf);
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

/* What the statement's failure means. Returns false. */
static bool judge(struct err *err)
{
    err->kind = is_data_code(err->code) ? ERR_PERMANENT : ERR_TRANSIENT;
    return false;
}

bool db_sink_apply(struct db_tx *tx, struct db_sink *sink, const struct db_sink_event *events, size_t count,
                   struct err *err)
{
    assert(sink != NULL && count > 0);
    DB_PARAMS(params);
    add_events(sink, &params, events, count);
    return db_exec(db_tx_db(tx), &sink->statement, &params, NULL, err) || judge(err);
}

enum db_tx_outcome db_sink_commit(struct db_tx **txp, struct db_sink *sink, const struct db_sink_event *events,
                                  size_t count, struct err *err)
{
    assert(sink != NULL && count > 0);
    DB_PARAMS(params);
    add_events(sink, &params, events, count);
    struct db_call call = {.statement = &sink->statement, .params = &params};
    enum db_tx_outcome outcome = db_exec_commit(txp, &call, 1, err);
    db_calls_clear(&call, 1);
    if (call.has_failed) {
        (void)judge(err);
    } else if (outcome == DB_TX_FAILED && err->kind == ERR_PERMANENT) {
        err->kind = ERR_TRANSIENT; /* A constraint that waits for the commit does not say which event it is about. */
    }
    return outcome;
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
