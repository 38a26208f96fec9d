/* SPDX-License-Identifier: Apache-2.0
 *
 * A record that was read from a broker. It lives from poll to
 * kafka_message_done(); the record, and every event decoded from it, borrow
 * from it until then. Handles cannot be closed while one is alive.
 */
#ifndef KAFKA_KAFKA_MESSAGE_H
#define KAFKA_KAFKA_MESSAGE_H

#include <stddef.h>

#include "base/err.h"
#include "domain/event.h"
#include "kafka/kafka_record.h"

struct kafka_message_counter;

struct kafka_message {
    struct kafka_record record;
    size_t size; /* Bytes that it keeps in memory, roughly. */
    void *handle;
    struct event_header *headers; /* One block: headers as read, room for the event's, its texts. */
    struct kafka_message_counter *counter;
};

/* kafka_record_decode() into the message's own memory. At most once per message. */
bool kafka_message_decode(struct kafka_message *message, struct event *ret_event, struct err *err) MUST_CHECK;

/* Gives it back and empties the struct; an empty struct is tolerated. */
void kafka_message_done(struct kafka_message *message);

#endif
