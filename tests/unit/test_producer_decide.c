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
    static const struct producer_ground ground = {&settings, "http://here", "/source", 1000};
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

/* ---- under a key ---------------------------------------------------------------------------------------------------
 */

struct key_case {
    const char *name;
    enum producer_item_kind kind;
    int expired_keys;
    struct db_submit_found found;
    enum producer_verdict verdict;
    const char *code_or_text;
};

#define ANSWER .exists = true, .fingerprint = {content_a, DB_SHA256_SIZE}
#define BODY .body = {"{}", 2}

static const struct key_case key_cases[] = {
    {"nothing stands under the key", PRODUCER_SUBMIT, 0, {EXISTS, ROUTED}, PRODUCER_WRITE, "\"queued\":true"},
    {"the key is held", PRODUCER_SUBMIT, 0, {EXISTS, ROUTED, .answer = {.is_busy = true}}, PRODUCER_KEY_BUSY, NULL},
    {"the request is held, the key is not", PRODUCER_SUBMIT, 0, {.is_busy = true}, PRODUCER_BUSY, NULL},
    {"an answer stands, whoever holds the request",
     PRODUCER_SUBMIT,
     0,
     {.is_busy = true, .answer = {ANSWER, BODY}},
     PRODUCER_REPLAY,
     NULL},
    {"an answer stands, the request is gone", PRODUCER_SUBMIT, 0, {.answer = {ANSWER, BODY}}, PRODUCER_REPLAY, NULL},
    {"an answer stands that was too large to read",
     PRODUCER_SUBMIT,
     0,
     {EXISTS, .answer = {ANSWER}},
     PRODUCER_ALONE,
     NULL},
    {"another call's answer stands",
     PRODUCER_SUBMIT,
     0,
     {EXISTS, ROUTED, .answer = {.exists = true, .fingerprint = {content_b, DB_SHA256_SIZE}, BODY}},
     PRODUCER_REUSED,
     NULL},
    {"an expired answer is as none",
     PRODUCER_SUBMIT,
     PRODUCER_EXPIRED_RENEW,
     {EXISTS, ROUTED, .answer = {ANSWER, BODY, .is_expired = true}},
     PRODUCER_WRITE,
     "\"queued\":true"},
    {"an expired answer that somebody holds",
     PRODUCER_SUBMIT,
     PRODUCER_EXPIRED_RENEW,
     {EXISTS, ROUTED, .answer = {ANSWER, BODY, .is_expired = true, .is_busy = true}},
     PRODUCER_KEY_BUSY,
     NULL},
    {"an expired answer is refused where that is set",
     PRODUCER_SUBMIT,
     PRODUCER_EXPIRED_REFUSE,
     {EXISTS, ROUTED, .answer = {ANSWER, BODY, .is_expired = true}},
     PRODUCER_REFUSE,
     "idempotency_result_expired"},
    {"a refusal is not kept", PRODUCER_SUBMIT, 0, {ROUTED}, PRODUCER_REFUSE, "request_not_found"},
    {"a duplicate is kept", PRODUCER_SUBMIT, 0, {EXISTS, ROUTED, SUBMITTED}, PRODUCER_WRITE, "\"duplicate\""},
    {"what changes nothing is kept", PRODUCER_CREATE, 0, {EXISTS, ROUTED}, PRODUCER_WRITE, "\"status\":\"open\""},
};

static void check_answer(const struct producer_decision *decision, const struct producer_item *item)
{
    const struct db_idempotency_write *answer = decision->write.answer;
    assert_ptr_equal(answer, &decision->answer);
    assert_int_equal(answer->status, decision->status);
    assert_ptr_equal(answer->body.data, decision->body.data);
    assert_int_equal(answer->body.size, decision->body.size);
    assert_int_equal(answer->created_us, item->now_us);
    assert_int_equal(answer->expires_us, 1000 + INT64_C(3600) * 1000000);
    assert_string_equal(answer->headers, "Content-Type: application/json\n");
    assert_string_equal(answer->resource, "/requests/00000000-0000-0000-0000-000000000000");
    assert_int_equal(answer->event_id != NULL, producer_item_wants_submit(item));
}

static void test_producer_decide_by_key(void **state)
{
    const struct key_case *row = *state;
    const struct producer_settings settings = {.expired_keys = row->expired_keys, .key_lifetime_s = 3600};
    const struct producer_ground ground = {&settings, "http://here", "/source", 1000};
    struct producer_key key = {.text = "key", .components = "body:00"};
    memcpy(key.fingerprint, content_a, sizeof content_a);
    char type[] = "demo";
    struct producer_item item = {.kind = row->kind,
                                 .tenant = "default",
                                 .key = &key,
                                 .type = row->kind == PRODUCER_CREATE ? type : NULL,
                                 .event_id = {{1}},
                                 .now_us = 7};
    memcpy(item.fingerprint, content_a, sizeof content_a);
    struct producer_decision decision;
    producer_decide(&ground, &item, &row->found, 0, &decision);
    assert_int_equal(decision.verdict, row->verdict);
    if (row->verdict == PRODUCER_REFUSE) {
        assert_string_equal(decision.problem->code, row->code_or_text);
    } else if (row->verdict == PRODUCER_WRITE) {
        assert_non_null(strstr(decision.body.data, row->code_or_text));
        check_answer(&decision, &item);
    }
    producer_decision_done(&decision);
}

int main(void)
{
    return RUN_CASES("producer_decide", test_producer_decide, cases) +
           RUN_CASES("producer_decide_by_key", test_producer_decide_by_key, key_cases);
}
