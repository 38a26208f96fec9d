/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes, their status and what a caller should do. The invariant: retry.same_key
 * is true exactly where the same call may succeed later unchanged.
 */
#include "producer_problem.h"

#include <assert.h>
#include <string.h>

#include "http/http_server.h"

#define NONE HTTP_PROBLEM_NO_RETRY

static const struct http_problem problems[] = {
    {"body_invalid", 400, "The body is not what this route takes", false, false, NONE},
    {"query_invalid", 400, "The query is not what this route takes", false, false, NONE},
    {"request_id_invalid", 400, "The request id is no UUID in lower case", false, false, NONE},
    {"idempotency_key_unsupported", 400, "This route does not honour idempotency keys", false, false, NONE},
    {"idempotency_key_invalid", 400, "The idempotency key is not well-formed", false, true, NONE},
    {"idempotency_key_missing", 400, "This route requires an idempotency key", false, true, NONE},
    {"token_missing", 401, "The call needs a bearer token", false, false, NONE},
    {"token_invalid", 401, "The bearer token is not valid", false, false, NONE},
    {"scope_missing", 403, "The bearer token does not allow this call", false, false, NONE},
    {"request_not_found", 404, "There is no such request", false, false, NONE},
    {"document_not_found", 404, "There is no such document", false, false, NONE},
    {"event_not_found", 404, "There is no such event", false, false, NONE},
    {"idempotency_key_not_found", 404, "Nothing stands under this key", false, false, NONE},
    {"idempotency_in_progress", 409, "A call under this key is running", true, false, 1},
    {"idempotency_result_expired", 409, "The answer under this key has expired", false, true, NONE},
    {"request_conflict", 409, "The request exists with another content", false, false, NONE},
    {"request_already_submitted", 409, "The request has been submitted", false, false, NONE},
    {"document_conflict", 409, "The document exists with another content", false, false, NONE},
    {"content_erased", 410, "The content is kept no more", false, false, NONE},
    {"data_too_large", 413, "The data is over the limit", false, false, NONE},
    {"document_too_large", 413, "The document is over the limit", false, false, NONE},
    {"documents_too_many", 413, "The request has as many documents as it may", false, false, NONE},
    {"request_too_large", 413, "The request's documents are over the limit", false, false, NONE},
    {"event_too_large", 413, "The event would be larger than its topic takes", false, false, NONE},
    {"media_type_unsupported", 415, "The body's media type is not taken here", false, false, NONE},
    {"type_unknown", 422, "No route exists for this type", false, false, NONE},
    {"idempotency_key_reused", 422, "The key stands for another call", false, true, NONE},
    {"too_many_waiting", 429, "Too many calls wait", true, false, 1},
    {"keys_too_many", 429, "As many keys of the tenant are kept as it may have", true, false, 60},
    {"rate_limited", 429, "Too many calls in a short time", true, false, 1},
    {"internal_error", 500, "Something went wrong inside", true, false, 5},
    {"database_unavailable", 503, "The database is not available", true, false, 1},
    {"outcome_unknown", 503, "It is not known whether the call took effect", true, false, 1},
    {"request_busy", 503, "The request is being worked on", true, false, 1},
    {"too_busy", 503, "Too much is waiting", true, false, 1},
    {"no_relay", 503, "No relay is alive", true, false, 5},
};

static const struct http_problem *find(const char *code)
{
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        if (strcmp(problems[i].code, code) == 0) {
            return &problems[i];
        }
    }
    return NULL;
}

const struct http_problem *producer_problem(const char *code)
{
    const struct http_problem *problem = find(code);
    assert(problem != NULL);
    return problem;
}

const struct http_problem *producer_problem_of(const struct err *err)
{
    const struct http_problem *problem = find(err->code);
    if (problem != NULL) {
        return problem;
    }
    if (strcmp(err->code, "out_of_memory") == 0) {
        return producer_problem("too_busy");
    }
    return producer_problem(err->kind == ERR_PERMANENT ? "internal_error" : "database_unavailable");
}

void producer_problem_refuse(struct http_exchange *exchange, const struct err *err, const char *accept)
{
    const struct http_problem *problem = producer_problem_of(err);
    const struct http_header header = {"Accept-Post", accept};
    http_respond_problem(exchange, problem, problem->status == 415 && accept != NULL ? &header : NULL, "%s", err->text);
}

void producer_problem_answer(struct http_exchange *exchange, const struct err *err)
{
    const struct http_problem *problem = producer_problem_of(err);
    bool is_ours = find(err->code) != NULL;
    http_respond_problem(exchange, problem, NULL, "%s", is_ours ? err->text : "the log of the service says why");
}
