/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of tokens for a bounded time, by their SHA-256. Any thread.
 *
 * A token that is good is kept until its age is over; one that is not is kept
 * apart, so that strangers cannot push good ones out.
 */
#ifndef PRODUCER_TOKENS_H
#define PRODUCER_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

#include "db/db_token.h"

struct producer_tokens;

/* NULL when memory is out. age_ms 0: nothing is kept. */
struct producer_tokens *producer_tokens_new(int64_t age_ms);
void producer_tokens_free(struct producer_tokens **tokensp);

/* Whose a call is. The tenant lives as long as the tokens do. */
struct producer_caller {
    const char *tenant;
    unsigned scopes;
};

enum producer_tokens_answer {
    PRODUCER_TOKENS_GOOD,
    PRODUCER_TOKENS_BAD,
    PRODUCER_TOKENS_ASK, /* The database: not known, known too long, or it is this call's turn to look whether it still
                          * is so (one asks at half of the age, the others go on meanwhile). */
};

enum producer_tokens_answer producer_tokens_find(struct producer_tokens *tokens,
                                                 const unsigned char hash[DB_TOKEN_HASH_SIZE], int64_t now_ms,
                                                 struct producer_caller *ret_caller);

/* The same for a call that will ask later and not now: it is never its turn. */
enum producer_tokens_answer producer_tokens_glance(struct producer_tokens *tokens,
                                                   const unsigned char hash[DB_TOKEN_HASH_SIZE], int64_t now_ms,
                                                   struct producer_caller *ret_caller);

/* What the database said; owner is NULL for a token that is not valid. asked_ms: when the question was sent. False when
 * memory is out. */
bool producer_tokens_learn(struct producer_tokens *tokens, const unsigned char hash[DB_TOKEN_HASH_SIZE],
                           const struct db_token_owner *owner, int64_t asked_ms, struct producer_caller *ret_caller);

#endif
