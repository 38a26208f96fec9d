/* SPDX-License-Identifier: Apache-2.0
 *
 * The statement of a table mapping. The invariant: of several events of one key
 * in a batch only the newest is written, and a row is only ever replaced by a
 * newer one, whatever order they come in.
 */
#include "sink_mapping.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"

#define PATH_DEPTH_MAX 32

static const char *const attributes[] = {
    "ce_id",       "ce_source",    "ce_type",     "ce_subject",  "ce_time",         "ce_sequence",  "ce_dataschema",
    "ce_tenantid", "content_type", "traceparent", "kafka_topic", "kafka_partition", "kafka_offset", "kafka_key",
};

struct pair {
    char column[DB_SINK_TEXT_SIZE];
    const char *path;
};

static bool split(const char *text, struct pair *ret_pair)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0' || (size_t)(equals - text) >= sizeof ret_pair->column) {
        return false;
    }
    memcpy(ret_pair->column, text, (size_t)(equals - text));
    ret_pair->column[equals - text] = '\0';
    ret_pair->path = equals + 1;
    return true;
}

static bool is_attribute(const char *path)
{
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        if (strcmp(attributes[i], path) == 0) {
            return true;
        }
    }
    return false;
}

/* RFC 6901: every ~ is followed by 0 or 1. */
static bool is_pointer(const char *path)
{
    size_t depth = 0;
    for (const char *at = path; *at != '\0'; at++) {
        depth += *at == '/' ? 1 : 0;
        if (*at == '~' && at[1] != '0' && at[1] != '1') {
            return false;
        }
    }
    return path[0] == '/' && depth <= PATH_DEPTH_MAX;
}

static bool is_key(const struct sink_mapping *mapping, const char *column)
{
    for (size_t i = 0; i < mapping->key_count; i++) {
        if (strcmp(mapping->keys[i], column) == 0) {
            return true;
        }
    }
    return false;
}

/* Index of the pair of this column, or of the first with this path; pair_count if there is none. */
static size_t find_pair(const struct sink_mapping *mapping, const char *column, const char *path)
{
    for (size_t i = 0; i < mapping->pair_count; i++) {
        struct pair pair;
        if (split(mapping->pairs[i], &pair) && (column == NULL || strcmp(pair.column, column) == 0) &&
            (path == NULL || strcmp(pair.path, path) == 0)) {
            return i;
        }
    }
    return mapping->pair_count;
}

static bool check_pair(const struct sink_mapping *mapping, size_t index, struct err *err)
{
    struct pair pair;
    if (!split(mapping->pairs[index], &pair)) {
        return err_set(err, ERR_PERMANENT, "mapping_invalid", "\"%s\" is not column=path", mapping->pairs[index]);
    }
    if (!is_attribute(pair.path) && !is_pointer(pair.path) && strcmp(pair.path, "value") != 0) {
        return err_set(err, ERR_PERMANENT, "mapping_invalid",
                       "\"%s\" is no path: an attribute as ce_id, \"value\", or a JSON pointer as /data/name",
                       pair.path);
    }
    if (find_pair(mapping, pair.column, NULL) != index) {
        return err_set(err, ERR_PERMANENT, "mapping_invalid", "column \"%s\" is mapped twice", pair.column);
    }
    return true;
}

