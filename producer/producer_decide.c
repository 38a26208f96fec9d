/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of the submit path, in the order in which they are checked: is it
 * what stands under the key, is it free, does it exist, is it the same, may documents come, may it be submitted.
 * Touches no connection, so that a table of cases can try every rule.
 */
#include "producer_decide.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "db/db_request.h"
#include "domain/submission.h"
#include "producer_answer.h"
#include "producer_problem.h"
#include "wire/wire_event.h"

struct call {
    const struct producer_ground *ground;
    const struct producer_item *item;
    const struct db_submit_found *found;
    struct producer_decision *decision;
    size_t new_count;   /* Documents to add. */
    size_t total_count; /* Documents as they will be. */
};

static bool refuse(struct call *call, const char *code, const char *format, ...) PRINTF_LIKE(3, 4);

static bool refuse(struct call *call, const char *code, const char *format, ...)
{
    struct producer_decision *decision = call->decision;
    va_list args;
    va_start(args, format);
    text_vformat(decision->detail, sizeof decision->detail, format, args);
    va_end(args);
    decision->verdict = PRODUCER_REFUSE;
    decision->problem = producer_problem(code);
    return false;
}

/* ---- the request itself ------------------------------------------------------------------------------------------ */

static bool is_same_content(const struct producer_item *item, const struct db_submit_found *found)
{
    return found->fingerprint.size == DB_SHA256_SIZE &&
           memcmp(found->fingerprint.data, item->fingerprint, DB_SHA256_SIZE) == 0;
}

static bool check_request(struct call *call)
{
    const struct producer_item *item = call->item;
    const struct db_submit_found *found = call->found;
    if (!found->exists && item->type == NULL) {
        return refuse(call, "request_not_found", "no request has this id");
    }
    if (found->exists && item->type != NULL && !is_same_content(item, found)) {
        return refuse(call, "request_conflict", "the request with this id has another type or other data");
    }
    bool needs_route = !found->exists || (producer_item_wants_submit(item) && !found->is_submitted);
    if (needs_route && found->topic == NULL) {
        return refuse(call, "type_unknown", "no route for type \"%s\"; an operator makes one: onceward route add",
                      found->exists ? found->type : item->type);
    }
    return true;
}

/* ---- documents --------------------------------------------------------------------------------------------------- */

static const struct db_document_row *find_document(const struct db_submit_found *found, const char *document_id)
{
    for (size_t i = 0; i < found->document_count; i++) {
        if (strcmp(found->documents[i].document_id, document_id) == 0) {
            return &found->documents[i];
        }
    }
    return NULL;
}

/* An erased document has no name any more; the rest still tells it from another. */
static bool is_same_document(const struct db_document_row *row, const struct producer_document *document)
{
    return memcmp(row->sha256, document->sha256, DB_SHA256_SIZE) == 0 &&
           (row->name[0] == '\0' || strcmp(row->name, document->name) == 0) &&
           strcmp(row->media_type, document->media_type) == 0;
}

static struct db_document_row row_of(const struct producer_document *document)
{
    return (struct db_document_row){.document_id = document->document_id,
                                    .name = document->name,
                                    .media_type = document->media_type,
                                    .size = (int64_t)document->content.size,
                                    .sha256 = document->sha256};
}

static bool check_document_limits(struct call *call)
{
    const struct producer_settings *settings = call->ground->settings;
    if (call->new_count == 0) {
        return true;
    }
    if (call->total_count > (size_t)settings->document_count_max) {
        return refuse(call, "documents_too_many", "the limit is %lld documents a request",
                      (long long)settings->document_count_max);
    }
    int64_t size = 0;
    for (size_t i = 0; i < call->total_count; i++) {
        size += call->decision->all_documents[i].size;
    }
    if ((uint64_t)size > settings->request_bytes_max) {
        return refuse(call, "request_too_large", "the documents would have %lld bytes, the limit is %zu",
                      (long long)size, settings->request_bytes_max);
    }
    return true;
}

