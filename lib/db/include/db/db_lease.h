/* SPDX-License-Identifier: Apache-2.0
 *
 * Which relays are alive, by the database's clock. A lease elects; it is the
 * lane's log that fences.
 */
#ifndef DB_DB_LEASE_H
#define DB_DB_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "db/db_lane.h"

/* Enters this incarnation, or makes it follow the one before it of the same name, at once. */
bool db_lease_register(struct db *db, const struct db_lane_owner *owner, struct err *err) MUST_CHECK;

/* Lengthens the lease from now on. *ret_is_held is false when another incarnation has the name, or none. */
bool db_lease_renew(struct db *db, const struct db_lane_owner *owner, bool *ret_is_held, struct err *err) MUST_CHECK;

/* Leaves: lanes that are still ours are free at once. Nothing happens when the name is another's. */
bool db_lease_resign(struct db *db, const struct db_lane_owner *owner, struct err *err) MUST_CHECK;

struct db_lease_survey {
    int live_relay_count; /* With ourselves, if we are registered. */
    uint32_t free_lanes;  /* Bit n is lane n: without a live owner. */
    uint32_t own_lanes;   /* Under our name. */
};

bool db_lease_survey(struct db *db, const struct db_lane_owner *owner, struct db_lease_survey *ret_survey,
                     struct err *err) MUST_CHECK;

#endif
