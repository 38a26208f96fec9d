/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases in SQL. The invariant: a renewal never lengthens the lease of another
 * incarnation.
 */
#include "db/db_lease.h"

#include "db_private.h"

#define SQL_UNTIL "clock_timestamp() + $3 * interval '1 millisecond'"

static bool exec_owner(struct db *db, const struct db_statement *statement, const struct db_lane_owner *owner,
                       PGresult **ret_result, struct err *err)
{
    DB_PARAMS(params);
    db_params_text(&params, owner->relay);
    db_params_uuid(&params, owner->incarnation.bytes);
    db_params_float8(&params, (double)owner->lease_ms);
    return db_exec(db, statement, &params, ret_result, err);
}

static const struct db_statement REGISTER = {
    .sql = "INSERT INTO onceward.relays (relay, incarnation, until) VALUES ($1, $2, " SQL_UNTIL ")"
           " ON CONFLICT (relay) DO UPDATE SET incarnation = EXCLUDED.incarnation, until = EXCLUDED.until,"
           " started_at = clock_timestamp()",
};

bool db_lease_register(struct db *db, const struct db_lane_owner *owner, struct err *err)
{
    return exec_owner(db, &REGISTER, owner, NULL, err);
}

static const struct db_statement RENEW = {
    .sql = "UPDATE onceward.relays SET until = " SQL_UNTIL " WHERE relay = $1 AND incarnation = $2 RETURNING true",
    .columns = {DB_BOOL},
};

bool db_lease_renew(struct db *db, const struct db_lane_owner *owner, bool *ret_is_held, struct err *err)
{
    DB_RESULT(result);
    if (!exec_owner(db, &RENEW, owner, &result, err)) {
        return false;
    }
    *ret_is_held = db_result_rows(result) == 1;
    return true;
}

/* The third parameter is of no use here, and named so that all three statements take the same. */
static const struct db_statement RESIGN = {
    .sql = "DELETE FROM onceward.relays WHERE relay = $1 AND incarnation = $2 AND $3::float8 IS NOT NULL",
};

bool db_lease_resign(struct db *db, const struct db_lane_owner *owner, struct err *err)
{
    return exec_owner(db, &RESIGN, owner, NULL, err);
}

static const struct db_statement SURVEY = {
    .sql = "WITH live AS (SELECT relay FROM onceward.relays WHERE until > clock_timestamp() AND until <= " SQL_UNTIL
           " AND $2::uuid IS NOT NULL)"
           " SELECT (SELECT count(*)::int4 FROM live),"
           " coalesce(bit_or(1 << lane) FILTER (WHERE owner IS NULL OR owner NOT IN (SELECT relay FROM live)), 0),"
           " coalesce(bit_or(1 << lane) FILTER (WHERE owner = $1), 0) FROM onceward.lanes",
    .columns = {DB_INT4, DB_INT4, DB_INT4},
};

bool db_lease_survey(struct db *db, const struct db_lane_owner *owner, struct db_lease_survey *ret_survey,
                     struct err *err)
{
    DB_RESULT(result);
    if (!exec_owner(db, &SURVEY, owner, &result, err)) {
        return false;
    }
    *ret_survey = (struct db_lease_survey){.live_relay_count = db_get_int4(result, 0, 0),
                                           .free_lanes = (uint32_t)db_get_int4(result, 0, 1),
                                           .own_lanes = (uint32_t)db_get_int4(result, 0, 2)};
    return true;
}
