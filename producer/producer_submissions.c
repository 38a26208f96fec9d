/* SPDX-License-Identifier: Apache-2.0
 *
 * Submitting: a request that is there, or all in one call.
 */
#include "http/http_problem.h"
#include "http/http_server.h"
#include "producer.h"
#include "producer_body.h"
#include "producer_problem.h"
#include "producer_routes.h"

void producer_submissions_submit(void *context, struct http_exchange *exchange)
{
    struct producer *producer = context;
    struct uuid id;
    if (!producer_routes_no_query(exchange) || !producer_routes_id(exchange, &id)) {
        return;
    }
    struct producer_item *item = producer_routes_item(producer, exchange, PRODUCER_SUBMIT);
    if (item == NULL) {
        return;
    }
    item->request_id = id;
    producer_body_traceparent(http_exchange_request(exchange), item->traceparent);
    producer_routes_write(producer, item, producer_body_submit, "application/json");
}

void producer_submissions_create(void *context, struct http_exchange *exchange)
{
    struct producer *producer = context;
    if (!producer_routes_no_query(exchange)) {
        return;
    }
    struct producer_item *item = producer_routes_item(producer, exchange, PRODUCER_SUBMISSION);
    if (item == NULL) {
        return;
    }
    producer_body_traceparent(http_exchange_request(exchange), item->traceparent);
    producer_routes_write(producer, item, producer_body_submission, "application/json");
}
