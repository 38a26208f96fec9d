/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys are claimed by an advisory lock and read by a later statement, so that
 * whoever got a key after its rival's commit sees the rival's answer. A key
 * that somebody else holds is busy, and nothing waits for it here. Expiry is
 * decided when a row is read, by the database's clock; the reaper only tidies.
 */
#include "db/db_idempotency.h"

#include <assert.h>
#include <string.h>

#include "db_private.h"
#include "db_submit_private.h"

#define KEY_LOCK(tenant, key) "pg_try_advisory_xact_lock(hashtextextended(" tenant " || ' ' || " key ", 2))"

/* The lock of the one that reaps. Another form than a key's lock, so they never meet. */
#define REAPER_LOCK "pg_try_advisory_xact_lock(1869504357, 1)"

const struct db_statement db_idempotency_claim = {
    .sql = "SELECT i.n FROM unnest($1::text[], $2::text[], $3::int4[]) AS i(tenant, key, n) "
           "WHERE " KEY_LOCK("i.tenant", "i.key"),
    .columns = {DB_INT4},
};

/* An expired row is taken over by an update, so it is locked, or passed over where somebody else has it. A valid one is
 * only read: no lock of anybody's keeps a caller from an answer that is there. $4: also large bodies. */
const struct db_statement db_idempotency_look = {
    .sql = "SELECT i.n, k.fingerprint, k.components, k.status, k.headers, "
           "CASE WHEN $4 OR octet_length(k.body) <= 65536 THEN k.body END, k.resource, k.created_at, k.expires_at, "
           "k.is_expired, e.is_locked "
           "FROM unnest($1::text[], $2::text[], $3::int4[]) AS i(tenant, key, n) "
           "CROSS JOIN LATERAL (SELECT k.*, k.expires_at <= clock_timestamp() AS is_expired "
           "FROM onceward.idempotency_keys k WHERE k.tenant = i.tenant AND k.key = i.key OFFSET 0) k "
           "LEFT JOIN LATERAL (SELECT true AS is_locked FROM onceward.idempotency_keys e WHERE k.is_expired "
           "AND e.tenant = i.tenant AND e.key = i.key AND e.expires_at <= clock_timestamp() "
           "FOR NO KEY UPDATE SKIP LOCKED) e ON true",
    .columns = {DB_INT4, DB_BYTEA, DB_TEXT, DB_INT2, DB_TEXT, DB_BYTEA, DB_TEXT, DB_TIMESTAMPTZ, DB_TIMESTAMPTZ,
                DB_BOOL, DB_BOOL},
};
_Static_assert(DB_IDEMPOTENCY_BODY_SIZE == 65536, "the same number stands in the statement");

size_t db_idempotency_add(struct db_params *params, const struct db_submit *submit)
{
    size_t count = 0;
    db_params_array_open(params, DB_TEXT);
    for (size_t i = 0; i < submit->count; i++) {
        if (submit->keys[i].idempotency_key != NULL) {
            db_params_text(params, submit->keys[i].tenant);
            count++;
        }
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_TEXT);
    for (size_t i = 0; i < submit->count; i++) {
        if (submit->keys[i].idempotency_key != NULL) {
            db_params_text(params, submit->keys[i].idempotency_key);
        }
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_INT4);
    for (size_t i = 0; i < submit->count; i++) {
        if (submit->keys[i].idempotency_key != NULL) {
            db_params_int4(params, (int32_t)i);
        }
    }
    db_params_array_close(params);
    return count;
}

static struct db_idempotency_found *answer_of(struct db_submit *submit, const PGresult *result, int row)
{
    int32_t index = db_get_int4(result, row, 0);
    assert(index >= 0 && (size_t)index < submit->count);
    return &submit->found[index].answer;
}

void db_idempotency_read(struct db_submit *submit, const PGresult *claimed, const PGresult *looked)
{
    for (size_t i = 0; i < submit->count; i++) {
        submit->found[i].answer.is_busy = submit->keys[i].idempotency_key != NULL;
    }
    for (int row = 0; row < db_result_rows(claimed); row++) {
        answer_of(submit, claimed, row)->is_busy = false;
    }
    for (int row = 0; row < db_result_rows(looked); row++) {
        struct db_idempotency_found *answer = answer_of(submit, looked, row);
        answer->exists = true;
        answer->fingerprint = db_get_bytes(looked, row, 1);
        answer->components = db_get_text(looked, row, 2);
        answer->status = db_get_int2(looked, row, 3);
        answer->headers = db_get_text(looked, row, 4);
        answer->body = db_get_bytes(looked, row, 5);
        answer->resource = db_get_text_or_null(looked, row, 6);
        answer->created_us = db_get_timestamptz(looked, row, 7);
        answer->expires_us = db_get_timestamptz(looked, row, 8);
        answer->is_expired = db_get_bool(looked, row, 9);
        answer->is_busy = answer->is_expired && (answer->is_busy || db_is_null(looked, row, 10));
    }
}

