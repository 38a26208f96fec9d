/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes problem documents. A detail may quote what a caller sent, so nothing
 * in it may break the JSON.
 */
#include "http/http_problem.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/uuid.h"
#include "http/http_server.h"

#define PROBLEM_SIZE_MAX 8192

const struct http_problem http_problem_not_found = {"not_found", 404,   "There is nothing at this path",
                                                    false,       false, HTTP_PROBLEM_NO_RETRY};
const struct http_problem http_problem_method_not_allowed = {
    "method_not_allowed", 405, "This path does not take this method", false, false, HTTP_PROBLEM_NO_RETRY};
const struct http_problem http_problem_request_malformed = {
    "request_malformed", 400, "The request's framing is in doubt", false, false, HTTP_PROBLEM_NO_RETRY};
const struct http_problem http_problem_head_too_large = {
    "head_too_large", 431, "Request line and headers are too large", false, false, HTTP_PROBLEM_NO_RETRY};
const struct http_problem http_problem_target_too_long = {
    "target_too_long", 414, "The request line is too long", false, false, HTTP_PROBLEM_NO_RETRY};
const struct http_problem http_problem_method_unknown = {
    "method_unknown", 501, "No path takes this method", false, false, HTTP_PROBLEM_NO_RETRY};
const struct http_problem http_problem_body_too_large = {
    "body_too_large", 413, "The body is over the limit", false, false, HTTP_PROBLEM_NO_RETRY};
const struct http_problem http_problem_body_not_expected = {
    "body_not_expected", 413, "This route takes no body", false, false, HTTP_PROBLEM_NO_RETRY};
const struct http_problem http_problem_request_timeout = {
    "request_timeout", 408, "The request came too slowly", true, false, 0};
const struct http_problem http_problem_expectation_failed = {
    "expectation_failed", 417, "Only the expectation 100-continue is known", false, false, HTTP_PROBLEM_NO_RETRY};
const struct http_problem http_problem_busy = {"busy", 503, "Too much is in flight", true, false, 1};

void http_problem_write(struct buf *buf, const struct http_problem *problem, const char *instance, const char *detail,
                        const char *members)
{
    buf_format(buf, "{\"type\":\"urn:onceward:problem:%s\",\"title\":\"%s\",\"status\":%d,\"detail\":", problem->code,
               problem->title, problem->status);
    buf_json_string(buf, detail, strlen(detail));
    buf_text(buf, ",\"instance\":");
    buf_json_string(buf, instance, strlen(instance));
    buf_format(buf, ",\"code\":\"%s\",\"retry\":{\"same_key\":%s,\"new_key\":%s,\"after_seconds\":", problem->code,
               problem->retry_same_key ? "true" : "false", problem->retry_new_key ? "true" : "false");
    if (problem->retry_after_s == HTTP_PROBLEM_NO_RETRY) {
        buf_text(buf, "null}");
    } else {
        buf_format(buf, "%d}", problem->retry_after_s);
    }
    buf_text(buf, members == NULL ? "" : members);
    buf_text(buf, "}\n");
}

static void respond(struct http_exchange *exchange, const struct http_problem *problem,
                    const struct http_header *header, const char *detail, const char *members)
{
    struct buf text;
    buf_init(&text, PROBLEM_SIZE_MAX);
    struct uuid id = uuid_v7_new(clock_realtime_ms());
    char instance[sizeof "urn:uuid:" + UUID_TEXT_SIZE] = "urn:uuid:";
    uuid_to_text(&id, instance + strlen(instance));
    http_problem_write(&text, problem, instance, detail, members);

    log_debug("http.problem", LOG_FIELDS(LOG_TEXT("code", problem->code), LOG_TEXT("instance", instance)), "%s",
              detail);

    struct http_response response = {.status = problem->status, .content_type = "application/problem+json"};
    size_t count = 0;
    char seconds[16];
    if (problem->retry_after_s > 0) {
        bool is_whole = text_format(seconds, sizeof seconds, "%d", problem->retry_after_s);
        response.headers[count++] = (struct http_header){"Retry-After", is_whole ? seconds : "1"};
    }
    if (header != NULL) {
        response.headers[count++] = *header;
    }
    response.body = buf_take(&text, &response.body_size);
    buf_done(&text);
    http_respond(exchange, &response);
}

void http_respond_problem(struct http_exchange *exchange, const struct http_problem *problem,
                          const struct http_header *header, const char *format, ...)
{
    char detail[HTTP_PROBLEM_DETAIL_SIZE];
    va_list args;
    va_start(args, format);
    struct buf text;
    buf_init(&text, PROBLEM_SIZE_MAX);
    buf_vformat(&text, format, args);
    va_end(args);
    text_copy(detail, sizeof detail, text.data);
    buf_done(&text);
    respond(exchange, problem, header, detail, NULL);
}

void http_respond_problem_with(struct http_exchange *exchange, const struct http_problem *problem, const char *members,
                               const char *detail)
{
    respond(exchange, problem, NULL, detail, members);
}
