/* SPDX-License-Identifier: Apache-2.0
 *
 * What answers look like: the JSON of requests, receipts, events, deliveries.
 */
#ifndef PRODUCER_ANSWER_H
#define PRODUCER_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/uuid.h"
#include "db/db_event_query.h"
#include "db/db_idempotency.h"
#include "db/db_request.h"
#include "wire/wire_write.h"

#define PRODUCER_ANSWER_SIZE_MAX ((size_t)96 * 1024 * 1024)

/* The receipt of a submit. */
void producer_answer_receipt(struct buf *buf, const struct uuid *request_id, const struct uuid *event_id,
                             int64_t submitted_us, bool is_queued);

/* One request as it is, with its data and its documents. */
void producer_answer_request(struct buf *buf, const struct db_request_row *row, const char *public_url);

/* The short form of a page: without data and documents. */
void producer_answer_request_item(struct wire_writer *writer, const struct db_request_row *row);

void producer_answer_event(struct wire_writer *writer, const char *name, const struct db_event_row *row);
void producer_answer_delivery(struct wire_writer *writer, const char *name, const struct db_delivery_row *row);

/* What stands under a key. */
void producer_answer_key(struct buf *buf, const char *key, const struct db_idempotency_row *row);

/* "…/requests/{id}/documents/{document_id}" */
void producer_answer_document_uri(struct buf *buf, const char *public_url, const struct uuid *request_id,
                                  const char *document_id);

void producer_answer_hash(const unsigned char *sha256, char ret_text[2 * DB_SHA256_SIZE + 1]);

#endif
