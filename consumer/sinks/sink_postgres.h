/* SPDX-License-Identifier: Apache-2.0
 *
 * The sink in the consumer's own database: a table mapping, or a statement of
 * the user's own.
 */
#ifndef SINK_POSTGRES_H
#define SINK_POSTGRES_H

#include "base/err.h"
#include "sinks/sink.h"
#include "sinks/sink_mapping.h"

struct sink_postgres_options {
    const char *statement;       /* The user's own; NULL: the mapping. Borrowed for the sink's life, as all texts. */
    struct sink_mapping mapping; /* Checked. */
};

struct sink *sink_postgres_new(const struct sink_postgres_options *options, struct err *err) MUST_CHECK;

#endif
