/* SPDX-License-Identifier: Apache-2.0
 *
 * Table tokens. Each change and its audit row are one statement. The invariant:
 * a hash that is not live at this moment, by the database's clock, is not found.
 */
#include "db/db_token.h"

#include <assert.h>
#include <stdlib.h>

#include "db_private.h"
#include "domain/scope.h"

#define SQL_IS_LIVE "(revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp()))"
#define SQL_TOKEN "token_id::text, tenant, name, scopes, created_at, expires_at, revoked_at, " SQL_IS_LIVE
#define TOKEN_COLUMNS DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT_ARRAY, DB_TIMESTAMPTZ, DB_TIMESTAMPTZ, DB_TIMESTAMPTZ, DB_BOOL

static unsigned get_scopes(const PGresult *result, int row, int column)
{
    struct db_array names = db_get_array(result, row, column, DB_TEXT);
    struct bytes name;
    unsigned scopes = 0;
    while (db_array_next(&names, &name)) {
        scopes |= scope_from_text(name.data, name.size);
    }
    return scopes;
}

static int64_t get_time(const PGresult *result, int row, int column)
{
    return db_is_null(result, row, column) ? 0 : db_get_timestamptz(result, row, column);
}

static void fill_token(const PGresult *result, int row, struct db_token *token)
{
    db_copy_text(result, row, 0, token->token_id, sizeof token->token_id);
    db_copy_text(result, row, 1, token->tenant, sizeof token->tenant);
    db_copy_text(result, row, 2, token->name, sizeof token->name);
    token->scopes = get_scopes(result, row, 3);
    token->created_us = db_get_timestamptz(result, row, 4);
    token->expires_us = get_time(result, row, 5);
    token->revoked_us = get_time(result, row, 6);
    token->is_live = db_get_bool(result, row, 7);
}

/* ---- Find ---- */

static const struct db_statement FIND = {
    .sql = "SELECT tenant, scopes,"
           " coalesce(ceil(extract(epoch FROM expires_at - clock_timestamp()) * 1000)::int8, -1)"
           " FROM onceward.tokens WHERE token_hash = $1 AND " SQL_IS_LIVE,
    .columns = {DB_TEXT, DB_TEXT_ARRAY, DB_INT8},
};

bool db_token_find(struct db *db, const unsigned char hash[DB_TOKEN_HASH_SIZE], struct db_token_owner *ret_owner,
                   bool *ret_found, struct err *err)
{
    DB_PARAMS(params);
    DB_RESULT(result);
    db_params_bytea(&params, (struct bytes){.data = hash, .size = DB_TOKEN_HASH_SIZE});
    if (!db_exec(db, &FIND, &params, &result, err)) {
        return false;
    }
    *ret_found = db_result_rows(result) == 1;
    if (*ret_found) {
        db_copy_text(result, 0, 0, ret_owner->tenant, sizeof ret_owner->tenant);
        ret_owner->scopes = get_scopes(result, 0, 1);
        ret_owner->left_ms = db_get_int8(result, 0, 2);
    }
    return true;
}

/* ---- Create ---- */

/* Rivals for one name come one after another, so that each sees what the one before it left. */
static const struct db_statement LOCK_NAME = {
    .sql = "SELECT FROM pg_advisory_xact_lock(hashtextextended($1 || ' ' || $2, 3))",
};

/* What has expired makes room. A statement of its own, since the next must see it. */
static const struct db_statement END_EXPIRED = {
    .sql = "UPDATE onceward.tokens SET revoked_at = expires_at"
           " WHERE tenant = $1 AND name = $2 AND revoked_at IS NULL AND expires_at <= clock_timestamp()",
};

static const struct db_statement CREATE = {
    .sql =
        "WITH free AS ("
        "   SELECT s.slot FROM (VALUES (1::int2), (2::int2)) AS s (slot) WHERE NOT EXISTS ("
        "     SELECT FROM onceward.tokens t"
        "      WHERE t.tenant = $1 AND t.name = $2 AND t.slot = s.slot AND t.revoked_at IS NULL)"
        "    ORDER BY s.slot LIMIT 1),"
        " added AS ("
        "   INSERT INTO onceward.tokens (tenant, name, slot, token_hash, scopes, expires_at)"
        "   SELECT $1, $2, free.slot, $3, $4, CASE WHEN $5 > 0 THEN clock_timestamp() + make_interval(days => $5) END"
        "     FROM free ON CONFLICT DO NOTHING"
        "   RETURNING token_id, tenant, name, scopes, created_at, expires_at, revoked_at),"
        " audited AS ("
        "   INSERT INTO onceward.audit (action, object, detail)"
        "   SELECT 'token create', token_id::text, jsonb_build_object('tenant', tenant, 'name', name, 'scopes', scopes,"
        "          'expires_at', expires_at) FROM added)"
        " SELECT " SQL_TOKEN " FROM added",
    .columns = {TOKEN_COLUMNS},
};

