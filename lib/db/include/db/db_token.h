/* SPDX-License-Identifier: Apache-2.0
 *
 * Bearer tokens of callers, by their SHA-256. Two of a (tenant, name) may live
 * at once.
 */
#ifndef DB_DB_TOKEN_H
#define DB_DB_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"

struct db;

#define DB_TOKEN_HASH_SIZE 32
#define DB_TOKEN_TEXT_SIZE 132
#define DB_TOKEN_COUNT_MAX 10000 /* Rows that a list gives at most. */

struct db_token {
    char token_id[UUID_TEXT_SIZE];
    char tenant[DB_TOKEN_TEXT_SIZE];
    char name[DB_TOKEN_TEXT_SIZE];
    unsigned scopes; /* Of domain/scope.h. */
    int64_t created_us;
    int64_t expires_us; /* 0: never. */
    int64_t revoked_us; /* 0: not. */
    bool is_live;       /* By the database's clock. */
};

/* Whose a token is. left_ms: how long it still lives, -1 for ever. Found is only what is live. */
struct db_token_owner {
    char tenant[DB_TOKEN_TEXT_SIZE];
    unsigned scopes;
    int64_t left_ms;
};

/* One statement; *ret_found is false for a token that never was, was revoked or has expired. */
bool db_token_find(struct db *db, const unsigned char hash[DB_TOKEN_HASH_SIZE], struct db_token_owner *ret_owner,
                   bool *ret_found, struct err *err) MUST_CHECK;

enum db_token_outcome {
    DB_TOKEN_CREATED,
    DB_TOKEN_TWO_LIVE, /* Two of this name live already; nothing was done. */
};

/* lifetime_days 0: until it is revoked. Permanent 23514 for a tenant or a name that is not allowed. */
bool db_token_create(struct db *db, const struct db_token *wanted, const unsigned char hash[DB_TOKEN_HASH_SIZE],
                     int32_t lifetime_days, struct db_token *ret_token, enum db_token_outcome *ret_outcome,
                     struct err *err) MUST_CHECK;

enum db_token_revocation {
    DB_TOKEN_REVOKED,
    DB_TOKEN_WAS_REVOKED, /* Before: nothing was done. */
    DB_TOKEN_UNKNOWN,
};

bool db_token_revoke(struct db *db, const struct uuid *token_id, struct db_token *ret_token,
                     enum db_token_revocation *ret_outcome, struct err *err) MUST_CHECK;

/* By tenant, name and time; of one tenant if tenant is not NULL. free() *ret_tokens. */
bool db_token_list(struct db *db, const char *tenant, struct db_token **ret_tokens, size_t *ret_count,
                   struct err *err) MUST_CHECK;

#endif
