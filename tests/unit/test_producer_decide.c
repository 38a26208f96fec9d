/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of the submit path as a table: what was found, what was asked, what
 * it comes to. No server is needed for any of them.
 */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "http/http_problem.h"
#include "producer_decide.h"

static const unsigned char content_a[DB_SHA256_SIZE] = {'a'};
static const unsigned char content_b[DB_SHA256_SIZE] = {'b'};
static const struct db_document_row row_a = {"doc", "name", "text/plain", 3, content_a};
static const struct db_document_row row_b = {"doc", "name", "text/plain", 3, content_b};
static const struct db_document_row row_large = {"large", "name", "text/plain", 99, content_b};

#define EXISTS .exists = true, .type = "demo", .fingerprint = {content_a, DB_SHA256_SIZE}, .created_us = 5
#define ROUTED .topic = "t", .event_bytes_max = 10000
#define SUBMITTED .is_submitted = true, .event_id = {{9}}, .submitted_us = 6

struct decide_case {
    const char *name;
    enum producer_item_kind kind;
    bool brings_a_document;
    bool is_in_doubt;
    uint8_t event_id; /* The item's own. */
    int64_t now_us;
    struct db_submit_found found;
    enum producer_verdict verdict;
    int status; /* 0: not looked at. */
    const char *code_or_text;
};

static const struct decide_case cases[] = {
    {"a held request waits", PRODUCER_SUBMIT, false, false, 1, 7, {.is_busy = true}, PRODUCER_BUSY, 0, NULL},
    {"a held id waits", PRODUCER_CREATE, false, false, 1, 7, {.is_busy = true}, PRODUCER_BUSY, 0, NULL},
    {"no request to submit", PRODUCER_SUBMIT, false, false, 1, 7, {ROUTED}, PRODUCER_REFUSE, 404, "request_not_found"},
    {"no request for a document",
     PRODUCER_DOCUMENT,
     true,
     false,
     1,
     7,
     {ROUTED},
     PRODUCER_REFUSE,
     404,
     "request_not_found"},
    {"a new request", PRODUCER_CREATE, false, false, 1, 7, {ROUTED}, PRODUCER_WRITE, 201, "\"status\":\"open\""},
    {"a new request without a route",
     PRODUCER_CREATE,
     false,
     false,
     1,
     7,
     {.topic = NULL},
     PRODUCER_REFUSE,
     422,
     "type_unknown"},
    {"the same request again",
     PRODUCER_CREATE,
     false,
     false,
     1,
     7,
     {EXISTS, ROUTED},
     PRODUCER_TELL,
     200,
     "\"status\":\"open\""},
    {"the same request again, its route gone",
     PRODUCER_CREATE,
     false,
     false,
     1,
     7,
     {EXISTS},
     PRODUCER_TELL,
     200,
     "open"},
    {"the same request after its submit",
     PRODUCER_CREATE,
     false,
     false,
     1,
     7,
     {EXISTS, ROUTED, SUBMITTED},
     PRODUCER_TELL,
     200,
     "\"status\":\"submitted\""},
    {"another content",
     PRODUCER_CREATE,
     false,
     false,
     1,
     7,
     {.exists = true, .type = "demo", .fingerprint = {content_b, DB_SHA256_SIZE}, ROUTED},
     PRODUCER_REFUSE,
     409,
     "request_conflict"},
    {"our own request, after a lost answer",
     PRODUCER_CREATE,
     false,
     true,
     1,
     5,
     {EXISTS, ROUTED},
     PRODUCER_TELL,
     201,
     "open"},
    {"somebody else's request, after a lost answer",
     PRODUCER_CREATE,
     false,
     true,
     1,
     7,
     {EXISTS, ROUTED},
     PRODUCER_TELL,
     200,
     "open"},
    {"a new document", PRODUCER_DOCUMENT, true, false, 1, 7, {EXISTS, ROUTED}, PRODUCER_WRITE, 200, "\"id\":\"doc\""},
    {"the same document",
     PRODUCER_DOCUMENT,
     true,
     false,
     1,
     7,
     {EXISTS, ROUTED, .documents = &row_a, .document_count = 1},
     PRODUCER_TELL,
     200,
     "\"id\":\"doc\""},
    {"another document of that id",
     PRODUCER_DOCUMENT,
     true,
     false,
     1,
     7,
     {EXISTS, ROUTED, .documents = &row_b, .document_count = 1},
     PRODUCER_REFUSE,
     409,
     "document_conflict"},
    {"a document too many",
     PRODUCER_DOCUMENT,
     true,
     false,
     1,
     7,
     {EXISTS, ROUTED,
      .documents = (const struct db_document_row[]){{"x", "n", "a/b", 1, content_b}, {"y", "n", "a/b", 1, content_b}},
      .document_count = 2},
     PRODUCER_REFUSE,
     413,
     "documents_too_many"},
    {"documents too large together",
     PRODUCER_DOCUMENT,
     true,
     false,
     1,
     7,
     {EXISTS, ROUTED, .documents = &row_large, .document_count = 1},
     PRODUCER_REFUSE,
     413,
     "request_too_large"},
    {"a document after the submit",
     PRODUCER_DOCUMENT,
     true,
     false,
     1,
     7,
     {EXISTS, ROUTED, SUBMITTED},
     PRODUCER_REFUSE,
     409,
     "request_already_submitted"},
    {"a submit", PRODUCER_SUBMIT, false, false, 1, 7, {EXISTS, ROUTED}, PRODUCER_WRITE, 200, "\"status\":\"queued\""},
    {"a submit without a route", PRODUCER_SUBMIT, false, false, 1, 7, {EXISTS}, PRODUCER_REFUSE, 422, "type_unknown"},
    {"a submit over the topic's limit",
     PRODUCER_SUBMIT,
     false,
     false,
     1,
     7,
     {EXISTS, .topic = "t", .event_bytes_max = 500},
     PRODUCER_REFUSE,
     413,
     "event_too_large"},
    {"a submit again",
     PRODUCER_SUBMIT,
     false,
     false,
     1,
     7,
     {EXISTS, ROUTED, SUBMITTED},
     PRODUCER_TELL,
     200,
     "\"status\":\"duplicate\""},
    {"a submit again, its route gone",
     PRODUCER_SUBMIT,
     false,
     false,
     1,
     7,
     {EXISTS, SUBMITTED},
     PRODUCER_TELL,
     200,
     "duplicate"},
    {"our own submit, after a lost answer",
     PRODUCER_SUBMIT,
     false,
     true,
     9,
     7,
     {EXISTS, ROUTED, SUBMITTED},
     PRODUCER_TELL,
     200,
     "\"status\":\"queued\""},
    {"somebody else's submit, after a lost answer",
     PRODUCER_SUBMIT,
     false,
     true,
     1,
     7,
     {EXISTS, ROUTED, SUBMITTED},
     PRODUCER_TELL,
     200,
     "\"status\":\"duplicate\""},
    {"all in one", PRODUCER_SUBMISSION, true, false, 1, 7, {ROUTED}, PRODUCER_WRITE, 201, "\"status\":\"queued\""},
    {"all in one again",
     PRODUCER_SUBMISSION,
     true,
     false,
     1,
     7,
     {EXISTS, ROUTED, SUBMITTED, .documents = &row_a, .document_count = 1},
     PRODUCER_TELL,
     200,
     "duplicate"},
    {"all in one again with a document that was not there",
     PRODUCER_SUBMISSION,
     true,
     false,
     1,
     7,
     {EXISTS, ROUTED, SUBMITTED},
     PRODUCER_REFUSE,
     409,
     "request_conflict"},
    {"all in one, after a lost answer",
     PRODUCER_SUBMISSION,
     true,
     true,
     9,
     5,
     {EXISTS, ROUTED, SUBMITTED, .documents = &row_a, .document_count = 1},
     PRODUCER_TELL,
     201,
     "queued"},
};

