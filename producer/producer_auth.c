/* SPDX-License-Identifier: Apache-2.0
 *
 * From the header to a tenant. Tokens are compared by their SHA-256 alone, so
 * that no comparison tells anything about a token. What is not known is looked
 * up over the readers' connections; the loop never waits. The invariant: a
 * handler of a tenant's route runs with a tenant, or it does not run.
 */
#include "producer_auth.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/text.h"
#include "db/db_token.h"
#include "digest/sha256.h"
#include "domain/scope.h"
#include "http/http_problem.h"
#include "http/http_server.h"
#include "http/metrics.h"
#include "producer.h"
#include "producer_problem.h"
#include "producer_rates.h"
#include "producer_tokens.h"

#define TOKEN_SIZE_MAX 512
#define ANYBODY 0U

/* What a route needs: one of these scopes. */
struct route_scope {
    const char *method;
    const char *pattern;
    unsigned scopes;
};

static const struct route_scope route_scopes[] = {
    {"GET", "/", ANYBODY},
    {"GET", "/livez", ANYBODY},
    {"GET", "/readyz", ANYBODY},
    {"GET", "/metrics", ANYBODY},
    {"GET", "/openapi.yaml", ANYBODY},
    {"POST", "/requests", SCOPE_SUBMIT},
    {"GET", "/requests", SCOPE_READ},
    {"PUT", "/requests/{id}", SCOPE_SUBMIT},
    {"GET", "/requests/{id}", SCOPE_READ},
    {"POST", "/requests/{id}/documents", SCOPE_SUBMIT},
    {"GET", "/requests/{id}/documents/{document_id}", SCOPE_READ},
    {"POST", "/requests/{id}/submit", SCOPE_SUBMIT},
    {"POST", "/submissions", SCOPE_SUBMIT},
    {"GET", "/idempotency-keys/{key}", SCOPE_SUBMIT | SCOPE_READ},
    {"POST", "/events/run", SCOPE_READ | SCOPE_OPERATE},
    {"GET", "/events", SCOPE_READ | SCOPE_OPERATE},
    {"GET", "/events/{event_id}", SCOPE_READ | SCOPE_OPERATE},
    {"GET", "/deliveries", SCOPE_READ | SCOPE_OPERATE},
};

struct producer_auth {
    const struct producer_settings *settings;
    struct producer_tokens *tokens;
    struct producer_rates *unknown_rates; /* By peer. */
    struct producer_rates *tenant_rates;
    struct producer_rates *token_rates;
    struct metric *lookups;
    struct metric *refusals;
    struct metric *limited;
    const struct http_route *routes; /* As they were given. */
    struct http_route *guarded;
    unsigned *scopes; /* By route. */
    size_t count;
};

struct producer_auth *producer_auth_new(const struct producer_settings *settings, struct metrics *metrics,
                                        struct err *err)
{
    struct producer_auth *auth = calloc(1, sizeof *auth);
    if (auth != NULL) {
        auth->settings = settings;
        auth->tokens = producer_tokens_new(settings->token_cache_ms);
        auth->unknown_rates = producer_rates_new(settings->peer_unknown_tokens_per_s);
        auth->tenant_rates = producer_rates_new(settings->tenant_calls_per_s);
        auth->token_rates = producer_rates_new(settings->token_calls_per_s);
        auth->lookups = metrics_counter(metrics, "onceward_producer_token_lookups_total",
                                        "Tokens that the database was asked for", NULL);
        auth->refusals = metrics_counter(metrics, "onceward_producer_calls_refused_total",
                                         "Calls without a valid token or scope", NULL);
        auth->limited = metrics_counter(metrics, "onceward_producer_calls_limited_total",
                                        "Calls over the rate of their token, tenant or peer", NULL);
    }
    if (auth == NULL || auth->tokens == NULL || auth->unknown_rates == NULL || auth->tenant_rates == NULL ||
        auth->token_rates == NULL) {
        producer_auth_free(&auth);
        err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for tokens");
        return NULL;
    }
    return auth;
}

