/* SPDX-License-Identifier: Apache-2.0
 *
 * The bodies of calls that write. What was accepted keeps the limits, makes an
 * event's value that is JSON with the caller's bytes in it, and means the same
 * when it is written anew in another form.
 *
 * Input: a line with c (create), d (document), s (submission) or e (empty); a line with the content type; one with the
 * query; then the body.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "domain/identity.h"
#include "digest/sha256.h"
#include "domain/submission.h"
#include "fuzz_kit.h"
#include "http/http_server.h"
#include "producer_body.h"
#include "producer_problem.h"
#include "wire/wire_base64.h"
#include "wire/wire_canonical.h"
#include "wire/wire_event.h"
#include "wire/wire_json.h"
#include "wire/wire_write.h"

#define TEXT_SIZE_MAX (1 << 24)
#define DOCUMENT_COUNT_MAX 4

static const struct producer_settings settings = {
    .data_bytes_max = 4096, .document_bytes_max = 2048, .document_count_max = DOCUMENT_COUNT_MAX};

static bool parse_empty(const struct http_request *request, const struct producer_settings *unused,
                        struct producer_item *item, struct err *err)
{
    (void)unused;
    (void)item;
    return producer_body_is_empty(request, err);
}

static const struct call {
    char letter;
    enum producer_item_kind kind;
    producer_item_parse *parse;
} calls[] = {
    {'c', PRODUCER_CREATE, producer_body_create},
    {'d', PRODUCER_DOCUMENT, producer_body_document},
    {'s', PRODUCER_SUBMISSION, producer_body_submission},
    {'e', PRODUCER_SUBMIT, parse_empty},
};

static struct producer_item *parse(const struct call *call, const char *type, const char *query, const char *body,
                                   size_t body_size)
{
    const struct http_header header = {.name = "content-type", .value = type};
    const struct http_request request = {.method = "POST",
                                         .query = query,
                                         .headers = &header,
                                         .header_count = type[0] == '\0' ? 0 : 1,
                                         .body = body,
                                         .body_size = body_size};
    struct err err = ERR_INIT;
    struct producer_item *item = producer_item_new(NULL, call->kind, "tenant");
    assert(item != NULL);
    if (!call->parse(&request, &settings, item, &err)) {
        const struct http_problem *problem = producer_problem_of(&err);
        assert(problem->status >= 400 && problem->status < 500 && strcmp(problem->code, err.code) == 0);
        fuzz_check_refusal(&err);
        producer_item_free(&item);
    }
    return item;
}

static void check_documents(const struct producer_item *item)
{
    assert(item->document_count <= DOCUMENT_COUNT_MAX);
    for (size_t i = 0; i < item->document_count; i++) {
        const struct producer_document *document = &item->documents[i];
        unsigned char hash[DB_SHA256_SIZE];
        assert(identity_document_id_is_valid(document->document_id, strlen(document->document_id)));
        assert(document->name[0] != '\0' && fuzz_is_plain(document->name) && fuzz_is_plain(document->media_type));
        assert(document->media_type[0] != '\0' && document->content.size <= settings.document_bytes_max);
        sha256(document->content.data, document->content.size, hash);
        assert(memcmp(hash, document->sha256, sizeof hash) == 0);
        for (size_t k = 0; k < i; k++) {
            assert(strcmp(item->documents[k].document_id, document->document_id) != 0);
        }
    }
}

/* The event's value holds the caller's bytes as they are. */
static void check_value(const struct producer_item *item)
{
    struct submission_document documents[DOCUMENT_COUNT_MAX];
    for (size_t i = 0; i < item->document_count; i++) {
        const struct producer_document *document = &item->documents[i];
        documents[i] =
            (struct submission_document){document->document_id,           document->name, document->media_type,
                                         (int64_t)document->content.size, "00",           "http://h/"};
    }
    const struct submission submission = {.request_id = "id",
                                          .tenant = item->tenant,
                                          .type = item->type,
                                          .submitted_at = "2026-11-30T00:00:00Z",
                                          .data = item->data,
                                          .documents = documents,
                                          .document_count = item->document_count};
    struct buf value;
    struct wire_value read;
    struct err err = ERR_INIT;
    buf_init(&value, TEXT_SIZE_MAX);
    wire_event_append(&submission, &value);
    bool is_good = wire_json_check(value.data, value.size, &read, &err);
    assert(is_good && read.kind == WIRE_OBJECT);
    struct wire_value data = wire_json_member(&read, "data");
    assert(data.kind == (item->data.data == NULL ? WIRE_NULL : WIRE_OBJECT));
    assert(item->data.data == NULL ||
           (data.size == item->data.size && memcmp(data.text, item->data.data, data.size) == 0));
    struct wire_value type = wire_json_member(&read, "type");
    assert(wire_json_is_text(&type, item->type));
    buf_done(&value);
}

