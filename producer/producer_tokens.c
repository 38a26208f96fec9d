/* SPDX-License-Identifier: Apache-2.0
 *
 * Two tables of fixed size, by the first bytes of the hash. The invariant:
 * nothing is believed for longer than the age, nor beyond the token's own end.
 */
#include "producer_tokens.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

#define SET_COUNT 1024
#define WAY_COUNT 4
#define BAD_COUNT 256
#define BAD_AGE_MS 1000 /* At most: a token may be tried a moment before it is made. */
#define TURN_MS 1000    /* Who looks again has so long before another does. */

struct entry {
    unsigned char hash[DB_TOKEN_HASH_SIZE];
    struct producer_caller caller; /* Without a tenant: the place is free. */
    int64_t asked_ms;
    int64_t until_ms;
    int64_t turn_ms; /* When somebody was last sent to look again. */
};

struct bad_entry {
    unsigned char hash[DB_TOKEN_HASH_SIZE];
    int64_t until_ms; /* 0: the place is free. */
};

/* Tenants are never forgotten: there are as many as have had a good token. */
struct tenant {
    struct tenant *next;
    char text[DB_TOKEN_TEXT_SIZE];
};

struct producer_tokens {
    pthread_mutex_t lock;
    int64_t age_ms;
    struct entry entries[SET_COUNT][WAY_COUNT];
    struct bad_entry bad[BAD_COUNT];
    struct tenant *tenants[SET_COUNT];
};

struct producer_tokens *producer_tokens_new(int64_t age_ms)
{
    struct producer_tokens *tokens = calloc(1, sizeof *tokens);
    if (tokens != NULL) {
        tokens->age_ms = age_ms;
        pthread_mutex_init(&tokens->lock, NULL);
    }
    return tokens;
}

void producer_tokens_free(struct producer_tokens **tokensp)
{
    struct producer_tokens *tokens = *tokensp;
    *tokensp = NULL;
    for (size_t i = 0; tokens != NULL && i < SET_COUNT; i++) {
        while (tokens->tenants[i] != NULL) {
            struct tenant *next = tokens->tenants[i]->next;
            free(tokens->tenants[i]);
            tokens->tenants[i] = next;
        }
    }
    if (tokens != NULL) {
        pthread_mutex_destroy(&tokens->lock);
    }
    free(tokens);
}

static size_t number_of(const unsigned char *hash)
{
    return (size_t)hash[0] << 8 | hash[1];
}

static struct entry *find(struct producer_tokens *tokens, const unsigned char *hash)
{
    struct entry *set = tokens->entries[number_of(hash) % SET_COUNT];
    for (size_t i = 0; i < WAY_COUNT; i++) {
        if (set[i].caller.tenant != NULL && memcmp(set[i].hash, hash, DB_TOKEN_HASH_SIZE) == 0) {
            return &set[i];
        }
    }
    return NULL;
}

static struct bad_entry *bad_place(struct producer_tokens *tokens, const unsigned char *hash)
{
    return &tokens->bad[number_of(hash) % BAD_COUNT];
}

static bool is_bad(struct producer_tokens *tokens, const unsigned char *hash, int64_t now_ms)
{
    const struct bad_entry *bad = bad_place(tokens, hash);
    return now_ms < bad->until_ms && memcmp(bad->hash, hash, DB_TOKEN_HASH_SIZE) == 0;
}

static enum producer_tokens_answer answer(struct producer_tokens *tokens, struct entry *entry, int64_t now_ms,
                                          bool takes_turn)
{
    if (now_ms >= entry->until_ms) {
        return PRODUCER_TOKENS_ASK;
    }
    bool is_old = now_ms - entry->asked_ms >= tokens->age_ms / 2;
    if (takes_turn && is_old && now_ms - entry->turn_ms >= TURN_MS) {
        entry->turn_ms = now_ms;
        return PRODUCER_TOKENS_ASK;
    }
    return PRODUCER_TOKENS_GOOD;
}

static enum producer_tokens_answer look(struct producer_tokens *tokens, const unsigned char *hash, int64_t now_ms,
                                        bool takes_turn, struct producer_caller *ret_caller)
{
    enum producer_tokens_answer found = PRODUCER_TOKENS_ASK;
    thread_lock(&tokens->lock);
    struct entry *entry = find(tokens, hash);
    if (entry != NULL) {
        *ret_caller = entry->caller;
        found = answer(tokens, entry, now_ms, takes_turn);
    } else if (is_bad(tokens, hash, now_ms)) {
        found = PRODUCER_TOKENS_BAD;
    }
    thread_unlock(&tokens->lock);
    return found;
}

