/* SPDX-License-Identifier: Apache-2.0
 *
 * Work that waits for a thread with a connection. An entry can be put back for
 * a moment, which costs neither a thread nor a connection.
 */
#ifndef PRODUCER_QUEUE_H
#define PRODUCER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of whatever waits. */
struct producer_entry {
    struct producer_entry *next;
    int64_t due_ms;
};

struct producer_queue;

/* Takes up to count_max new entries; what is put back always fits. NULL when memory is out. */
struct producer_queue *producer_queue_new(size_t count_max);
void producer_queue_free(struct producer_queue **queuep);

/* False when it is full or closed. */
bool producer_queue_put(struct producer_queue *queue, struct producer_entry *entry);

/* Again in delay_ms. */
void producer_queue_put_back(struct producer_queue *queue, struct producer_entry *entry, int64_t delay_ms);

/* Sets an entry aside, for whoever is not free yet to put it back; later all of them go back, each delayed as it says.
 */
void producer_queue_park(struct producer_entry **parked, struct producer_entry *entry, int64_t delay_ms);
void producer_queue_unpark(struct producer_queue *queue, struct producer_entry **parked);

/* Waits up to wait_ms for something that is due and takes up to count_max of it, in order. 0 when there was nothing. */
size_t producer_queue_take(struct producer_queue *queue, struct producer_entry **ret_entries, size_t count_max,
                           int64_t wait_ms);

/* Nothing new is taken in; whoever waits wakes. */
void producer_queue_close(struct producer_queue *queue);

/* Closed and nothing left: the thread may end. */
bool producer_queue_is_over(struct producer_queue *queue);

size_t producer_queue_count(struct producer_queue *queue);

#endif
