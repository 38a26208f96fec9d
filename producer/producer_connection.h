/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread's connection that comes back: opened when it is needed, tried anew
 * with growing waits while the database is away.
 */
#ifndef PRODUCER_CONNECTION_H
#define PRODUCER_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/backoff.h"
#include "base/err.h"
#include "db/db.h"
#include "producer_settings.h"

struct health;

struct producer_connection {
    const struct producer_settings *settings;
    struct health *health;
    const char *role;  /* "batcher", "reader": the application's name in the database. */
    bool plans_once;   /* As in db_settings. Set after the beginning, where it is so. */
    bool tells_health; /* One of all says whether the database is there. */
    struct db *db;
    struct backoff backoff;
    int64_t retry_at_ms;
    int64_t used_ms;
    int64_t partitions_at_ms; /* When to look next whether the outbox needs partitions. */
    bool was_down;
};

void producer_connection_init(struct producer_connection *connection, const struct producer_settings *settings,
                              struct health *health, const char *role, bool tells_health);
void producer_connection_done(struct producer_connection *connection);

/* The connection, opened or opened again if it is time for that; NULL with a transient err while the database is away
 * or not of our version. Blocks for a connect at most. */
struct db *producer_connection_get(struct producer_connection *connection, struct err *err);

/* Once a minute, by the one that tells health: makes partitions of the outbox ahead, and readiness fails a day before
 * they run out. */
void producer_connection_keep_partitions(struct producer_connection *connection);

/* When there is nothing to do: finds out that the database went away, before a caller does. */
void producer_connection_check(struct producer_connection *connection);

#endif
