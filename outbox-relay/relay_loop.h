/* SPDX-License-Identifier: Apache-2.0
 *
 * The relay as a service: an outer loop that runs sessions and alone decides
 * to wait, try again or stop; a session turns until its connection breaks or a
 * stop is asked for.
 */
#ifndef RELAY_LOOP_H
#define RELAY_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/err.h"
#include "db/db.h"
#include "http/health.h"
#include "relay.h"
#include "relay_metrics.h"

struct relay_loop_options {
    struct db_settings database;
    const char *name; /* Of this relay; its lanes follow from one process of this name to the next. */
    struct relay_limits limits;
    int64_t lease_ms;
    int64_t renew_ms;
    int64_t margin_ms;
    int64_t drain_timeout_ms;
    struct config_address hint_listen; /* host "": none. */
    bool is_once;                      /* Publish what is pending in free lanes, settle, let go. */
    struct publisher *(*open)(void *context, bool is_single, struct err *err);
    bool (*is_reachable)(struct publisher *publisher);
    void *context;
    struct health *health;
    struct relay_metrics *metrics;
};

/* Runs until a stop is asked for (true), or until it cannot go on (false, err fatal). --once ends by itself.
 * Waits for a database or a broker that is away, and says so in readiness. */
bool relay_loop_run(const struct relay_loop_options *options, struct err *err) MUST_CHECK;

#endif