/* Which of the given documents are new. One that is there already must be the same. */
static bool take_documents(struct call *call)
{
    const struct producer_item *item = call->item;
    const struct db_submit_found *found = call->found;
    struct producer_decision *decision = call->decision;
    decision->documents = calloc(item->document_count + 1, sizeof *decision->documents);
    decision->all_documents = calloc(found->document_count + item->document_count + 1, sizeof *decision->all_documents);
    if (decision->documents == NULL || decision->all_documents == NULL) {
        return refuse(call, "too_busy", "no memory for the call");
    }
    if (found->document_count > 0) {
        memcpy(decision->all_documents, found->documents, found->document_count * sizeof *found->documents);
    }
    call->total_count = found->document_count;
    for (size_t i = 0; i < item->document_count; i++) {
        const struct producer_document *document = &item->documents[i];
        const struct db_document_row *row = find_document(found, document->document_id);
        if (row != NULL && !is_same_document(row, document)) {
            return refuse(call, "document_conflict", "document \"%s\" exists with another content, name or media type",
                          document->document_id);
        }
        if (row == NULL) {
            decision->documents[call->new_count++] =
                (struct db_submit_document){.row = row_of(document), .content = document->content};
            decision->all_documents[call->total_count++] = row_of(document);
        }
    }
    return check_document_limits(call);
}

static bool check_documents(struct call *call)
{
    if (call->found->is_submitted && call->item->kind == PRODUCER_DOCUMENT) {
        return refuse(call, "request_already_submitted",
                      "documents cannot be added any more; a new request can carry them");
    }
    if (!take_documents(call)) {
        return false;
    }
    if (call->found->is_submitted && call->new_count > 0) {
        return refuse(call, "request_conflict", "the request with this id was submitted without document \"%s\"",
                      call->decision->documents[0].row.document_id);
    }
    return true;
}

/* ---- the event --------------------------------------------------------------------------------------------------- */

/* False without memory. */
static bool describe_documents(struct call *call, struct submission_document *documents, char (*hashes)[65],
                               struct buf *uris)
{
    for (size_t i = 0; i < call->total_count; i++) {
        const struct db_document_row *row = &call->decision->all_documents[i];
        producer_answer_hash(row->sha256, hashes[i]);
        documents[i] = (struct submission_document){.document_id = row->document_id,
                                                    .name = row->name,
                                                    .media_type = row->media_type,
                                                    .size = row->size,
                                                    .sha256 = hashes[i]};
        producer_answer_document_uri(uris, call->ground->public_url, &call->item->request_id, row->document_id);
        buf_char(uris, '\0');
    }
    if (uris->has_overflowed) {
        return false; /* There is not a text for every document. */
    }
    /* Only now, since the buffer moves while it grows. */
    const char *uri = uris->data;
    for (size_t i = 0; i < call->total_count; i++, uri += strlen(uri) + 1) {
        documents[i].uri = uri;
    }
    return true;
}

static bool write_value(struct call *call)
{
    struct producer_decision *decision = call->decision;
    struct submission_document *documents = calloc(call->total_count + 1, sizeof *documents);
    char(*hashes)[65] = calloc(call->total_count + 1, sizeof *hashes);
    struct buf uris;
    buf_init(&uris, PRODUCER_ANSWER_SIZE_MAX);
    bool is_good = documents != NULL && hashes != NULL && describe_documents(call, documents, hashes, &uris);
    if (is_good) {
        const struct submission submission = {
            .request_id = decision->request_id_text,
            .tenant = call->item->tenant,
            .type = decision->event.type,
            .submitted_at = decision->time_text,
            .data = call->found->exists ? call->found->data : call->item->data,
            .documents = documents,
            .document_count = call->total_count,
        };
        wire_event_append(&submission, &decision->value);
        is_good = !decision->value.has_overflowed;
    }
    buf_done(&uris);
    free(hashes);
    free(documents);
    return is_good;
}

