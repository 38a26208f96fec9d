/* SPDX-License-Identifier: Apache-2.0
 *
 * Every answer that is not a success: application/problem+json (RFC 9457) with
 * a stable code and what the caller should do now.
 */
#ifndef HTTP_PROBLEM_H
#define HTTP_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct http_exchange;
struct http_header;

#define HTTP_PROBLEM_DETAIL_SIZE 640
#define HTTP_PROBLEM_NO_RETRY (-1)

/* A row of a table of problems. */
struct http_problem {
    const char *code; /* snake_case, stable. */
    int status;
    const char *title;
    bool retry_same_key; /* The same call, with the same key, may succeed later. */
    bool retry_new_key;  /* It needs another key. */
    int retry_after_s;   /* HTTP_PROBLEM_NO_RETRY: none is worth while. Also sent as Retry-After. */
};

/* Those that the server itself answers. */
extern const struct http_problem http_problem_not_found;
extern const struct http_problem http_problem_method_not_allowed;
extern const struct http_problem http_problem_request_malformed;
extern const struct http_problem http_problem_head_too_large;
extern const struct http_problem http_problem_target_too_long;
extern const struct http_problem http_problem_method_unknown;
extern const struct http_problem http_problem_body_too_large;
extern const struct http_problem http_problem_body_not_expected;
extern const struct http_problem http_problem_request_timeout;
extern const struct http_problem http_problem_expectation_failed;
extern const struct http_problem http_problem_busy;

/* Answers with a problem. `header` (may be NULL) is one further header, Allow or Accept-Post. */
void http_respond_problem(struct http_exchange *exchange, const struct http_problem *problem,
                          const struct http_header *header, const char *format, ...) PRINTF_LIKE(4, 5);

/* The same with further members of the problem document: JSON, each with a comma before it. */
void http_respond_problem_with(struct http_exchange *exchange, const struct http_problem *problem, const char *members,
                               const char *detail);

/* The body alone. The detail may hold any bytes; what is no UTF-8 or a control character is replaced.
 * members (may be NULL): as above. */
void http_problem_write(struct buf *buf, const struct http_problem *problem, const char *instance, const char *detail,
                        const char *members);

#endif
