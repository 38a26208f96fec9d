/* SPDX-License-Identifier: Apache-2.0
 *
 * /requests/{id}/documents: add one, read one's bytes.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "db/db_document.h"
#include "domain/identity.h"
#include "http/http_problem.h"
#include "http/http_server.h"
#include "producer.h"
#include "producer_answer.h"
#include "producer_body.h"
#include "producer_problem.h"
#include "producer_routes.h"

void producer_documents_add(void *context, struct http_exchange *exchange)
{
    struct producer *producer = context;
    struct uuid id;
    if (!producer_routes_id(exchange, &id)) {
        return;
    }
    struct producer_item *item = producer_routes_item(producer, exchange, PRODUCER_DOCUMENT);
    if (item == NULL) {
        return;
    }
    item->request_id = id;
    producer_routes_write(producer, item, producer_body_document, "application/json, */*");
}

/* Whatever the bytes are, a browser must not run them in our name: they are served as an attachment. */
static void answer_document(struct producer_read *read, const struct db_document *document)
{
    char etag[2 * DB_SHA256_SIZE + 3] = "\"";
    producer_answer_hash(document->sha256.data, etag + 1);
    memcpy(etag + 1 + 2 * DB_SHA256_SIZE, "\"", 2);
    struct http_response response = {
        .status = 200,
        .content_type = document->media_type,
        .headers = {{"ETag", etag}, {"Content-Disposition", "attachment"}, {"X-Content-Type-Options", "nosniff"}},
    };
    response.body = malloc(document->content.size + 1);
    if (response.body == NULL) {
        http_respond_problem(read->exchange, producer_problem("too_busy"), NULL, "no memory for the document");
        return;
    }
    memcpy(response.body, document->content.data, document->content.size);
    response.body_size = document->content.size;
    http_respond(read->exchange, &response);
}

static bool run_get(struct producer_read *read, struct db *db, enum producer_read_outcome *ret_outcome, struct err *err)
{
    struct db_document *document = NULL;
    *ret_outcome = PRODUCER_READ_DONE;
    if (!db_document_get(db, read->tenant, &read->id, read->text, &document, err)) {
        return false;
    }
    if (document == NULL) {
        http_respond_problem(read->exchange, producer_problem("document_not_found"), NULL,
                             "the request has no such document, or there is no such request");
    } else if (document->content.data == NULL) {
        http_respond_problem(read->exchange, producer_problem("content_erased"), NULL,
                             "the document's bytes were kept as long as they were to be kept, or erased by a person");
    } else {
        answer_document(read, document);
    }
    db_document_free(&document);
    return true;
}

void producer_documents_get(void *context, struct http_exchange *exchange)
{
    struct producer *producer = context;
    struct uuid id;
    if (!producer_routes_no_query(exchange) || !producer_routes_id(exchange, &id)) {
        return;
    }
    const char *document_id = http_exchange_request(exchange)->params[1];
    if (!identity_document_id_is_valid(document_id, strlen(document_id))) {
        http_respond_problem(exchange, producer_problem("document_not_found"), NULL, "no document has such an id");
        return;
    }
    struct producer_read *read = producer_routes_read(producer, exchange, run_get);
    if (read == NULL) {
        return;
    }
    bool is_whole = text_copy(read->text, sizeof read->text, document_id);
    assert(is_whole); /* A valid id is shorter than that. */
    read->id = id;
    producer_reader_put(producer->reader, read);
}