/* Builds the event and checks it against its topic's own limit: what cannot be published is refused here. */
static bool make_event(struct call *call)
{
    const struct producer_item *item = call->item;
    const struct db_submit_found *found = call->found;
    struct producer_decision *decision = call->decision;
    uuid_to_text(&item->event_id, decision->event_id_text);
    clock_to_text(item->now_us, decision->time_text);
    decision->event = (struct event){
        .lane = -1,
        .event_id = decision->event_id_text,
        .tenant = item->tenant,
        .topic = found->topic,
        .key = decision->request_id_text,
        .type = found->exists ? found->type : item->type,
        .source = call->ground->source,
        .subject = decision->request_id_text,
        .content_type = "application/json",
        .dataschema = found->dataschema,
        .traceparent = item->traceparent[0] == '\0' ? NULL : item->traceparent,
        .time = decision->time_text,
    };
    buf_init(&decision->value, PRODUCER_ANSWER_SIZE_MAX);
    if (!write_value(call)) {
        return refuse(call, "too_busy", "no memory for the event");
    }
    decision->event.value = (struct bytes){decision->value.data, decision->value.size};
    struct err err = ERR_INIT;
    if (!event_check(&decision->event, &err)) {
        return refuse(call, "internal_error", "%s", err.text);
    }
    size_t size = event_wire_size(&decision->event);
    if (size > (uint64_t)found->event_bytes_max) {
        return refuse(call, "event_too_large", "the event would take up to %zu bytes, topic \"%s\" takes %lld", size,
                      found->topic, (long long)found->event_bytes_max);
    }
    return true;
}

/* ---- the key ----------------------------------------------------------------------------------------------------- */

/* False when the key alone decides. */
static bool check_key(struct call *call)
{
    const struct producer_key *key = call->item->key;
    const struct db_idempotency_found *answer = &call->found->answer;
    struct producer_decision *decision = call->decision;
    if (key == NULL) {
        return true;
    }
    if (answer->exists && answer->is_expired && call->ground->settings->expired_keys == PRODUCER_EXPIRED_REFUSE) {
        return refuse(call, "idempotency_result_expired", "the key was used before, and its answer is kept no more");
    }
    if (answer->exists && !answer->is_expired) {
        bool is_same = answer->fingerprint.size == DB_SHA256_SIZE &&
                       memcmp(answer->fingerprint.data, key->fingerprint, DB_SHA256_SIZE) == 0;
        decision->verdict = !is_same ? PRODUCER_REUSED : answer->body.data == NULL ? PRODUCER_ALONE : PRODUCER_REPLAY;
        return false;
    }
    if (!answer->exists && key->is_tenant_full) {
        return refuse(call, "keys_too_many", "%lld keys of the tenant are kept; its known ones are answered as ever",
                      (long long)call->ground->settings->tenant_keys_max);
    }
    decision->verdict = answer->is_busy ? PRODUCER_KEY_BUSY : decision->verdict;
    return !answer->is_busy;
}

