/* SPDX-License-Identifier: Apache-2.0
 *
 * From a table mapping to one SQL statement over the table expression `events`
 * of db_sink.h. Pure.
 *
 * A pair is `column=path`. Paths: an attribute (ce_id, ce_source, ce_type, ce_subject, ce_time, ce_sequence,
 * ce_dataschema, ce_tenantid, content_type, traceparent, kafka_topic, kafka_partition, kafka_offset, kafka_key),
 * `value` for the whole value, or a JSON pointer into it (/data/name; RFC 6901). Values are cast to the column's type.
 */
#ifndef SINK_MAPPING_H
#define SINK_MAPPING_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "db/db_sink.h"

#define SINK_MAPPING_COLUMN_COUNT_MAX 64

struct sink_mapping {
    const char *table; /* As a user writes it, with a schema or without. */
    const char *const
        *keys; /* Columns that tell rows apart, as the table's own unique key. None: rows are only added. */
    size_t key_count;
    const char *const *pairs;
    size_t pair_count;
};

/* What can be told without a database. PERMANENT, naming the mistake. With keys and further columns one column must
 * come from ce_sequence: it is what lets only newer events through. */
bool sink_mapping_check(const struct sink_mapping *mapping, struct err *err) MUST_CHECK;

/* The statement for a table of this name, already quoted, with these columns. PERMANENT when a column is missing.
 * Precondition: the mapping passed its check. */
bool sink_mapping_sql(const struct sink_mapping *mapping, const char *table_name, const struct db_sink_column *columns,
                      size_t column_count, struct buf *ret_sql, struct err *err) MUST_CHECK;

#endif
