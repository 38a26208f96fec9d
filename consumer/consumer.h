/* SPDX-License-Identifier: Apache-2.0
 *
 * The consumer: from a topic through the inbox into a sink. One thread; waits
 * only on Kafka's queue and on answers of the database.
 */
#ifndef CONSUMER_H
#define CONSUMER_H

#include "base/err.h"

struct consumer;
struct consumer_settings;
struct health;
struct metrics;

/* Makes everything that needs no other process: a database and a broker may both be away. settings, health and
 * metrics are borrowed. PERMANENT for settings that cannot work. */
struct consumer *consumer_new(const struct consumer_settings *settings, struct health *health, struct metrics *metrics,
                              struct err *err) MUST_CHECK;

/* Runs until a stop is requested, then applies what is in memory and says so to the group. False is FATAL: nothing
 * more was applied after the reason arose. */
bool consumer_run(struct consumer *consumer, struct err *err) MUST_CHECK;

/* One turn of the loop: collect, apply, tend. Waits at most some tenths of a second for a record. */
bool consumer_step(struct consumer *consumer, struct err *err) MUST_CHECK;

/* Leaves the group and frees, within a limit of seconds. Accepts NULL, nulls the pointer. */
void consumer_free(struct consumer **consumerp);

#endif
