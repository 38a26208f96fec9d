/* SPDX-License-Identifier: Apache-2.0
 *
 * Two lists under one lock: what is due, in the order of its coming, and what
 * waits, in the order of its time.
 */
#include "producer_queue.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"

struct producer_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct producer_entry *first;
    struct producer_entry **last;
    struct producer_entry *waiting; /* Sorted by due_ms. */
    size_t count;                   /* Of both. */
    size_t count_max;
    bool is_closed;
};

struct producer_queue *producer_queue_new(size_t count_max)
{
    struct producer_queue *queue = calloc(1, sizeof *queue);
    if (queue != NULL) {
        pthread_mutex_init(&queue->lock, NULL);
        thread_cond_init(&queue->changed);
        queue->last = &queue->first;
        queue->count_max = count_max;
    }
    return queue;
}

void producer_queue_free(struct producer_queue **queuep)
{
    struct producer_queue *queue = *queuep;
    *queuep = NULL;
    if (queue != NULL) {
        assert(queue->count == 0);
        pthread_cond_destroy(&queue->changed);
        pthread_mutex_destroy(&queue->lock);
        free(queue);
    }
}

static void append(struct producer_queue *queue, struct producer_entry *entry)
{
    entry->next = NULL;
    *queue->last = entry;
    queue->last = &entry->next;
}

bool producer_queue_put(struct producer_queue *queue, struct producer_entry *entry)
{
    thread_lock(&queue->lock);
    bool is_taken = !queue->is_closed && queue->count < queue->count_max;
    if (is_taken) {
        append(queue, entry);
        queue->count++;
        pthread_cond_signal(&queue->changed);
    }
    thread_unlock(&queue->lock);
    return is_taken;
}

void producer_queue_put_back(struct producer_queue *queue, struct producer_entry *entry, int64_t delay_ms)
{
    entry->due_ms = clock_monotonic_ms() + delay_ms;
    thread_lock(&queue->lock);
    struct producer_entry **place = &queue->waiting;
    while (*place != NULL && (*place)->due_ms <= entry->due_ms) {
        place = &(*place)->next;
    }
    entry->next = *place;
    *place = entry;
    queue->count++;
    pthread_cond_signal(&queue->changed);
    thread_unlock(&queue->lock);
}

void producer_queue_park(struct producer_entry **parked, struct producer_entry *entry, int64_t delay_ms)
{
    entry->due_ms = delay_ms;
    entry->next = *parked;
    *parked = entry;
}

void producer_queue_unpark(struct producer_queue *queue, struct producer_entry **parked)
{
    while (*parked != NULL) {
        struct producer_entry *entry = *parked;
        *parked = entry->next;
        producer_queue_put_back(queue, entry, entry->due_ms);
    }
}

/* Moves what has become due. */
static void wake_due(struct producer_queue *queue, int64_t now_ms)
{
    while (queue->waiting != NULL && queue->waiting->due_ms <= now_ms) {
        struct producer_entry *entry = queue->waiting;
        queue->waiting = entry->next;
        append(queue, entry);
    }
}

size_t producer_queue_take(struct producer_queue *queue, struct producer_entry **ret_entries, size_t count_max,
                           int64_t wait_ms)
{
    int64_t until_ms = clock_monotonic_ms() + wait_ms;
    thread_lock(&queue->lock);
    for (;;) {
        int64_t now_ms = clock_monotonic_ms();
        wake_due(queue, now_ms);
        bool is_over = queue->is_closed && queue->waiting == NULL;
        if (queue->first != NULL || is_over || now_ms >= until_ms) {
            break;
        }
        int64_t next_ms =
            queue->waiting != NULL && queue->waiting->due_ms < until_ms ? queue->waiting->due_ms : until_ms;
        (void)thread_cond_wait_until(&queue->changed, &queue->lock, next_ms);
    }
    size_t count = 0;
    while (count < count_max && queue->first != NULL) {
        ret_entries[count++] = queue->first;
        queue->first = queue->first->next;
    }
    if (queue->first == NULL) {
        queue->last = &queue->first;
    } else {
        pthread_cond_signal(&queue->changed); /* Another thread may go on with the rest. */
    }
    queue->count -= count;
    thread_unlock(&queue->lock);
    return count;
}

void producer_queue_close(struct producer_queue *queue)
{
    thread_lock(&queue->lock);
    queue->is_closed = true;
    pthread_cond_broadcast(&queue->changed);
    thread_unlock(&queue->lock);
}

bool producer_queue_is_over(struct producer_queue *queue)
{
    thread_lock(&queue->lock);
    bool is_over = queue->is_closed && queue->count == 0;
    thread_unlock(&queue->lock);
    return is_over;
}

size_t producer_queue_count(struct producer_queue *queue)
{
    thread_lock(&queue->lock);
    size_t count = queue->count;
    thread_unlock(&queue->lock);
    return count;
}
