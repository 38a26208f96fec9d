/* SPDX-License-Identifier: Apache-2.0
 *
 * An event as it travels: a row of the outbox, a record on a topic, a delivery
 * at a consumer. Every pointer is borrowed; whoever hands an event out says
 * from what, and until when.
 */
#ifndef DOMAIN_EVENT_H
#define DOMAIN_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define EVENT_LANE_COUNT 8
#define EVENT_SEQUENCE_DIGITS 20 /* ce_sequence: the outbox id, zero-padded to this width. */
#define EVENT_HEADER_COUNT_MAX 32
#define EVENT_KEY_SIZE_MAX 1024

/* Bytes that somebody else owns. data is NULL for "absent", not for "empty". */
struct bytes {
    const void *data;
    size_t size;
};

/* A header beyond the fixed ones; name is text, value is any bytes. */
struct event_header {
    const char *name;
    struct bytes value;
};

struct event {
    int64_t outbox_id;    /* > 0; the order inside a lane, and ce_sequence. */
    int lane;             /* 0 … EVENT_LANE_COUNT - 1, or -1 where it is not known. */
    const char *event_id; /* ce_id: lower-case UUID text of 36 characters for our own sources. */
    const char *tenant;
    const char *topic;
    const char *key;
    const char *type;
    const char *source;
    const char *subject; /* NULL when absent, as the three below. */
    const char *content_type;
    const char *dataschema;
    const char *traceparent;
    const char *time; /* RFC 3339 in UTC with microseconds: the submit time. */
    const struct event_header *headers;
    size_t header_count;
    struct bytes value; /* Never absent when it is published. */
};

/* Checks limits and form: names, key size, header count, sequence. Not the topic's own size limit.
 * Permanent error with the name of the broken rule as code. */
bool event_check(const struct event *event, struct err *err) MUST_CHECK;

/* A copy in one piece of memory, with all that it points to; free() frees it. NULL without memory. */
struct event *event_copy(const struct event *event);

/* Bytes that Kafka counts against max.message.bytes for this event: key, value and all headers of the
 * wire form, with the record's framing at its greatest. An upper bound, so a fit here is a fit there. */
size_t event_wire_size(const struct event *event);

#endif
