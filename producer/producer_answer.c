/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes answers. data is passed through as the caller wrote it.
 */
#include "producer_answer.h"

#include "base/clock.h"
#include "digest/sha256.h"

_Static_assert(SHA256_SIZE == DB_SHA256_SIZE, "one size of hash");

static void write_uuid(struct wire_writer *writer, const char *name, const struct uuid *uuid)
{
    char text[UUID_TEXT_SIZE];
    uuid_to_text(uuid, text);
    wire_write_text(writer, name, text);
}

static void write_time(struct wire_writer *writer, const char *name, int64_t unix_us)
{
    char text[CLOCK_TEXT_SIZE];
    clock_to_text(unix_us, text);
    wire_write_text(writer, name, text);
}

void producer_answer_hash(const unsigned char *sha256, char ret_text[2 * DB_SHA256_SIZE + 1])
{
    sha256_to_text(sha256, ret_text);
}

void producer_answer_document_uri(struct buf *buf, const char *public_url, const struct uuid *request_id,
                                  const char *document_id)
{
    char text[UUID_TEXT_SIZE];
    uuid_to_text(request_id, text);
    buf_format(buf, "%s/requests/%s/documents/%s", public_url, text, document_id);
}

void producer_answer_receipt(struct buf *buf, const struct uuid *request_id, const struct uuid *event_id,
                             int64_t submitted_us, bool is_queued)
{
    struct wire_writer writer = wire_write_begin(buf);
    wire_write_object(&writer, NULL);
    write_uuid(&writer, "id", request_id);
    wire_write_bool(&writer, "queued", is_queued);
    wire_write_text(&writer, "status", is_queued ? "queued" : "duplicate");
    write_uuid(&writer, "event_id", event_id);
    write_time(&writer, "submitted_at", submitted_us);
    wire_write_object_end(&writer);
    buf_char(buf, '\n');
}

static void write_document(struct wire_writer *writer, const struct db_document_row *document, const char *public_url,
                           const struct uuid *request_id)
{
    char hash[2 * DB_SHA256_SIZE + 1];
    struct buf uri;
    buf_init(&uri, 4096);
    producer_answer_hash(document->sha256, hash);
    producer_answer_document_uri(&uri, public_url, request_id, document->document_id);
    wire_write_object(writer, NULL);
    wire_write_text(writer, "id", document->document_id);
    wire_write_text(writer, "name", document->name);
    wire_write_text(writer, "media_type", document->media_type);
    wire_write_int(writer, "size", document->size);
    wire_write_text(writer, "sha256", hash);
    wire_write_text(writer, "uri", uri.data);
    wire_write_object_end(writer);
    buf_inherit(writer->out, &uri);
    buf_done(&uri);
}

static void write_submission(struct wire_writer *writer, const struct db_request_row *row)
{
    wire_write_text(writer, "status", row->is_submitted ? "submitted" : "open");
    write_time(writer, "created_at", row->created_us);
    if (row->is_submitted) {
        write_uuid(writer, "event_id", &row->event_id);
        write_time(writer, "submitted_at", row->submitted_us);
    }
    if (row->erased_us != 0) {
        write_time(writer, "erased_at", row->erased_us);
    }
}

void producer_answer_request(struct buf *buf, const struct db_request_row *row, const char *public_url)
{
    struct wire_writer writer = wire_write_begin(buf);
    wire_write_object(&writer, NULL);
    write_uuid(&writer, "id", &row->request_id);
    wire_write_text(&writer, "type", row->type);
    write_submission(&writer, row);
    if (row->data.data == NULL) {
        wire_write_null(&writer, "data");
    } else {
        wire_write_raw(&writer, "data", row->data.data, row->data.size);
    }
    wire_write_array(&writer, "documents");
    for (size_t i = 0; i < row->document_count; i++) {
        write_document(&writer, &row->documents[i], public_url, &row->request_id);
    }
    wire_write_array_end(&writer);
    wire_write_object_end(&writer);
    buf_char(buf, '\n');
}

void producer_answer_request_item(struct wire_writer *writer, const struct db_request_row *row)
{
    wire_write_object(writer, NULL);
    write_uuid(writer, "id", &row->request_id);
    wire_write_text(writer, "type", row->type);
    write_submission(writer, row);
    wire_write_int(writer, "document_count", (int64_t)row->document_count);
    wire_write_object_end(writer);
}

/* A reason stands where something failed or waits. */
static void write_reason(struct wire_writer *writer, const char *code, const char *reason)
{
    if (code == NULL) {
        return;
    }
    wire_write_object(writer, "reason");
    wire_write_text(writer, "code", code);
    wire_write_text(writer, "text", reason);
    wire_write_object_end(writer);
}

static void write_place(struct wire_writer *writer, const struct db_event_row *row)
{
    wire_write_object(writer, "published");
    wire_write_text(writer, "topic", row->topic);
    wire_write_int(writer, "partition", row->partition);
    if (row->record_offset < 0) {
        wire_write_null(writer, "offset");
    } else {
        wire_write_int(writer, "offset", row->record_offset);
    }
    write_time(writer, "settled_at", row->settled_us);
    wire_write_object_end(writer);
}

void producer_answer_event(struct wire_writer *writer, const char *name, const struct db_event_row *row)
{
    wire_write_object(writer, name);
    write_uuid(writer, "event_id", &row->event_id);
    wire_write_text(writer, "status", row->status);
    wire_write_text(writer, "topic", row->topic);
    wire_write_text(writer, "key", row->key);
    wire_write_text(writer, "type", row->type);
    write_time(writer, "time", row->time_us);
    wire_write_int(writer, "sequence", row->outbox_id);
    if (row->deferred_state != NULL) {
        wire_write_text(writer, "deferred", row->deferred_state);
    }
    write_reason(writer, row->reason_code, row->reason);
    if (row->has_place) {
        write_place(writer, row);
    }
    wire_write_object_end(writer);
}

void producer_answer_delivery(struct wire_writer *writer, const char *name, const struct db_delivery_row *row)
{
    wire_write_object(writer, name);
    wire_write_text(writer, "consumer", row->consumer);
    wire_write_text(writer, "scope", row->scope);
    wire_write_text(writer, "event_id", row->event_id);
    if (row->source != NULL) {
        wire_write_text(writer, "source", row->source);
    }
    wire_write_text(writer, "status", row->status);
    write_time(writer, "at", row->at_us);
    write_reason(writer, row->reason_code, row->reason);
    wire_write_object_end(writer);
}

void producer_answer_key(struct buf *buf, const char *key, const struct db_idempotency_row *row)
{
    static const char *const states[] = {"", "in_progress", "completed", "expired"};
    struct wire_writer writer = wire_write_begin(buf);
    wire_write_object(&writer, NULL);
    wire_write_text(&writer, "key", key);
    wire_write_text(&writer, "state", states[row->state]);
    if (row->state != DB_IDEMPOTENCY_RUNNING) {
        wire_write_int(&writer, "status", row->status);
        write_time(&writer, "first_seen", row->created_us);
        write_time(&writer, "expires_at", row->expires_us);
        if (row->resource[0] == '\0') {
            wire_write_null(&writer, "resource");
        } else {
            wire_write_text(&writer, "resource", row->resource);
        }
        if (row->has_event_id) {
            write_uuid(&writer, "event_id", &row->event_id);
        } else {
            wire_write_null(&writer, "event_id");
        }
    }
    wire_write_object_end(&writer);
    buf_char(buf, '\n');
}
