/* SPDX-License-Identifier: Apache-2.0
 *
 * The transactional sink. A mapping becomes a statement once per connection,
 * when the table's column types are read. The invariant: an event without
 * ce_sequence never passes a guard unseen; it is refused.
 */
#include "sinks/sink_postgres.h"

#include <assert.h>
#include <stdlib.h>

#define SQL_SIZE_MAX ((size_t)256 * 1024)

struct sink_postgres {
    struct sink sink; /* First, so that the port's pointer is ours. */
    struct sink_postgres_options options;
    bool is_guarded;
    struct db_sink *statement; /* NULL until prepared. */
};

static struct db_sink *from_mapping(const struct sink_mapping *mapping, struct db *db, struct err *err)
{
    struct db_sink_column columns[SINK_MAPPING_COLUMN_COUNT_MAX * 4];
    char name[DB_SINK_TEXT_SIZE];
    size_t count = 0;
    if (!db_sink_describe(db, mapping->table, name, columns, sizeof columns / sizeof columns[0], &count, err)) {
        return NULL;
    }
    if (count == 0) {
        err_set(err, ERR_PERMANENT, "sink_table_missing", "there is no table %s that this role can see",
                mapping->table);
        return NULL;
    }
    struct buf sql;
    buf_init(&sql, SQL_SIZE_MAX);
    struct db_sink *statement = NULL;
    if (sink_mapping_sql(mapping, name, columns, count, &sql, err)) {
        statement = db_sink_new(sql.data, DB_SINK_NAMED, err);
    }
    buf_done(&sql);
    return statement;
}

/* Statements are known to a connection by their address, so the old one goes only when its connection has gone. */
static bool prepare(struct sink *sink, struct db *db, struct err *err)
{
    struct sink_postgres *postgres = (struct sink_postgres *)sink;
    db_sink_free(&postgres->statement);
    if (postgres->options.statement != NULL) {
        postgres->statement = db_sink_new(postgres->options.statement, DB_SINK_ALL, err);
    } else {
        postgres->statement = from_mapping(&postgres->options.mapping, db, err);
    }
    if (postgres->statement == NULL && err->kind == ERR_PERMANENT) {
        err->kind = ERR_TRANSIENT; /* The table can still be made or mended. */
    }
    return postgres->statement != NULL;
}

static bool check_guard(const struct sink_postgres *postgres, const struct db_sink_event *events, size_t count,
                        struct err *err)
{
    assert(postgres->statement != NULL && count > 0);
    for (size_t i = 0; postgres->is_guarded && i < count; i++) {
        if (events[i].event->outbox_id == 0) {
            return err_set(err, ERR_PERMANENT, "ce_sequence_missing",
                           "the mapping compares ce_sequence, and the event carries none that is a number");
        }
    }
    return true;
}

static bool apply(struct sink *sink, struct db_tx *tx, const struct db_sink_event *events, size_t count,
                  struct err *err)
{
    struct sink_postgres *postgres = (struct sink_postgres *)sink;
    return check_guard(postgres, events, count, err) && db_sink_apply(tx, postgres->statement, events, count, err);
}

static enum db_tx_outcome commit(struct sink *sink, struct db_tx **txp, const struct db_sink_event *events,
                                 size_t count, struct err *err)
{
    struct sink_postgres *postgres = (struct sink_postgres *)sink;
    if (!check_guard(postgres, events, count, err)) {
        db_tx_rollback(txp);
        return DB_TX_FAILED;
    }
    return db_sink_commit(txp, postgres->statement, events, count, err);
}

static void free_postgres(struct sink *sink)
{
    struct sink_postgres *postgres = (struct sink_postgres *)sink;
    db_sink_free(&postgres->statement);
    free(postgres);
}

static const struct sink_ops ops = {.prepare = prepare, .apply = apply, .commit = commit, .free = free_postgres};

struct sink *sink_postgres_new(const struct sink_postgres_options *options, struct err *err)
{
    struct sink_postgres *postgres = calloc(1, sizeof *postgres);
    if (postgres == NULL) {
        err_set(err, ERR_FATAL, "out_of_memory", "sink");
        return NULL;
    }
    postgres->sink.ops = &ops;
    postgres->options = *options;
    postgres->is_guarded = options->statement == NULL && options->mapping.key_count > 0 &&
                           options->mapping.key_count < options->mapping.pair_count;
    return &postgres->sink;
}
