/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots and their differences. The invariant: what is said here about
 * visibility is what Postgres says of the same text.
 */
#include "relay_snapshot.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Reads a decimal number and the character behind it; the text's end will do where is_last is allowed. Moves *textp
 * behind both. */
static bool read_xid(const char **textp, char separator, bool is_last, uint64_t *ret_xid)
{
    const char *text = *textp;
    if (*text < '0' || *text > '9') {
        return false;
    }
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    bool is_at_end = is_last && *end == '\0';
    if (errno != 0 || (*end != separator && !is_at_end)) {
        return false;
    }
    *textp = is_at_end ? end : end + 1;
    *ret_xid = number;
    return true;
}

static bool read_xids(struct relay_snapshot *snapshot, const char *text)
{
    size_t capacity = 0;
    while (*text != '\0') {
        if (snapshot->xid_count == capacity) {
            capacity = capacity == 0 ? 16 : 2 * capacity;
            uint64_t *grown = realloc(snapshot->xids, capacity * sizeof *grown);
            if (grown == NULL) {
                return false;
            }
            snapshot->xids = grown;
        }
        uint64_t xid;
        if (!read_xid(&text, ',', true, &xid)) {
            return false;
        }
        uint64_t least = snapshot->xid_count == 0 ? snapshot->xmin : snapshot->xids[snapshot->xid_count - 1] + 1;
        if (xid < least || xid >= snapshot->xmax) {
            return false;
        }
        snapshot->xids[snapshot->xid_count++] = xid;
    }
    return true;
}

static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(1469598103934665603); /* FNV-1a. */
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    }
    return hash;
}

static bool parse(struct relay_snapshot *snapshot)
{
    const char *text = snapshot->text;
    snapshot->hash = hash_of(text);
    return read_xid(&text, ':', false, &snapshot->xmin) && read_xid(&text, ':', false, &snapshot->xmax) &&
           snapshot->xmin > 0 && snapshot->xmin <= snapshot->xmax && read_xids(snapshot, text);
}

struct relay_snapshot *relay_snapshot_new(const char *text, int64_t floor, int64_t ceiling, struct err *err)
{
    assert(text != NULL && floor >= 0);
    struct relay_snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (snapshot == NULL || (snapshot->text = strdup(text)) == NULL) {
        free(snapshot);
        err_set(err, ERR_FATAL, "memory", "no memory for a snapshot");
        return NULL;
    }
    snapshot->ref_count = 1;
    snapshot->floor = floor;
    snapshot->ceiling = ceiling;
    if (!parse(snapshot)) {
        err_set(err, ERR_FATAL, "snapshot_invalid", "not a snapshot: %.100s", text);
        relay_snapshot_unref(&snapshot);
    }
    return snapshot;
}

struct relay_snapshot *relay_snapshot_ref(struct relay_snapshot *snapshot)
{
    assert(snapshot->ref_count > 0);
    snapshot->ref_count++;
    return snapshot;
}

void relay_snapshot_unref(struct relay_snapshot **snapshotp)
{
    struct relay_snapshot *snapshot = *snapshotp;
    *snapshotp = NULL;
    if (snapshot == NULL) {
        return;
    }
    assert(snapshot->ref_count > 0);
    if (--snapshot->ref_count == 0) {
        free(snapshot->text);
        free(snapshot->xids);
        free(snapshot);
    }
}

static int compare_xids(const void *left, const void *right)
{
    uint64_t one = *(const uint64_t *)left;
    uint64_t other = *(const uint64_t *)right;
    return one < other ? -1 : one > other;
}

bool relay_snapshot_is_visible(const struct relay_snapshot *snapshot, uint64_t xid)
{
    if (xid < snapshot->xmin) {
        return true;
    }
    return xid < snapshot->xmax && (snapshot->xid_count == 0 || bsearch(&xid, snapshot->xids, snapshot->xid_count,
                                                                        sizeof xid, compare_xids) == NULL);
}

bool relay_snapshot_has_late(const struct relay_snapshot *from, const struct relay_snapshot *to)
{
    for (size_t i = 0; i < from->xid_count; i++) {
        if (relay_snapshot_is_visible(to, from->xids[i])) {
            return true;
        }
    }
    return false;
}

struct relay_range *relay_range_new(struct relay_snapshot *from, struct relay_snapshot *to, struct err *err)
{
    struct relay_range *range = calloc(1, sizeof *range);
    if (range == NULL) {
        err_set(err, ERR_FATAL, "memory", "no memory for a range");
        return NULL;
    }
    range->ref_count = 1;
    range->from = relay_snapshot_ref(from);
    range->to = relay_snapshot_ref(to);
    range->has_late = relay_snapshot_has_late(from, to);
    return range;
}

struct relay_range *relay_range_ref(struct relay_range *range)
{
    assert(range->ref_count > 0);
    range->ref_count++;
    return range;
}

void relay_range_unref(struct relay_range **rangep)
{
    struct relay_range *range = *rangep;
    *rangep = NULL;
    if (range != NULL && --range->ref_count == 0) {
        relay_snapshot_unref(&range->from);
        relay_snapshot_unref(&range->to);
        free(range);
    }
}
