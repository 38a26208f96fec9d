/* SPDX-License-Identifier: Apache-2.0
 *
 * A record as it lies on a topic, and the event that it carries in the binary
 * mode of CloudEvents' Kafka binding. Decoding is pure: no broker, no memory of
 * its own.
 */
#ifndef KAFKA_KAFKA_RECORD_H
#define KAFKA_KAFKA_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "domain/event.h"

#define KAFKA_RECORD_ATTRIBUTE_SIZE_MAX 2048

struct kafka_record {
    const char *topic;
    int32_t partition;
    int64_t offset;
    int64_t timestamp_ms; /* -1 where the record has none. */
    struct bytes key;     /* data NULL for null, as in values and headers. */
    struct bytes value;
    const struct event_header *headers; /* As they lie there: order and duplicates kept. */
    size_t header_count;
};

/* Bytes of text that decoding this record needs at most. */
size_t kafka_record_text_size(const struct kafka_record *record);

/* Reads the event. ret_text has room for kafka_record_text_size(record) bytes and ret_headers for header_count
 * headers; the event borrows from both and from the record. Attributes that the record lacks are NULL; outbox_id
 * is 0 where ce_sequence is absent or no number of ours; lane is -1.
 * PERMANENT with the broken rule as code (ce_id_missing, ce_id_duplicate, ce_id_invalid, …, value_null): such a
 * record will never be an event. */
bool kafka_record_decode(const struct kafka_record *record, char *ret_text, struct event_header *ret_headers,
                         struct event *ret_event, struct err *err) MUST_CHECK;

#endif
