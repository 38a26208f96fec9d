/* SPDX-License-Identifier: Apache-2.0
 *
 * What the consumer and the reader share: the handle's properties, its events,
 * messages.
 */
#ifndef KAFKA_FETCH_PRIVATE_H
#define KAFKA_FETCH_PRIVATE_H

#include <librdkafka/rdkafka.h>

#include "kafka/kafka_consumer.h"
#include "kafka/kafka_message.h"
#include "kafka_private.h"

/* How many messages of a handle are out. It must be 0 when the handle is closed. */
struct kafka_message_counter {
    size_t count;
};

/* A consuming handle whose events all come out of *ret_queue. With is_member it is of the group, with its name. */
rd_kafka_t *kafka_fetch_open(const struct kafka_consumer_options *options, bool is_member, rd_kafka_queue_t **ret_queue,
                             struct err *err) MUST_CHECK;

/* At how many bytes and records the queue of a member is full. */
size_t kafka_fetch_queue_size(const struct kafka_consumer_options *options);
size_t kafka_fetch_queue_records(const struct kafka_consumer_options *options);

/* Destroys queue and handle within timeout_ms; false if the library did not come back: both are left to leak. */
bool kafka_fetch_close(rd_kafka_t *handle, rd_kafka_queue_t *queue, int timeout_ms);

/* Turns a fetched event into a message, which owns it. On false the event is still the caller's. */
bool kafka_message_take(rd_kafka_event_t *event, const rd_kafka_message_t *raw, const char *topic,
                        struct kafka_message_counter *counter, struct kafka_message *ret_message,
                        struct err *err) MUST_CHECK;

/* Reads a fatal error of the handle into err. */
bool kafka_fetch_set_fatal(rd_kafka_t *handle, struct err *err);

#define KAFKA_LIST_AUTO __attribute__((cleanup(kafka_list_clear)))
void kafka_list_clear(rd_kafka_topic_partition_list_t **listp);

#endif