bool sink_mapping_check(const struct sink_mapping *mapping, struct err *err)
{
    assert(mapping != NULL && mapping->table != NULL);
    if (mapping->pair_count == 0 || mapping->pair_count > SINK_MAPPING_COLUMN_COUNT_MAX) {
        return err_set(err, ERR_PERMANENT, "mapping_invalid", "%zu columns are mapped, allowed are 1 to %d",
                       mapping->pair_count, SINK_MAPPING_COLUMN_COUNT_MAX);
    }
    for (size_t i = 0; i < mapping->pair_count; i++) {
        if (!check_pair(mapping, i, err)) {
            return false;
        }
    }
    for (size_t i = 0; i < mapping->key_count; i++) {
        if (find_pair(mapping, mapping->keys[i], NULL) == mapping->pair_count) {
            return err_set(err, ERR_PERMANENT, "mapping_invalid", "key column \"%s\" is not mapped", mapping->keys[i]);
        }
    }
    bool replaces = mapping->key_count > 0 && mapping->key_count < mapping->pair_count;
    if (replaces && find_pair(mapping, NULL, "ce_sequence") == mapping->pair_count) {
        return err_set(err, ERR_PERMANENT, "mapping_unguarded",
                       "no column comes from ce_sequence, so an older event could replace a newer one");
    }
    return true;
}

static void add_quoted(struct buf *sql, const char *text, char quote)
{
    buf_char(sql, quote);
    for (; *text != '\0'; text++) {
        if (*text == quote) {
            buf_char(sql, quote);
        }
        buf_char(sql, *text);
    }
    buf_char(sql, quote);
}

static void add_pointer(struct buf *sql, const char *pointer)
{
    buf_text(sql, "ARRAY[");
    for (const char *at = pointer; *at == '/';) {
        const char *end = at + 1 + strcspn(at + 1, "/");
        buf_text(sql, at == pointer ? "'" : ",'");
        for (at++; at < end; at++) {
            char character = *at;
            if (character == '~') {
                character = *++at == '0' ? '~' : '/';
            }
            buf_text(sql, character == '\'' ? "'" : "");
            buf_char(sql, character);
        }
        buf_char(sql, '\'');
    }
    buf_text(sql, "]::text[]");
}

static bool is_one_of(const char *type, const char *const *types)
{
    for (; *types != NULL; types++) {
        if (text_has_prefix(type, *types)) {
            return true;
        }
    }
    return false;
}

/* An event's expression, cast to the column's type. */
static void add_expression(struct buf *sql, const char *path, const char *type)
{
    static const char *const text_types[] = {"text", "character", "\"char\"", "name", NULL};
    static const char *const json_types[] = {"json", NULL};
    bool is_bytes = strcmp(type, "bytea") == 0;
    if (strcmp(path, "value") == 0) {
        buf_text(sql, is_bytes ? "e.value_bytes" : "e.value_text");
    } else if (path[0] == '/') {
        buf_text(sql, is_bytes ? "convert_to(e.value_json #>> " : "(e.value_json #>");
        buf_text(sql, is_bytes || is_one_of(type, json_types) ? "" : "> ");
        add_pointer(sql, path);
        buf_text(sql, is_bytes ? ", 'UTF8')" : ")");
    } else if (strcmp(path, "ce_sequence") == 0 && is_one_of(type, text_types)) {
        buf_text(sql, "lpad(e.ce_sequence::text, 20, '0')"); /* As it travels, so that texts compare as numbers do. */
    } else if (is_bytes) {
        buf_format(sql, "convert_to(e.%s::text, 'UTF8')", path);
    } else {
        buf_format(sql, "e.%s", path);
    }
    buf_format(sql, "::%s", type);
}

static const char *type_of(const struct db_sink_column *columns, size_t count, const char *column)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(columns[i].name, column) == 0) {
            return columns[i].type;
        }
    }
    return NULL;
}

static void add_columns(const struct sink_mapping *mapping, struct buf *sql)
{
    for (size_t i = 0; i < mapping->pair_count; i++) {
        struct pair pair;
        bool is_pair = split(mapping->pairs[i], &pair);
        assert(is_pair);
        buf_text(sql, i == 0 ? "" : ", ");
        add_quoted(sql, pair.column, '"');
    }
}

static void add_keys(const struct sink_mapping *mapping, struct buf *sql)
{
    for (size_t i = 0; i < mapping->key_count; i++) {
        buf_text(sql, i == 0 ? "" : ", ");
        add_quoted(sql, mapping->keys[i], '"');
    }
}