void producer_auth_free(struct producer_auth **authp)
{
    struct producer_auth *auth = *authp;
    *authp = NULL;
    if (auth != NULL) {
        producer_tokens_free(&auth->tokens);
        producer_rates_free(&auth->unknown_rates);
        producer_rates_free(&auth->tenant_rates);
        producer_rates_free(&auth->token_rates);
        free(auth->guarded);
        free(auth->scopes);
        free(auth);
    }
}

const char *producer_auth_tenant(const struct http_exchange *exchange)
{
    const char *tenant = http_exchange_note(exchange);
    assert(tenant != NULL);
    return tenant;
}

/* ---- Refusing ---------------------------------------------------------------------------------------------------- */

enum bearer { BEARER_ABSENT, BEARER_WRONG, BEARER_GIVEN };

/* BEARER_GIVEN: one that nobody knows. */
static void refuse_token(struct producer_auth *auth, struct http_exchange *exchange, enum bearer bearer)
{
    static const char *const details[] = {
        [BEARER_ABSENT] = "send the header Authorization: Bearer TOKEN",
        [BEARER_WRONG] = "a bearer token is asked for: send the header Authorization: Bearer TOKEN, once",
        [BEARER_GIVEN] = "the token is not known, was revoked or has expired",
    };
    bool is_missing = bearer == BEARER_ABSENT;
    const struct http_header header = {"WWW-Authenticate", is_missing
                                                               ? "Bearer realm=\"onceward\""
                                                               : "Bearer realm=\"onceward\", error=\"invalid_token\""};
    metric_add(auth->refusals, 1);
    http_respond_problem(exchange, producer_problem(is_missing ? "token_missing" : "token_invalid"), &header, "%s",
                         details[bearer]);
}

static void refuse_rate(struct producer_auth *auth, struct http_exchange *exchange, const char *whose)
{
    metric_add(auth->limited, 1);
    http_respond_problem(exchange, producer_problem("rate_limited"), NULL, "too many calls %s in a second", whose);
}

static void refuse_scope(struct producer_auth *auth, struct http_exchange *exchange, unsigned wanted)
{
    char names[SCOPE_TEXT_SIZE];
    char value[SCOPE_TEXT_SIZE + 80];
    scope_to_text(wanted, " ", names);
    bool is_whole = text_format(value, sizeof value,
                                "Bearer realm=\"onceward\", error=\"insufficient_scope\", scope=\"%s\"", names);
    assert(is_whole);
    const struct http_header header = {"WWW-Authenticate", value};
    scope_to_text(wanted, "/", names);
    metric_add(auth->refusals, 1);
    http_respond_problem(exchange, producer_problem("scope_missing"), &header, "the call needs the scope %s", names);
}

/* ---- Admitting --------------------------------------------------------------------------------------------------- */

/* Within the rates of its token (hash NULL: it has none) and its tenant, or refused. */
static bool is_within_rates(struct producer_auth *auth, struct http_exchange *exchange, const char *tenant,
                            const unsigned char *hash)
{
    unsigned char tenant_hash[SHA256_SIZE];
    int64_t now_us = clock_monotonic_ms() * 1000;
    if (hash != NULL && !producer_rates_take(auth->token_rates, hash, now_us)) {
        refuse_rate(auth, exchange, "with this token");
        return false;
    }
    if (auth->settings->tenant_calls_per_s == 0) {
        return true;
    }
    sha256(tenant, strlen(tenant), tenant_hash);
    if (!producer_rates_take(auth->tenant_rates, tenant_hash, now_us)) {
        refuse_rate(auth, exchange, "of this tenant");
        return false;
    }
    return true;
}