/* What is kept: only success is, in the transaction of its effect. */
static void fill_answer(struct call *call)
{
    const struct producer_item *item = call->item;
    const struct db_submit_found *found = call->found;
    struct producer_decision *decision = call->decision;
    if (item->key == NULL) {
        return;
    }
    bool is_whole = decision->has_location
                        ? text_format(decision->headers, sizeof decision->headers,
                                      "Content-Type: application/json\nLocation: %s\n", decision->location)
                        : text_copy(decision->headers, sizeof decision->headers, "Content-Type: application/json\n");
    assert(is_whole);
    decision->answer = (struct db_idempotency_write){
        .fingerprint = item->key->fingerprint,
        .components = item->key->components,
        .status = decision->status,
        .headers = decision->headers,
        .body = {decision->body.data, decision->body.size},
        .resource = decision->location,
        .created_us = item->now_us,
        .expires_us = call->ground->clock_us + call->ground->settings->key_lifetime_s * 1000000,
    };
    if (producer_item_wants_submit(item)) {
        decision->answer.event_id = found->is_submitted ? &found->event_id : &item->event_id;
    }
    decision->write.answer = &decision->answer;
    decision->verdict = PRODUCER_WRITE;
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

/* An attempt whose outcome was not known left this call's own marks if it was committed. */
static bool was_created_by_us(const struct call *call)
{
    return call->item->is_in_doubt && call->found->exists && call->found->created_us == call->item->now_us;
}

static bool was_queued_by_us(const struct call *call)
{
    return call->item->is_in_doubt && call->found->is_submitted &&
           uuid_compare(&call->found->event_id, &call->item->event_id) == 0;
}

static void answer_receipt(struct call *call)
{
    const struct producer_item *item = call->item;
    const struct db_submit_found *found = call->found;
    bool is_queued = !found->is_submitted || was_queued_by_us(call);
    call->decision->has_location = item->kind == PRODUCER_SUBMISSION && is_queued;
    call->decision->status = call->decision->has_location ? 201 : 200;
    producer_answer_receipt(&call->decision->body, &item->request_id,
                            found->is_submitted ? &found->event_id : &item->event_id,
                            found->is_submitted ? found->submitted_us : item->now_us, is_queued);
}

static void answer_request(struct call *call)
{
    const struct producer_item *item = call->item;
    const struct db_submit_found *found = call->found;
    const struct db_request_row row = {
        .request_id = item->request_id,
        .type = found->exists ? found->type : item->type,
        .data = found->exists ? found->data : item->data,
        .created_us = found->exists ? found->created_us : item->now_us,
        .is_submitted = found->is_submitted,
        .event_id = found->event_id,
        .submitted_us = found->submitted_us,
        .erased_us = found->erased_us,
        .documents = call->decision->all_documents,
        .document_count = call->total_count,
    };
    bool is_created = item->kind == PRODUCER_CREATE && (!found->exists || was_created_by_us(call));
    call->decision->has_location = is_created;
    call->decision->status = is_created ? 201 : 200;
    producer_answer_request(&call->decision->body, &row, call->ground->public_url);
}

static void fill_write(struct call *call, size_t index, bool queues)
{
    const struct producer_item *item = call->item;
    struct producer_decision *decision = call->decision;
    decision->write = (struct db_submit_write){
        .index = index,
        .creates = !call->found->exists,
        .data = item->data,
        .fingerprint = item->fingerprint,
        .created_us = item->now_us,
        .documents = decision->documents,
        .document_count = call->new_count,
        .event = queues ? &decision->event : NULL,
        .event_id = item->event_id,
        .submitted_us = item->now_us,
    };
    bool writes = decision->write.creates || call->new_count > 0 || queues;
    decision->verdict = writes ? PRODUCER_WRITE : PRODUCER_TELL;
}

void producer_decide(const struct producer_ground *ground, const struct producer_item *item,
                     const struct db_submit_found *found, size_t index, struct producer_decision *ret_decision)
{
    *ret_decision = (struct producer_decision){.verdict = PRODUCER_BUSY};
    buf_init(&ret_decision->body, PRODUCER_ANSWER_SIZE_MAX);
    buf_init(&ret_decision->value, 0);
    struct call call = {.ground = ground, .item = item, .found = found, .decision = ret_decision};
    uuid_to_text(&item->request_id, ret_decision->request_id_text);
    bool is_whole = text_format(ret_decision->location, sizeof ret_decision->location, "/requests/%s",
                                ret_decision->request_id_text);
    assert(is_whole);
    if (!check_key(&call) || found->is_busy) {
        return;
    }
    bool queues = producer_item_wants_submit(item) && !found->is_submitted;
    if (!check_request(&call) || !check_documents(&call) || (queues && !make_event(&call))) {
        return;
    }
    if (producer_item_wants_submit(item)) {
        answer_receipt(&call);
    } else {
        answer_request(&call);
    }
    if (ret_decision->body.has_overflowed) {
        refuse(&call, "too_busy", "no memory for the answer");
        return;
    }
    fill_write(&call, index, queues);
    fill_answer(&call);
}

void producer_decision_done(struct producer_decision *decision)
{
    buf_done(&decision->body);
    buf_done(&decision->value);
    free(decision->documents);
    free(decision->all_documents);
    decision->documents = NULL;
    decision->all_documents = NULL;
}
