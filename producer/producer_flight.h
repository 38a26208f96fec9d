/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys that calls of this process are working on. Of equal calls under one
 * key the first leads and goes to the database; the others follow it, with no
 * thread and no connection, and are answered with what the leader came to.
 */
#ifndef PRODUCER_FLIGHT_H
#define PRODUCER_FLIGHT_H

#include <stdbool.h>

#include "base/err.h"
#include "producer_item.h"
#include "producer_settings.h"

struct producer_flights;

/* Starts the one thread that answers followers whose patience is over. settings are borrowed. */
struct producer_flights *producer_flight_open(const struct producer_settings *settings, struct err *err) MUST_CHECK;

/* Precondition: no key is in flight. */
void producer_flight_close(struct producer_flights **flightsp);

/* True: the item leads; whoever answers it calls producer_flight_end() first. False: it was taken over, as a follower,
 * or refused: another call is running under its key, or too many wait. */
bool producer_flight_join(struct producer_flights *flights, struct producer_item *item) MUST_CHECK;

/* Whether a call of this process works or waits under the tenant's key: true from before it is first tried until its
 * outcome is settled. From any thread. */
bool producer_flight_is_running(struct producer_flights *flights, const char *tenant_name, const char *text);

/* A look at all tenants' keys: first each tenant that has as many as it may, then the end of the look, by which those
 * that were not named are free again. From one thread. */
void producer_flight_note_full(struct producer_flights *flights, const char *tenant_name);
void producer_flight_end_look(struct producer_flights *flights);

/* The leader's call is over. Gives its followers, chained by follower, to be answered. */
struct producer_item *producer_flight_end(struct producer_flights *flights, struct producer_item *item) MUST_CHECK;

/* The leader gives up, and the one that has waited longest leads from now on. NULL: there was none. */
struct producer_item *producer_flight_pass(struct producer_flights *flights, struct producer_item *item) MUST_CHECK;

#endif
