/* SPDX-License-Identifier: Apache-2.0
 *
 * The publisher port on a Kafka broker: idempotent, acknowledged by all
 * replicas, without a delivery timeout of its own, keyed as Java's clients do.
 * The functions belong to one thread, except where they say otherwise.
 */
#ifndef KAFKA_KAFKA_PUBLISHER_H
#define KAFKA_KAFKA_PUBLISHER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "domain/publisher.h"

#define KAFKA_CLUSTER_ID_SIZE 64

/* A property of librdkafka as it was given in the settings, without the prefix "kafka.". */
struct kafka_property {
    const char *name;
    const char *value;
};

struct kafka_publisher_options {
    const char *brokers; /* bootstrap.servers. */
    const struct kafka_property *properties;
    size_t property_count;
    size_t outstanding_count_max; /* More than these without a report: PUBLISH_FULL. */
    size_t outstanding_bytes_max; /* The same in bytes of keys and values, but one event always may. 0: no limit. */
    bool is_single;               /* Every record is a batch of its own, so that a refusal is a verdict on it alone. */
};

/* Makes the handle; does not wait for a broker, nor need one. NULL and PERMANENT for a property that is unknown,
 * malformed or fixed by the guarantees that a publisher gives. Everything in options is copied.
 * publish() answers TRANSIENT "topic_unavailable" while the topic is unknown to the cluster or the key's partition
 * has no leader: what is handed to the library cannot be taken back. After purge() the handle only reports and closes.
 */
struct publisher *kafka_publisher_open(const struct kafka_publisher_options *options, struct err *err) MUST_CHECK;

/* Whether the cluster answered the last time it was asked, at most some seconds ago. From any thread. */
bool kafka_publisher_is_reachable(struct publisher *publisher);

/* The cluster's id, once a broker has told it. Waits up to timeout_ms. TRANSIENT when none did. From any thread. */
bool kafka_publisher_cluster_id(struct publisher *publisher, int timeout_ms, char ret_id[KAFKA_CLUSTER_ID_SIZE],
                                struct err *err) MUST_CHECK;

#endif
