/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of assigned partitions. The invariant: it is in order of topic and
 * partition, which is the order in which cursors are moved.
 */
#include "consumer_cursor.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool consumer_cursors_init(struct consumer_cursors *cursors, size_t count, struct err *err)
{
    cursors->items = calloc(count + 1, sizeof *cursors->items);
    cursors->count = cursors->items == NULL ? 0 : count;
    return cursors->items != NULL || err_set(err, ERR_FATAL, "out_of_memory", "%zu partitions", count);
}

void consumer_cursors_done(struct consumer_cursors *cursors)
{
    free(cursors->items);
    *cursors = (struct consumer_cursors){.items = NULL};
}

static int compare(const void *left_item, const void *right_item)
{
    const struct consumer_cursor *left = left_item;
    const struct consumer_cursor *right = right_item;
    int order = strcmp(left->topic, right->topic);
    if (order != 0) {
        return order;
    }
    return left->partition < right->partition ? -1 : left->partition > right->partition;
}

void consumer_cursors_sort(struct consumer_cursors *cursors)
{
    if (cursors->count > 1) {
        qsort(cursors->items, cursors->count, sizeof *cursors->items, compare);
    }
}

size_t consumer_cursors_find(const struct consumer_cursors *cursors, const char *topic, int32_t partition)
{
    struct consumer_cursor wanted = {.topic = topic, .partition = partition};
    size_t low = 0;
    size_t high = cursors->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&cursors->items[middle], &wanted) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < cursors->count && compare(&cursors->items[low], &wanted) == 0 ? low : cursors->count;
}

void consumer_cursor_follow(struct consumer_cursor *cursor, const struct db_progress_row *row)
{
    cursor->seq = row->seq;
    cursor->attempt = row->attempt;
    cursor->next_offset = row->next_offset;
    cursor->last_offset = row->last_offset < row->next_offset ? row->last_offset : DB_PROGRESS_OFFSET_NONE;
    memcpy(cursor->last_hash, row->last_hash, sizeof cursor->last_hash);
    memcpy(cursor->cluster_id, row->cluster_id, sizeof cursor->cluster_id);
    cursor->read_offset = cursor->next_offset;
    cursor->is_stop_told = false;
}

void consumer_cursor_anchor(struct consumer_cursor *cursor, int64_t offset, const unsigned char *hash)
{
    cursor->anchor_offset = offset;
    memcpy(cursor->anchor_hash, hash, sizeof cursor->anchor_hash);
}