enum producer_tokens_answer producer_tokens_find(struct producer_tokens *tokens,
                                                 const unsigned char hash[DB_TOKEN_HASH_SIZE], int64_t now_ms,
                                                 struct producer_caller *ret_caller)
{
    return look(tokens, hash, now_ms, true, ret_caller);
}

enum producer_tokens_answer producer_tokens_glance(struct producer_tokens *tokens,
                                                   const unsigned char hash[DB_TOKEN_HASH_SIZE], int64_t now_ms,
                                                   struct producer_caller *ret_caller)
{
    return look(tokens, hash, now_ms, false, ret_caller);
}

/* ---- Learning ---------------------------------------------------------------------------------------------------- */

static const char *keep_tenant(struct producer_tokens *tokens, const char *text)
{
    size_t number = 5381;
    for (const char *c = text; *c != '\0'; c++) {
        number = number * 33 + (unsigned char)*c;
    }
    struct tenant **first = &tokens->tenants[number % SET_COUNT];
    for (struct tenant *tenant = *first; tenant != NULL; tenant = tenant->next) {
        if (strcmp(tenant->text, text) == 0) {
            return tenant->text;
        }
    }
    struct tenant *tenant = calloc(1, sizeof *tenant);
    if (tenant == NULL) {
        return NULL;
    }
    memcpy(tenant->text, text, strlen(text) + 1);
    tenant->next = *first;
    *first = tenant;
    return tenant->text;
}

/* Its own place, a free one, or that of the one that was asked for longest ago. */
static struct entry *choose_place(struct producer_tokens *tokens, const unsigned char *hash)
{
    struct entry *set = tokens->entries[number_of(hash) % SET_COUNT];
    struct entry *chosen = find(tokens, hash);
    for (size_t i = 0; chosen == NULL && i < WAY_COUNT; i++) {
        chosen = set[i].caller.tenant == NULL ? &set[i] : NULL;
    }
    if (chosen == NULL) {
        chosen = &set[0];
        for (size_t i = 1; i < WAY_COUNT; i++) {
            chosen = set[i].asked_ms < chosen->asked_ms ? &set[i] : chosen;
        }
    }
    return chosen;
}

static void learn_good(struct producer_tokens *tokens, const unsigned char *hash, const struct db_token_owner *owner,
                       int64_t asked_ms, const struct producer_caller *caller)
{
    bool ends_before = owner->left_ms >= 0 && owner->left_ms < tokens->age_ms;
    struct entry *entry = choose_place(tokens, hash);
    *entry = (struct entry){.caller = *caller,
                            .asked_ms = asked_ms,
                            .until_ms = asked_ms + (ends_before ? owner->left_ms : tokens->age_ms),
                            .turn_ms = asked_ms};
    memcpy(entry->hash, hash, DB_TOKEN_HASH_SIZE);
}

static void learn_bad(struct producer_tokens *tokens, const unsigned char *hash, int64_t asked_ms)
{
    struct bad_entry *bad = bad_place(tokens, hash);
    struct entry *entry = find(tokens, hash);
    if (entry != NULL) {
        entry->caller.tenant = NULL;
    }
    bad->until_ms = asked_ms + (tokens->age_ms < BAD_AGE_MS ? tokens->age_ms : BAD_AGE_MS);
    memcpy(bad->hash, hash, DB_TOKEN_HASH_SIZE);
}

bool producer_tokens_learn(struct producer_tokens *tokens, const unsigned char hash[DB_TOKEN_HASH_SIZE],
                           const struct db_token_owner *owner, int64_t asked_ms, struct producer_caller *ret_caller)
{
    bool is_good = true;
    thread_lock(&tokens->lock);
    if (owner == NULL) {
        learn_bad(tokens, hash, asked_ms);
    } else {
        const struct producer_caller caller = {.tenant = keep_tenant(tokens, owner->tenant), .scopes = owner->scopes};
        is_good = caller.tenant != NULL;
        if (is_good) {
            *ret_caller = caller;
            learn_good(tokens, hash, owner, asked_ms, &caller);
        }
    }
    thread_unlock(&tokens->lock);
    return is_good;
}
