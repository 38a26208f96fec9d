/* SPDX-License-Identifier: Apache-2.0
 *
 * The relay's lease, kept by a thread and a connection of its own, so that
 * nothing that the main loop waits for can let it run out unseen.
 */
#ifndef RELAY_LEASE_H
#define RELAY_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "db/db.h"
#include "db/db_lane.h"

struct relay_lease;

enum relay_lease_state {
    RELAY_LEASE_NONE, /* Not registered yet, or the deadline has passed: publish nothing. */
    RELAY_LEASE_HELD,
    RELAY_LEASE_OUSTED, /* Another process has our name: this one has to end. */
};

struct relay_lease_options {
    struct db_settings database;
    struct db_lane_owner owner; /* Its lease_ms is the length. */
    int64_t renew_ms;
    int64_t margin_ms; /* The local deadline is this much before the lease's end. */
    /* Called in the lease's thread at the deadline: stop what is on its way, at once. */
    void (*expired)(void *context);
    void *context;
};

/* Starts the thread, which registers as soon as the database answers. */
struct relay_lease *relay_lease_start(const struct relay_lease_options *options, struct err *err) MUST_CHECK;

/* Any thread. *ret_epoch changes with every deadline that passed: what was taken in an earlier one is lost. */
enum relay_lease_state relay_lease_state(struct relay_lease *lease, uint64_t *ret_epoch);

/* Why there is no lease, for people. "" when there is one. */
void relay_lease_reason(struct relay_lease *lease, char *ret_reason, size_t size);

/* Ends the thread; the name is given up when the database answers. */
void relay_lease_stop(struct relay_lease **leasep);

/* Pure: the local deadline of a renewal that was sent at sent_ms. */
int64_t relay_lease_deadline(int64_t sent_ms, int64_t lease_ms, int64_t margin_ms);

#endif
