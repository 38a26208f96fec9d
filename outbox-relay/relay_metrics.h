/* SPDX-License-Identifier: Apache-2.0
 *
 * The relay's figures, and the thread that reads those which only the database
 * knows: apart from the loop, so that they are true while the loop is stuck.
 * The same thread takes the process down when the loop is dead.
 */
#ifndef RELAY_METRICS_H
#define RELAY_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "db/db.h"
#include "http/health.h"
#include "http/metrics.h"
#include "relay.h"

struct relay_metrics;

/* The registry is borrowed. NULL with a fatal error without memory. */
struct relay_metrics *relay_metrics_new(struct metrics *registry, struct err *err) MUST_CHECK;

/* Ends the thread if it runs. */
void relay_metrics_free(struct relay_metrics **metricsp);

/* Brings the figures up to the relay's counts, and says that the loop lives. Every turn. */
void relay_metrics_update(struct relay_metrics *metrics, const struct relay *relay);

/* Says that the loop lives, where it has no relay to show. */
void relay_metrics_beat(struct relay_metrics *metrics);

/* Starts the thread with a connection of its own. It also says in health, which is borrowed, when rows wait that
 * nobody publishes. */
bool relay_metrics_start(struct relay_metrics *metrics, const struct db_settings *database, struct health *health,
                         struct err *err) MUST_CHECK;

#endif
