/* SPDX-License-Identifier: Apache-2.0
 *
 * The micro-batcher: a few threads, each with one connection, put whatever
 * waits into one transaction. No timer: under load batches grow by themselves,
 * without load a call goes alone at once.
 */
#ifndef PRODUCER_BATCH_H
#define PRODUCER_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "producer_item.h"
#include "producer_settings.h"

struct health;
struct metrics;
struct producer_batch;
struct producer_flights;
struct producer_hint;

struct producer_batch_options {
    const struct producer_settings *settings;
    const char *public_url;
    struct producer_hint *hint;
    struct health *health;
    struct metrics *metrics;
};

/* Starts the threads. Everything in options is borrowed until producer_batch_free(). */
struct producer_batch *producer_batch_new(const struct producer_batch_options *options, struct err *err) MUST_CHECK;

/* Takes the item over; a full queue is answered at once. */
void producer_batch_put(struct producer_batch *batch, struct producer_item *item);

/* The keys that its calls work under. Borrowed, until producer_batch_free(). */
struct producer_flights *producer_batch_flights(const struct producer_batch *batch);

/* Finishes what waits, which without a database is a refusal, and ends the threads. */
void producer_batch_free(struct producer_batch **batchp);

#endif