/* ---- outside a submit -------------------------------------------------------------------------------------------- */

/* Before the look: who holds the key has not committed, or its answer is seen by the later statement. */
static const struct db_statement PROBE = {
    .sql = "SELECT " KEY_LOCK("$1", "$2"),
    .columns = {DB_BOOL},
};

static const struct db_statement GET = {
    .sql = "SELECT status, resource, event_id, created_at, expires_at, expires_at <= clock_timestamp() "
           "FROM onceward.idempotency_keys WHERE tenant = $1 AND key = $2",
    .columns = {DB_INT2, DB_TEXT, DB_UUID, DB_TIMESTAMPTZ, DB_TIMESTAMPTZ, DB_BOOL},
};

static void read_row(const PGresult *result, struct db_idempotency_row *row)
{
    row->state = db_get_bool(result, 0, 5) ? DB_IDEMPOTENCY_EXPIRED : DB_IDEMPOTENCY_DONE;
    row->status = db_get_int2(result, 0, 0);
    db_copy_text(result, 0, 1, row->resource, sizeof row->resource);
    row->has_event_id = !db_is_null(result, 0, 2);
    if (row->has_event_id) {
        memcpy(row->event_id.bytes, db_get_uuid(result, 0, 2), UUID_SIZE);
    }
    row->created_us = db_get_timestamptz(result, 0, 3);
    row->expires_us = db_get_timestamptz(result, 0, 4);
}

bool db_idempotency_get(struct db *db, const char *tenant, const char *key, struct db_idempotency_row *ret_row,
                        struct err *err)
{
    DB_PARAMS(params);
    db_params_text(&params, tenant);
    db_params_text(&params, key);
    struct db_call calls[2] = {{.statement = &PROBE, .params = &params}, {.statement = &GET, .params = &params}};
    if (!db_exec_all(db, calls, 2, err)) {
        return false;
    }
    *ret_row = (struct db_idempotency_row){.state = DB_IDEMPOTENCY_NONE};
    if (db_result_rows(calls[1].result) > 0) {
        read_row(calls[1].result, ret_row);
    }
    bool is_held = !db_get_bool(calls[0].result, 0, 0);
    if (is_held && ret_row->state != DB_IDEMPOTENCY_DONE) {
        ret_row->state = DB_IDEMPOTENCY_RUNNING;
    }
    db_calls_clear(calls, 2);
    return true;
}

static const struct db_statement FIND_FULL = {
    .sql = "SELECT tenant FROM onceward.idempotency_keys GROUP BY tenant HAVING count(*) >= $1",
    .columns = {DB_TEXT},
};

bool db_idempotency_find_full(struct db *db, int64_t count_max, void (*found)(void *context, const char *tenant),
                              void *context, struct err *err)
{
    DB_PARAMS(params);
    DB_RESULT(result);
    db_params_int8(&params, count_max);
    if (!db_exec(db, &FIND_FULL, &params, &result, err)) {
        return false;
    }
    for (int row = 0; row < db_result_rows(result); row++) {
        found(context, db_get_text(result, row, 0));
    }
    return true;
}

/* clock_timestamp() stands in a sub-select, so that it is one value and the index on expires_at serves. */
static const struct db_statement REAP = {
    .sql = "DELETE FROM onceward.idempotency_keys WHERE ctid = ANY (ARRAY(SELECT ctid FROM onceward.idempotency_keys "
           "WHERE expires_at <= (SELECT CASE WHEN " REAPER_LOCK " THEN clock_timestamp() - $1 * interval '1 second' "
           "ELSE '-infinity' END) ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))",
};

bool db_idempotency_reap(struct db *db, int64_t kept_s, int count_max, int64_t *ret_count, struct err *err)
{
    DB_PARAMS(params);
    DB_RESULT(result);
    db_params_int8(&params, kept_s);
    db_params_int8(&params, count_max);
    if (!db_exec(db, &REAP, &params, &result, err)) {
        return false;
    }
    *ret_count = db_result_affected(result);
    return true;
}
