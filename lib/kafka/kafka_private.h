/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this module share, and what its tests may reach into.
 */
#ifndef KAFKA_PRIVATE_H
#define KAFKA_PRIVATE_H

#include <librdkafka/rdkafka.h>

#include "base/err.h"
#include "domain/publisher.h"
#include "kafka/kafka_publisher.h"

/* Sets one property; PERMANENT with code kafka_property_invalid, naming it, where the library refuses. */
bool kafka_conf_set(rd_kafka_conf_t *conf, const char *name, const char *value, struct err *err) MUST_CHECK;

/* Sets the properties of the settings, except those whose name is in fixed (NULL-terminated): these are
 * PERMANENT, code kafka_property_fixed. */
bool kafka_conf_set_all(rd_kafka_conf_t *conf, const struct kafka_property *properties, size_t property_count,
                        const char *const *fixed, struct err *err) MUST_CHECK;

/* Sends the library's log lines to ours. */
void kafka_log_attach(rd_kafka_conf_t *conf);

#define KAFKA_PUBLISHER_HEADER_COUNT 12 /* Fixed ones, at most. */

/* The headers that an event travels with. The caller's until the library takes them with a message. */
rd_kafka_headers_t *kafka_publisher_headers(const struct event *event);

/* The library's handle, for tests that inject errors into its mock cluster. */
rd_kafka_t *kafka_publisher_handle(struct publisher *publisher);

/* Which topics and partitions can be written to now, kept by a thread of its own so that nobody waits. */
struct kafka_topics;

struct kafka_topics *kafka_topics_new(rd_kafka_t *handle, struct err *err);

/* Ends the thread and frees. Before the handle is destroyed. */
void kafka_topics_free(struct kafka_topics **topicsp);

/* Whether the partition of this key has a leader. Asks in the background for a topic that is new. */
bool kafka_topics_is_available(struct kafka_topics *topics, const char *topic, const char *key, size_t key_size);

/* Asks again soon: an error told that what is known may be old. */
void kafka_topics_refresh(struct kafka_topics *topics);

bool kafka_topics_is_reachable(struct kafka_topics *topics);

#endif
