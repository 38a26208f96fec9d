/* SPDX-License-Identifier: Apache-2.0
 *
 * From a request's headers and body to an item: every form is checked here,
 * before any thread with a connection sees it.
 */
#ifndef PRODUCER_BODY_H
#define PRODUCER_BODY_H

#include <stdbool.h>

#include "base/err.h"
#include "producer_item.h"
#include "producer_settings.h"

struct http_request;

/* False with permanent "media_type_unsupported" unless the body is JSON in UTF-8, not encoded otherwise. */
bool producer_body_is_json(const struct http_request *request, struct err *err) MUST_CHECK;

/* {"type", "data"?} into the item. Errors are permanent, their codes rows of the table of problems. */
bool producer_body_create(const struct http_request *request, const struct producer_settings *settings,
                          struct producer_item *item, struct err *err) MUST_CHECK;

/* {"id"?, "type", "data"?, "documents"?}; mints an id where there is none. */
bool producer_body_submission(const struct http_request *request, const struct producer_settings *settings,
                              struct producer_item *item, struct err *err) MUST_CHECK;

/* Raw bytes when the query has a name, else {"document_id"?, "name", "media_type"?, "content"}. */
bool producer_body_document(const struct http_request *request, const struct producer_settings *settings,
                            struct producer_item *item, struct err *err) MUST_CHECK;

/* Nothing, or an empty JSON object. */
bool producer_body_submit(const struct http_request *request, const struct producer_settings *settings,
                          struct producer_item *item, struct err *err) MUST_CHECK;

/* The same for a route without an item. */
bool producer_body_is_empty(const struct http_request *request, struct err *err) MUST_CHECK;

/* The traceparent header where it is well-formed, else "". */
void producer_body_traceparent(const struct http_request *request, char ret_text[PRODUCER_TRACEPARENT_SIZE]);

#endif