/* hash: of the token; NULL: there was none. */
static void admit(struct producer *producer, struct http_exchange *exchange, const struct producer_caller *caller,
                  const unsigned char *hash)
{
    struct producer_auth *auth = producer->auth;
    size_t route = http_exchange_route(exchange);
    if (!is_within_rates(auth, exchange, caller->tenant, hash)) {
        return;
    }
    if (!scope_allows(caller->scopes, auth->scopes[route])) {
        refuse_scope(auth, exchange, auth->scopes[route]);
        return;
    }
    http_exchange_set_note(exchange, caller->tenant);
    auth->routes[route].handle(producer, exchange);
}

/* On a reader's thread, over its connection; so is what of the handler comes before it hands the call on. */
static bool look_up(struct producer_read *read, struct db *db, enum producer_read_outcome *ret_outcome, struct err *err)
{
    struct producer *producer = read->context;
    struct db_token_owner owner;
    struct producer_caller caller;
    bool is_found = false;
    const unsigned char *hash = (const unsigned char *)read->text;
    int64_t asked_ms = clock_monotonic_ms();
    *ret_outcome = PRODUCER_READ_DONE;
    metric_add(producer->auth->lookups, 1);
    if (!db_token_find(db, hash, &owner, &is_found, err)) {
        return false;
    }
    if (!producer_tokens_learn(producer->auth->tokens, hash, is_found ? &owner : NULL, asked_ms, &caller)) {
        return err_set(err, ERR_TRANSIENT, "too_busy", "no memory for the call");
    }
    if (is_found) {
        admit(producer, read->exchange, &caller, hash);
    } else {
        const struct http_peer_address *peer = http_exchange_peer(read->exchange);
        (void)producer_rates_take(producer->auth->unknown_rates, peer->bytes, asked_ms * 1000);
        refuse_token(producer->auth, read->exchange, BEARER_GIVEN);
    }
    return true;
}

static void ask_database(struct producer *producer, struct http_exchange *exchange, const unsigned char *hash)
{
    struct producer_read *read = producer_read_new(producer->reader, exchange, look_up);
    if (read == NULL) {
        http_respond_problem(exchange, producer_problem("too_busy"), NULL, "no memory for the call");
        return;
    }
    memcpy(read->text, hash, DB_TOKEN_HASH_SIZE);
    read->context = producer;
    producer_reader_put(producer->reader, read);
}

/* "Bearer" and a token (RFC 6750), once. */
static enum bearer read_bearer(const struct http_request *request, unsigned char ret_hash[SHA256_SIZE])
{
    static const char scheme[] = "Bearer ";
    size_t count = 0;
    const char *value = http_request_header(request, "authorization", &count);
    if (value == NULL) {
        return BEARER_ABSENT;
    }
    if (count != 1 || strncasecmp(value, scheme, sizeof scheme - 1) != 0) {
        return BEARER_WRONG;
    }
    const char *token = value + sizeof scheme - 1;
    token += strspn(token, " ");
    size_t size = strlen(token);
    if (size == 0 || size > TOKEN_SIZE_MAX || strchr(token, ' ') != NULL) {
        return BEARER_WRONG;
    }
    sha256(token, size, ret_hash);
    return BEARER_GIVEN;
}

static bool has_token(const struct http_request *request)
{
    return http_request_header(request, "authorization", NULL) != NULL;
}

typedef enum producer_tokens_answer find_token(struct producer_tokens *tokens, const unsigned char *hash,
                                               int64_t now_ms, struct producer_caller *ret_caller);

/* What can be said at once. ASK: the token has to be looked up. GOOD: *ret_caller may make this call, as far as its
 * token goes; BAD: refused, and answered. */