static void test_producer_decide(void **state)
{
    const struct decide_case *row = *state;
    static const struct producer_settings settings = {.document_count_max = 2, .request_bytes_max = 100};
    static const struct producer_ground ground = {&settings, "http://here", "/source"};
    struct producer_document document = {.document_id = "doc", .name = "name", .media_type = "text/plain"};
    memcpy(document.sha256, content_a, sizeof content_a);
    document.content = (struct bytes){"abc", 3};
    char type[] = "demo";
    bool creates = row->kind == PRODUCER_CREATE || row->kind == PRODUCER_SUBMISSION;
    struct producer_item item = {
        .kind = row->kind,
        .tenant = "default",
        .type = creates ? type : NULL,
        .is_in_doubt = row->is_in_doubt,
        .event_id = {{row->event_id}},
        .now_us = row->now_us,
        .documents = &document,
        .document_count = row->brings_a_document ? 1 : 0,
    };
    memcpy(item.fingerprint, content_a, sizeof content_a);
    struct producer_decision decision;
    producer_decide(&ground, &item, &row->found, 3, &decision);
    assert_int_equal(decision.verdict, row->verdict);
    if (row->verdict == PRODUCER_REFUSE) {
        assert_string_equal(decision.problem->code, row->code_or_text);
        assert_int_equal(decision.problem->status, row->status);
    } else if (row->verdict != PRODUCER_BUSY) {
        assert_non_null(strstr(decision.body.data, row->code_or_text));
        assert_int_equal(decision.status, row->status);
    }
    if (row->verdict == PRODUCER_WRITE) {
        assert_int_equal(decision.write.index, 3);
        assert_int_equal(decision.write.creates, !row->found.exists);
        bool wants_submit = row->kind == PRODUCER_SUBMIT || row->kind == PRODUCER_SUBMISSION;
        assert_int_equal(decision.write.event != NULL, wants_submit);
    }
    producer_decision_done(&decision);
}

int main(void)
{
    return RUN_CASES("producer_decide", test_producer_decide, cases);
}