static bool add_rows(const struct sink_mapping *mapping, const struct db_sink_column *columns, size_t column_count,
                     struct buf *sql, struct err *err)
{
    buf_text(sql, "SELECT ");
    for (size_t i = 0; i < mapping->pair_count; i++) {
        struct pair pair;
        bool is_pair = split(mapping->pairs[i], &pair);
        assert(is_pair);
        const char *type = type_of(columns, column_count, pair.column);
        if (type == NULL) {
            return err_set(err, ERR_PERMANENT, "mapping_invalid", "table %s has no column \"%s\"", mapping->table,
                           pair.column);
        }
        add_expression(sql, pair.path, type);
        buf_text(sql, " AS ");
        add_quoted(sql, pair.column, '"');
        buf_text(sql, ", ");
    }
    buf_text(sql, "e.ord AS \"onceward ord\" FROM events e");
    return true;
}

/* What happens to a row that is there: replaced if the event is newer. */
static void add_conflict(const struct sink_mapping *mapping, struct buf *sql)
{
    buf_text(sql, " ON CONFLICT (");
    add_keys(mapping, sql);
    size_t sequence = find_pair(mapping, NULL, "ce_sequence");
    if (mapping->key_count == mapping->pair_count) {
        buf_text(sql, ") DO NOTHING");
        return;
    }
    buf_text(sql, ") DO UPDATE SET ");
    bool is_first = true;
    struct pair pair;
    for (size_t i = 0; i < mapping->pair_count; i++) {
        if (!split(mapping->pairs[i], &pair) || is_key(mapping, pair.column)) {
            continue;
        }
        buf_text(sql, is_first ? "" : ", ");
        add_quoted(sql, pair.column, '"');
        buf_text(sql, " = excluded.");
        add_quoted(sql, pair.column, '"');
        is_first = false;
    }
    bool is_pair = split(mapping->pairs[sequence], &pair);
    assert(is_pair);
    buf_text(sql, " WHERE target.");
    add_quoted(sql, pair.column, '"');
    buf_text(sql, " IS NULL OR target.");
    add_quoted(sql, pair.column, '"');
    buf_text(sql, " < excluded.");
    add_quoted(sql, pair.column, '"');
}

bool sink_mapping_sql(const struct sink_mapping *mapping, const char *table_name, const struct db_sink_column *columns,
                      size_t column_count, struct buf *ret_sql, struct err *err)
{
    buf_format(ret_sql, "INSERT INTO %s AS target (", table_name);
    add_columns(mapping, ret_sql);
    buf_text(ret_sql, ") SELECT ");
    add_columns(mapping, ret_sql);
    buf_text(ret_sql, " FROM (");
    if (mapping->key_count > 0) {
        buf_text(ret_sql, "SELECT DISTINCT ON (");
        add_keys(mapping, ret_sql);
        buf_text(ret_sql, ") * FROM (");
    }
    if (!add_rows(mapping, columns, column_count, ret_sql, err)) {
        return false;
    }
    if (mapping->key_count == 0) {
        buf_text(ret_sql, ") AS fresh ORDER BY \"onceward ord\"");
        return buf_check(ret_sql, err);
    }
    buf_text(ret_sql, ") AS fresh ORDER BY ");
    add_keys(mapping, ret_sql);
    struct pair pair;
    size_t sequence = find_pair(mapping, NULL, "ce_sequence");
    if (sequence < mapping->pair_count && split(mapping->pairs[sequence], &pair)) {
        buf_text(ret_sql, ", ");
        add_quoted(ret_sql, pair.column, '"');
        buf_text(ret_sql, " DESC");
    }
    buf_text(ret_sql, ", \"onceward ord\" DESC) AS newest ORDER BY ");
    add_keys(mapping, ret_sql);
    add_conflict(mapping, ret_sql);
    return buf_check(ret_sql, err);
}