static void write_document(struct wire_writer *writer, const struct producer_document *document, const char *name)
{
    struct buf content;
    buf_init(&content, TEXT_SIZE_MAX);
    wire_base64_encode(document->content.data, document->content.size, &content);
    wire_write_object(writer, name);
    wire_write_text(writer, "content", content.data);
    wire_write_text(writer, "media_type", document->media_type);
    wire_write_text(writer, "name", document->name);
    wire_write_text(writer, "document_id", document->document_id);
    wire_write_object_end(writer);
    buf_done(&content);
}

/* The same call in another spelling: other order of members, data in its canonical form, documents in JSON. */
static void write_again(const struct producer_item *item, struct buf *out)
{
    struct wire_writer writer = wire_write_begin(out);
    if (item->kind == PRODUCER_DOCUMENT) {
        write_document(&writer, &item->documents[0], NULL);
        return;
    }
    struct buf data;
    buf_init(&data, TEXT_SIZE_MAX);
    wire_write_object(&writer, NULL);
    if (item->data.data != NULL) {
        const struct wire_value value = {WIRE_OBJECT, item->data.data, item->data.size};
        wire_canonical_append(&value, &data);
        wire_write_raw(&writer, "data", data.data, data.size);
    }
    wire_write_text(&writer, "type", item->type);
    if (item->kind == PRODUCER_SUBMISSION) {
        char id[UUID_TEXT_SIZE];
        uuid_to_text(&item->request_id, id);
        wire_write_text(&writer, "id", id);
        wire_write_array(&writer, "documents");
        for (size_t i = 0; i < item->document_count; i++) {
            write_document(&writer, &item->documents[i], NULL);
        }
        wire_write_array_end(&writer);
    }
    wire_write_object_end(&writer);
    buf_done(&data);
}

static void check_again(const struct call *call, const struct producer_item *item)
{
    struct buf body;
    buf_init(&body, TEXT_SIZE_MAX);
    write_again(item, &body);
    struct producer_item *again = parse(call, "application/json; charset=utf-8", NULL, body.data, body.size);
    if (again == NULL) { /* The canonical form of numbers is longer; nothing else may be a reason. */
        assert(item->data.data != NULL && body.size > settings.data_bytes_max);
        buf_done(&body);
        return;
    }
    assert(memcmp(item->fingerprint, again->fingerprint, sizeof item->fingerprint) == 0);
    assert(text_is_equal(item->type, again->type) && item->document_count == again->document_count);
    assert(item->kind != PRODUCER_SUBMISSION || uuid_compare(&item->request_id, &again->request_id) == 0);
    for (size_t i = 0; i < item->document_count; i++) {
        const struct producer_document *a = &item->documents[i];
        const struct producer_document *b = &again->documents[i];
        assert(strcmp(a->document_id, b->document_id) == 0 && strcmp(a->name, b->name) == 0);
        assert(strcmp(a->media_type, b->media_type) == 0 && memcmp(a->sha256, b->sha256, sizeof a->sha256) == 0);
    }
    producer_item_free(&again);
    buf_done(&body);
}

static void run(const struct call *call, const char *type, const char *query, const struct fuzz_input *input)
{
    size_t body_size;
    char *body = fuzz_rest(input, &body_size);
    struct producer_item *item = parse(call, type, query, body, body_size);
    if (item != NULL && call->kind != PRODUCER_SUBMIT) {
        check_documents(item);
        if (call->kind != PRODUCER_DOCUMENT) {
            assert(identity_type_is_valid(item->type, strlen(item->type)));
            assert(item->data.size <= settings.data_bytes_max);
            check_value(item);
        }
        check_again(call, item);
    }
    producer_item_free(&item);
    free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = fuzz_input_of(data, size);
    struct buf lines[3];
    for (size_t i = 0; i < 3; i++) {
        buf_init(&lines[i], 8192);
        (void)fuzz_line(&input, &lines[i]);
    }
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (calls[i].letter == lines[0].data[0]) {
            run(&calls[i], lines[1].data, lines[2].size == 0 ? NULL : lines[2].data, &input);
        }
    }
    for (size_t i = 0; i < 3; i++) {
        buf_done(&lines[i]);
    }
    return 0;
}
