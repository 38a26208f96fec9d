/* SPDX-License-Identifier: Apache-2.0
 *
 * What calls wait for: that an event has come as far as this database can see.
 * One question for all who wait; it reads, and changes nothing.
 */
#ifndef DB_DB_EVENT_WAIT_H
#define DB_DB_EVENT_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"

struct db;

enum db_event_wait_outcome {
    DB_EVENT_WAIT_OPEN,      /* Wait on. */
    DB_EVENT_WAIT_UNKNOWN,   /* No event of the tenant's has this id. */
    DB_EVENT_WAIT_APPLIED,   /* By every consumer that counts. */
    DB_EVENT_WAIT_PUBLISHED, /* And no consumer of its topic keeps its inbox in this database: nothing more will be
                                seen. */
    DB_EVENT_WAIT_FAILED,    /* Refused by the broker, discarded, or failed at a consumer that counts. */
};

/* One who waits. The consumers that count are those of scope `live` that have applied the event or are registered for
 * its topic, and are not retired; with a name, that one alone. */
struct db_event_wait {
    struct uuid event_id;
    const char *tenant;
    const char *consumer;               /* NULL: all. */
    int64_t outbox_id;                  /* 0 at the first look; found and kept by it. */
    enum db_event_wait_outcome outcome; /* Written by the look. */
};

/* Looks once for all. Reads a few index entries for each. */
bool db_event_wait_look(struct db *db, struct db_event_wait *waits, size_t count, struct err *err) MUST_CHECK;

#endif