static enum producer_tokens_answer judge(struct producer *producer, struct http_exchange *exchange, find_token *find,
                                         unsigned char ret_hash[SHA256_SIZE], struct producer_caller *ret_caller)
{
    struct producer_auth *auth = producer->auth;
    enum bearer bearer = read_bearer(http_exchange_request(exchange), ret_hash);
    *ret_caller = (struct producer_caller){.tenant = auth->settings->tenant, .scopes = SCOPE_ADMIN};
    if (bearer == BEARER_ABSENT && auth->settings->is_development) {
        return PRODUCER_TOKENS_GOOD;
    }
    if (bearer != BEARER_GIVEN) {
        refuse_token(auth, exchange, bearer);
        return PRODUCER_TOKENS_BAD;
    }
    int64_t now_ms = clock_monotonic_ms();
    enum producer_tokens_answer answer = find(auth->tokens, ret_hash, now_ms, ret_caller);
    const struct http_peer_address *peer = http_exchange_peer(exchange);
    if (answer == PRODUCER_TOKENS_ASK && !producer_rates_allow(auth->unknown_rates, peer->bytes, now_ms * 1000)) {
        /* One that is still believed is not looked up again just now; a new one has to wait. */
        answer = producer_tokens_glance(auth->tokens, ret_hash, now_ms, ret_caller);
        if (answer == PRODUCER_TOKENS_ASK) {
            refuse_rate(auth, exchange, "with unknown tokens from this address");
            return PRODUCER_TOKENS_BAD;
        }
    }
    if (answer == PRODUCER_TOKENS_BAD) {
        refuse_token(auth, exchange, BEARER_GIVEN);
    }
    return answer;
}

bool producer_auth_wants_body(void *context, struct http_exchange *exchange)
{
    struct producer *producer = context;
    unsigned wanted = producer->auth->scopes[http_exchange_route(exchange)];
    unsigned char hash[SHA256_SIZE];
    struct producer_caller caller;
    if (wanted == ANYBODY) {
        return true;
    }
    enum producer_tokens_answer answer = judge(producer, exchange, producer_tokens_glance, hash, &caller);
    if (answer == PRODUCER_TOKENS_GOOD && !scope_allows(caller.scopes, wanted)) {
        refuse_scope(producer->auth, exchange, wanted);
        return false;
    }
    return answer != PRODUCER_TOKENS_BAD;
}

static void guard(void *context, struct http_exchange *exchange)
{
    struct producer *producer = context;
    unsigned char hash[SHA256_SIZE];
    struct producer_caller caller;
    switch (judge(producer, exchange, producer_tokens_find, hash, &caller)) {
    case PRODUCER_TOKENS_GOOD:
        admit(producer, exchange, &caller, has_token(http_exchange_request(exchange)) ? hash : NULL);
        return;
    case PRODUCER_TOKENS_BAD: return;
    case PRODUCER_TOKENS_ASK: ask_database(producer, exchange, hash); return;
    }
}

/* ---- Routes ------------------------------------------------------------------------------------------------------ */

static unsigned scopes_of(const struct http_route *route)
{
    for (size_t i = 0; i < sizeof route_scopes / sizeof *route_scopes; i++) {
        if (strcmp(route_scopes[i].method, route->method) == 0 &&
            strcmp(route_scopes[i].pattern, route->pattern) == 0) {
            return route_scopes[i].scopes;
        }
    }
    assert(!"a route without a row in the table of scopes");
    return SCOPE_ADMIN;
}

const struct http_route *producer_auth_routes(struct producer_auth *auth, const struct http_route *routes, size_t count)
{
    auth->routes = routes;
    auth->count = count;
    auth->guarded = calloc(count, sizeof *auth->guarded);
    auth->scopes = calloc(count, sizeof *auth->scopes);
    assert(auth->guarded != NULL && auth->scopes != NULL);
    for (size_t i = 0; i < count; i++) {
        auth->guarded[i] = routes[i];
        auth->scopes[i] = scopes_of(&routes[i]);
        if (auth->scopes[i] != ANYBODY) {
            auth->guarded[i].handle = guard;
        }
    }
    return auth->guarded;
}
