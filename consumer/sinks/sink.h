/* SPDX-License-Identifier: Apache-2.0
 *
 * The sink port: where the effect of events takes place. A transactional sink
 * works inside the transaction that claims the events, so that both are kept
 * or neither. One file per sink in this folder.
 */
#ifndef SINK_H
#define SINK_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "db/db_sink.h"
#include "domain/event.h"

struct db;
struct sink;

struct sink_ops {
    /* Called after every connect, before the first apply on it. Not PERMANENT: a sink that is not ready is
     * TRANSIENT trouble. */
    bool (*prepare)(struct sink *sink, struct db *db, struct err *err);
    /* Applies fresh events, in an order of its own so that rivals never deadlock. On false nothing may be kept and
     * the transaction is spent. PERMANENT: at least one of these events is refused for good; called again with
     * fewer of them until one is found. TRANSIENT: the sink is down, no event's fault. */
    bool (*apply)(struct sink *sink, struct db_tx *tx, const struct db_sink_event *events, size_t count,
                  struct err *err);
    /* The same and the commit of the transaction, in as few journeys as there can be; *txp is NULL afterwards. FAILED
     * with PERMANENT: refused, as above. */
    enum db_tx_outcome (*commit)(struct sink *sink, struct db_tx **txp, const struct db_sink_event *events,
                                 size_t count, struct err *err);
    void (*free)(struct sink *sink);
};

/* The first member of every implementation. */
struct sink {
    const struct sink_ops *ops;
};

#endif
