/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a window can be written down. Two kinds, in one row of the log: the
 * place, which moves over a contiguous run from the front, and what is
 * acknowledged ahead of it. The invariant: what was acknowledged is in one row.
 */
#include "relay_window.h"

#include <assert.h>

#include "relay_window_private.h"

static bool entry_can_settle(const struct relay_entry *entry)
{
    return entry->state == RELAY_DONE || entry->state == RELAY_PARKED || entry->state == RELAY_HELD;
}

size_t relay_window_settleable(const struct relay_window *window, size_t count_max, struct relay_entry **ret_first)
{
    size_t count = 0;
    for (const struct relay_entry *entry = window->entries.first;
         entry != NULL && count < count_max && entry_can_settle(entry); entry = entry->next) {
        count++;
    }
    *ret_first = window->entries.first;
    return count;
}

struct relay_point relay_window_point_after(const struct relay_window *window, size_t count)
{
    const struct relay_entry *entry = window->entries.first;
    for (size_t i = 0; i < count; i++) {
        assert(entry != NULL && entry_can_settle(entry));
        entry = entry->next;
    }
    if (entry != NULL) {
        return (struct relay_point){entry->range->from, entry->range->to, entry->id - 1};
    }
    if (window->range != NULL) {
        return (struct relay_point){window->range->from, window->range->to, window->position};
    }
    return (struct relay_point){window->from, NULL, 0};
}

const struct relay_queue *relay_window_unwritten(const struct relay_window *window)
{
    return &window->unwritten;
}

void relay_window_written(struct relay_window *window, int64_t seq)
{
    assert(seq > 0);
    struct relay_queue all = window->unwritten;
    struct relay_entry *entry;
    window->unwritten = RELAY_QUEUE_EMPTY;
    while ((entry = relay_queue_pop(&all)) != NULL) {
        assert(entry->state == RELAY_DONE && entry->written_seq == 0);
        if (entry->is_planned) {
            entry->is_planned = false;
            entry->written_seq = seq;
            window->written_count++;
        } else {
            relay_queue_push(&window->unwritten, entry);
        }
    }
}

size_t relay_window_written_count(const struct relay_window *window)
{
    return window->written_count;
}

static int64_t least_written(const struct relay_entry *entry, int64_t least)
{
    for (; entry != NULL; entry = entry->next) {
        least = entry->written_seq != 0 && entry->written_seq < least ? entry->written_seq : least;
    }
    return least;
}

int64_t relay_window_written_from(const struct relay_window *window, size_t skip_count)
{
    const struct relay_entry *entry = window->entries.first;
    for (size_t i = 0; i < skip_count; i++) {
        entry = entry->next;
    }
    int64_t least = least_written(entry, INT64_MAX);
    for (size_t i = 0; window->carried_count > 0 && i < CARRY_BUCKET_COUNT; i++) {
        least = least_written(window->carried[i], least);
    }
    return least;
}

void relay_window_settled(struct relay_window *window, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct relay_entry *entry = window->entries.first;
        assert(entry != NULL && entry_can_settle(entry));
        assert(entry->state != RELAY_DONE || entry->written_seq != 0);
        window->entries.first = entry->next;
        if (window->entries.first == NULL) {
            window->entries.last = NULL;
        }
        window->entry_count--;
        relay_window_entry_free(entry);
    }
}
