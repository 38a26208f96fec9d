/* SPDX-License-Identifier: Apache-2.0
 *
 * The value of the event that a submission becomes. Its members and their
 * order are a promise to subscribers: within a major version only optional
 * ones are added.
 */
#include "wire/wire_event.h"

#include <assert.h>

#include "wire/wire_write.h"

void wire_event_append(const struct submission *submission, struct buf *out)
{
    assert(submission->request_id != NULL && submission->type != NULL && submission->submitted_at != NULL);
    struct wire_writer writer = wire_write_begin(out);
    wire_write_object(&writer, NULL);
    wire_write_text(&writer, "request_id", submission->request_id);
    wire_write_text(&writer, "tenant", submission->tenant);
    wire_write_text(&writer, "type", submission->type);
    wire_write_text(&writer, "submitted_at", submission->submitted_at);
    if (submission->data.data == NULL) {
        wire_write_null(&writer, "data");
    } else {
        wire_write_raw(&writer, "data", submission->data.data, submission->data.size);
    }
    wire_write_array(&writer, "documents");
    for (size_t i = 0; i < submission->document_count; i++) {
        const struct submission_document *document = &submission->documents[i];
        wire_write_object(&writer, NULL);
        wire_write_text(&writer, "id", document->document_id);
        wire_write_text(&writer, "name", document->name);
        wire_write_text(&writer, "media_type", document->media_type);
        wire_write_int(&writer, "size", document->size);
        wire_write_text(&writer, "sha256", document->sha256);
        wire_write_text(&writer, "uri", document->uri);
        wire_write_object_end(&writer);
    }
    wire_write_array_end(&writer);
    wire_write_object_end(&writer);
    assert(writer.depth == 0);
}
