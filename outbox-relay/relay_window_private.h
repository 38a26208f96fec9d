/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a window, shared by relay_window.c and relay_window_settle.c.
 */
#ifndef RELAY_WINDOW_PRIVATE_H
#define RELAY_WINDOW_PRIVATE_H

#include "relay_window.h"

#define CARRY_BUCKET_COUNT 1024U
#define EVENT_OVERHEAD_BYTES 1024 /* Counted beside the value: attributes, headers and our own bookkeeping. */

struct relay_window {
    struct relay_window_options options;
    struct relay_queue entries; /* In reading order, from the settled place on. */
    size_t entry_count;
    size_t bytes;
    struct relay_queue ready;
    struct relay_queue suspect;
    struct relay_queue delayed;
    struct relay_queue unwritten;
    size_t written_count;
    struct relay_keys *keys;
    struct relay_entry *carried[CARRY_BUCKET_COUNT]; /* By id, linked by next. */
    size_t carried_count;
    int carried_age; /* Ranges that were finished since the reset. */
    size_t sent_count;
    int64_t claimed_to;
    struct relay_snapshot *from; /* While range is NULL: where the next one starts. */
    struct relay_range *range;
    int64_t position;
};

/* Leaves its key and its range. */
void relay_window_entry_free(struct relay_entry *entry);

#endif
