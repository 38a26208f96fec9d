/* SPDX-License-Identifier: Apache-2.0
 *
 * Wakes the library where it sleeps on a full queue. Before 2.2 it looks at a
 * queue that was full again only after a second, however soon that has run
 * empty, so a consumer that is faster than the queue is long would wait most of
 * the time. Whatever request goes to a broker wakes the thread that also
 * fetches from it; here the least of requests is sent when a full queue has
 * become half empty.
 */
#ifndef KAFKA_WAKER_PRIVATE_H
#define KAFKA_WAKER_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

#include <librdkafka/rdkafka.h>

#include "base/err.h"

struct kafka_waker;

/* For a handle whose queue is full at so many records or bytes. Needed only where kafka_waker_is_needed(). */
struct kafka_waker *kafka_waker_new(rd_kafka_t *handle, rd_kafka_queue_t *queue, size_t record_count_max,
                                    size_t size_max, struct err *err) MUST_CHECK;

/* Ends its thread, which may take half a second. To be called before the handle is closed. Accepts NULL. */
void kafka_waker_free(struct kafka_waker **wakerp);

/* To be told of each record that is taken from the queue. Accepts NULL. */
void kafka_waker_look(struct kafka_waker *waker, const rd_kafka_message_t *taken);

/* Whether this version of the library sleeps so; later ones have a property for it. */
bool kafka_waker_is_needed(void);

#endif
