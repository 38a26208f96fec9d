/* SPDX-License-Identifier: Apache-2.0
 *
 * The query of a target, decoded: "%20" and "+" are blanks.
 */
#ifndef HTTP_QUERY_H
#define HTTP_QUERY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define HTTP_QUERY_COUNT_MAX 16
#define HTTP_QUERY_SIZE_MAX 4096

struct http_query_param {
    const char *name;
    const char *value; /* "" where there is no "=". */
};

/* A value that points into itself: do not copy it. */
struct http_query {
    struct http_query_param params[HTTP_QUERY_COUNT_MAX];
    size_t count;
    char text[HTTP_QUERY_SIZE_MAX];
};

/* Permanent error "query_invalid" for a broken escape, bytes that are no UTF-8, control characters, a name that comes
 * twice or is not among `allowed` (ends in NULL; the error names the allowed ones). query may be NULL. */
bool http_query_parse(const char *query, const char *const *allowed, struct http_query *ret_query,
                      struct err *err) MUST_CHECK;

/* NULL when it is absent. */
const char *http_query_value(const struct http_query *query, const char *name);

#endif
