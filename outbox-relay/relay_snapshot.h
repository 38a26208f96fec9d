/* SPDX-License-Identifier: Apache-2.0
 *
 * A snapshot of the database as the relay uses it: what was visible, with the
 * sequence's value before it (floor) and after it (ceiling). Immutable and
 * shared by counting, since lanes read with one snapshot. Pure.
 */
#ifndef RELAY_SNAPSHOT_H
#define RELAY_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct relay_snapshot {
    int ref_count;
    char *text; /* As pg_snapshot writes it: xmin:xmax:xid,xid,… */
    int64_t floor;
    int64_t ceiling;
    uint64_t xmin;  /* Everything below has ended. */
    uint64_t xmax;  /* Nothing from here on had ended. */
    uint64_t *xids; /* Those between that were running, rising. */
    size_t xid_count;
    uint64_t hash; /* Of the text. */
};

/* Reads the text. NULL with a fatal error for anything that is not a snapshot, or without memory. */
struct relay_snapshot *relay_snapshot_new(const char *text, int64_t floor, int64_t ceiling, struct err *err) MUST_CHECK;

struct relay_snapshot *relay_snapshot_ref(struct relay_snapshot *snapshot);

/* Accepts NULL, nulls the pointer. */
void relay_snapshot_unref(struct relay_snapshot **snapshotp);

/* As pg_visible_in_snapshot(). */
bool relay_snapshot_is_visible(const struct relay_snapshot *snapshot, uint64_t xid);

/* Whether a transaction that ran in from has ended in to: only then has stream B anything to read. */
bool relay_snapshot_has_late(const struct relay_snapshot *from, const struct relay_snapshot *to);

/* A difference that is read: what is visible in to and not in from. */
struct relay_range {
    int ref_count;
    struct relay_snapshot *from;
    struct relay_snapshot *to;
    bool has_late; /* Stream B is not empty for certain. */
};

/* Shares both snapshots. NULL with a fatal error without memory. */
struct relay_range *relay_range_new(struct relay_snapshot *from, struct relay_snapshot *to, struct err *err) MUST_CHECK;

struct relay_range *relay_range_ref(struct relay_range *range);
void relay_range_unref(struct relay_range **rangep);

#endif
