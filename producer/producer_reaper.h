/* SPDX-License-Identifier: Apache-2.0
 *
 * Deletes expired keys, a bounded number at a time, while no other producer
 * does so: a key's expiry does not depend on it. And removes what the settings
 * of retention say, which by default is nothing.
 */
#ifndef PRODUCER_REAPER_H
#define PRODUCER_REAPER_H

#include "base/err.h"
#include "producer_settings.h"

struct health;
struct metrics;
struct producer_flights;
struct producer_reaper;

/* Starts its thread, which has one connection. The flights are told who has as many keys as may be. Everything is
 * borrowed until producer_reaper_close(). */
struct producer_reaper *producer_reaper_open(const struct producer_settings *settings, struct producer_flights *flights,
                                             struct health *health, struct metrics *metrics,
                                             struct err *err) MUST_CHECK;
void producer_reaper_close(struct producer_reaper **reaperp);

#endif
