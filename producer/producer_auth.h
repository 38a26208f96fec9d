/* SPDX-License-Identifier: Apache-2.0
 *
 * Who calls. Stands before the handlers: a route that is anybody's affair of a
 * tenant is reached with a token of that tenant and a scope that allows it, or,
 * in development, without one.
 */
#ifndef PRODUCER_AUTH_H
#define PRODUCER_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "producer_settings.h"

struct http_exchange;
struct http_route;
struct metrics;
struct producer_auth;

/* settings and metrics are borrowed. Transient when memory is out. */
struct producer_auth *producer_auth_new(const struct producer_settings *settings, struct metrics *metrics,
                                        struct err *err) MUST_CHECK;
void producer_auth_free(struct producer_auth **authp);

/* The same routes behind the question for a token; borrowed from auth. The handlers' context is the producer. Each
 * route must have its row in the table of scopes (asserted). */
const struct http_route *producer_auth_routes(struct producer_auth *auth, const struct http_route *routes,
                                              size_t count);

/* For the server, before it takes a body: false when the call was refused already, since no token came with it or one
 * that is known not to do. Who is not known yet may send the body. */
bool producer_auth_wants_body(void *context, struct http_exchange *exchange);

/* Whose the call is that a handler was given. Lives as long as auth does. */
const char *producer_auth_tenant(const struct http_exchange *exchange);

#endif
