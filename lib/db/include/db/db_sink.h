/* SPDX-License-Identifier: Apache-2.0
 *
 * A user's statement over a batch of events, run inside the transaction that
 * claims them. It sees them as the table expression `events`:
 *
 *   ord bigint, ce_id text, ce_source text, ce_type text, ce_subject text, ce_time timestamptz, ce_sequence bigint,
 *   ce_dataschema text, content_type text, ce_tenantid text, traceparent text, kafka_topic text,
 *   kafka_partition integer, kafka_offset bigint, kafka_key text, value jsonb, value_json json, value_text text,
 *   value_bytes bytea
 *
 * What the statement does not mention of them is not computed, so values that are no JSON only matter to those who ask.
 */
#ifndef DB_DB_SINK_H
#define DB_DB_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "db/db_tx.h"
#include "domain/event.h"

struct db;
struct db_sink;

#define DB_SINK_TEXT_SIZE 256

/* An event and where it lay. */
struct db_sink_event {
    const struct event *event;
    int32_t partition;
    int64_t offset;
};

/* NAMED: the statement names each column that it takes, so that only those need to be sent. One that may take a whole
 * row (events.*, to_jsonb(events)) needs ALL. */
enum db_sink_use { DB_SINK_ALL, DB_SINK_NAMED };

/* Takes an INSERT, UPDATE, DELETE or MERGE that returns no rows, with or without a WITH of its own. Copies it. */
struct db_sink *db_sink_new(const char *statement, enum db_sink_use use, struct err *err) MUST_CHECK;
void db_sink_free(struct db_sink **sinkp);

/* Runs it once over these events. PERMANENT: these events, as a whole, are refused (by their data, a constraint or
 * a trigger); the transaction is spent. Everything else that is wrong (lock, table missing, privilege missing) is
 * TRANSIENT, since it is no event's fault. */
bool db_sink_apply(struct db_tx *tx, struct db_sink *sink, const struct db_sink_event *events, size_t count,
                   struct err *err) MUST_CHECK;

/* The same and COMMIT, in one journey. *txp is NULL afterwards. FAILED with PERMANENT: as above; whatever is wrong with
 * the commit itself is TRANSIENT. */
enum db_tx_outcome db_sink_commit(struct db_tx **txp, struct db_sink *sink, const struct db_sink_event *events,
                                  size_t count, struct err *err) MUST_CHECK;

/* A column of a table, its type as it is written in a cast, without a length: a cast to one would cut in silence. */
struct db_sink_column {
    char name[DB_SINK_TEXT_SIZE];
    char type[DB_SINK_TEXT_SIZE];
};

/* Describes a table: its name, quoted where needed, and its columns. ret_count is 0 if there is no such table. */
bool db_sink_describe(struct db *db, const char *table, char ret_name[DB_SINK_TEXT_SIZE],
                      struct db_sink_column *ret_columns, size_t column_count_max, size_t *ret_count,
                      struct err *err) MUST_CHECK;

#endif