static void add_scopes(struct db_params *params, unsigned scopes)
{
    db_params_array_open(params, DB_TEXT);
    for (unsigned bit = SCOPE_SUBMIT; bit <= SCOPE_ADMIN; bit <<= 1U) {
        char name[SCOPE_TEXT_SIZE];
        if ((scopes & bit) != 0) {
            scope_to_text(bit, "", name);
            db_params_text(params, name);
        }
    }
    db_params_array_close(params);
}

static bool create(struct db *db, const struct db_token *wanted, const unsigned char *hash, int32_t lifetime_days,
                   PGresult **ret_result, struct err *err)
{
    DB_PARAMS(owner);
    DB_PARAMS(params);
    db_params_text(&owner, wanted->tenant);
    db_params_text(&owner, wanted->name);
    db_params_text(&params, wanted->tenant);
    db_params_text(&params, wanted->name);
    db_params_bytea(&params, (struct bytes){.data = hash, .size = DB_TOKEN_HASH_SIZE});
    add_scopes(&params, wanted->scopes);
    db_params_int4(&params, lifetime_days);
    DB_TX_AUTO struct db_tx *tx = NULL;
    return db_tx_begin(db, &tx, err) && db_exec(db, &LOCK_NAME, &owner, NULL, err) &&
           db_exec(db, &END_EXPIRED, &owner, NULL, err) && db_exec(db, &CREATE, &params, ret_result, err) &&
           db_tx_commit(&tx, err) == DB_TX_COMMITTED;
}

bool db_token_create(struct db *db, const struct db_token *wanted, const unsigned char hash[DB_TOKEN_HASH_SIZE],
                     int32_t lifetime_days, struct db_token *ret_token, enum db_token_outcome *ret_outcome,
                     struct err *err)
{
    assert(wanted->scopes != 0 && lifetime_days >= 0);
    DB_RESULT(result);
    if (!create(db, wanted, hash, lifetime_days, &result, err)) {
        return false;
    }
    *ret_outcome = db_result_rows(result) == 1 ? DB_TOKEN_CREATED : DB_TOKEN_TWO_LIVE;
    if (*ret_outcome == DB_TOKEN_CREATED) {
        fill_token(result, 0, ret_token);
    }
    return true;
}

/* ---- Revoke ---- */

static const struct db_statement REVOKE = {
    .sql = "WITH revoked AS ("
           "   UPDATE onceward.tokens SET revoked_at = clock_timestamp() WHERE token_id = $1 AND revoked_at IS NULL"
           "   RETURNING token_id, tenant, name, scopes, created_at, expires_at, revoked_at),"
           " audited AS ("
           "   INSERT INTO onceward.audit (action, object, detail)"
           "   SELECT 'token revoke', token_id::text, jsonb_build_object('tenant', tenant, 'name', name) FROM revoked)"
           " SELECT " SQL_TOKEN ", true FROM revoked"
           " UNION ALL"
           " SELECT " SQL_TOKEN ", false FROM onceward.tokens"
           " WHERE token_id = $1 AND NOT EXISTS (SELECT FROM revoked)",
    .columns = {TOKEN_COLUMNS, DB_BOOL},
};

bool db_token_revoke(struct db *db, const struct uuid *token_id, struct db_token *ret_token,
                     enum db_token_revocation *ret_outcome, struct err *err)
{
    DB_PARAMS(params);
    DB_RESULT(result);
    db_params_uuid(&params, token_id->bytes);
    if (!db_exec(db, &REVOKE, &params, &result, err)) {
        return false;
    }
    *ret_outcome = DB_TOKEN_UNKNOWN;
    if (db_result_rows(result) == 1) {
        fill_token(result, 0, ret_token);
        *ret_outcome = db_get_bool(result, 0, 8) ? DB_TOKEN_REVOKED : DB_TOKEN_WAS_REVOKED;
    }
    return true;
}

/* ---- List ---- */

static const struct db_statement LIST = {
    .sql = "SELECT " SQL_TOKEN " FROM onceward.tokens WHERE $1::text IS NULL OR tenant = $1"
           " ORDER BY tenant, name, created_at, token_id LIMIT 10000",
    .columns = {TOKEN_COLUMNS},
};

bool db_token_list(struct db *db, const char *tenant, struct db_token **ret_tokens, size_t *ret_count, struct err *err)
{
    DB_PARAMS(params);
    DB_RESULT(result);
    db_params_text(&params, tenant);
    if (!db_exec(db, &LIST, &params, &result, err)) {
        return false;
    }
    struct db_token *tokens = db_rows_new(db_result_rows(result), sizeof *tokens, err);
    if (tokens == NULL) {
        return false;
    }
    for (int row = 0; row < db_result_rows(result); row++) {
        fill_token(result, row, &tokens[row]);
    }
    *ret_tokens = tokens;
    *ret_count = (size_t)db_result_rows(result);
    return true;
}
