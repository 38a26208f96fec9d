/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that wait until an event is applied. However many they are, they hold
 * one thread and one connection between them, and one query looks for all.
 */
#ifndef PRODUCER_WAIT_H
#define PRODUCER_WAIT_H

#include "base/err.h"
#include "producer_reader.h"
#include "producer_settings.h"

struct health;
struct metrics;
struct producer_wait;

/* Starts its thread. Everything is borrowed until producer_wait_close(); whoever is done waiting goes to the reader. */
struct producer_wait *producer_wait_open(const struct producer_settings *settings, struct producer_reader *reader,
                                         struct health *health, struct metrics *metrics, struct err *err) MUST_CHECK;

/* Takes the read over, whose id, text (a consumer, or "") and until_ms say what it waits for. It is put to the reader,
 * with its outcome, when that has come, the time is up, or the service stops; a read whose client has left is dropped.
 * Where too many wait it is answered 429. Does not block. */
void producer_wait_put(struct producer_wait *wait, struct producer_read *read);

/* From now on nobody waits: all are looked at once more and answered. */
void producer_wait_stop(struct producer_wait *wait);

/* Stops, if need be, and ends the thread. The reader must still be open. */
void producer_wait_close(struct producer_wait **waitp);

#endif
