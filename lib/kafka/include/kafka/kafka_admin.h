/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator asks a broker for: make a topic, say what one is like, tell
 * where its log ends. Every call waits for its answer. For one thread.
 */
#ifndef KAFKA_KAFKA_ADMIN_H
#define KAFKA_KAFKA_ADMIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kafka/kafka_publisher.h"

struct kafka_admin;

struct kafka_admin_options {
    const char *brokers; /* bootstrap.servers. */
    const struct kafka_property *properties;
    size_t property_count;
    int timeout_ms; /* Of every call. */
};

/* A topic as it is wished for. */
struct kafka_admin_topic {
    const char *topic;
    int partition_count; /* 0: the broker's default, as below. */
    int replication_factor;
    const struct kafka_property *settings; /* The topic's own, as max.message.bytes. */
    size_t setting_count;
};

/* A topic as it is. */
struct kafka_admin_facts {
    bool exists;   /* Else the rest is 0. */
    bool is_ready; /* Each partition has a leader. */
    int32_t partition_count;
    int32_t replication_factor;
    int64_t message_bytes_max; /* Its max.message.bytes. */
};

enum kafka_admin_outcome {
    KAFKA_ADMIN_MADE,
    KAFKA_ADMIN_EXISTED, /* Nothing was changed. */
};

/* Makes the handle; does not wait for a broker. NULL and PERMANENT for a property that is unknown or malformed. */
struct kafka_admin *kafka_admin_open(const struct kafka_admin_options *options, struct err *err) MUST_CHECK;

/* PERMANENT where the broker refuses (its reason is in err), TRANSIENT "_TIMED_OUT" and the like where none answers. */
bool kafka_admin_topic_make(struct kafka_admin *admin, const struct kafka_admin_topic *topic,
                            enum kafka_admin_outcome *ret_outcome, struct err *err) MUST_CHECK;

bool kafka_admin_topic_read(struct kafka_admin *admin, const char *topic, struct kafka_admin_facts *ret_facts,
                            struct err *err) MUST_CHECK;

/* The same for a topic that was just made: waits, up to the timeout, until each partition has a leader. */
bool kafka_admin_topic_await(struct kafka_admin *admin, const char *topic, struct kafka_admin_facts *ret_facts,
                             struct err *err) MUST_CHECK;

/* The offset that the partition's next record will get. */
bool kafka_admin_log_end(struct kafka_admin *admin, const char *topic, int32_t partition, int64_t *ret_offset,
                         struct err *err) MUST_CHECK;

/* The cluster's id. */
bool kafka_admin_cluster_id(struct kafka_admin *admin, char ret_id[KAFKA_CLUSTER_ID_SIZE], struct err *err) MUST_CHECK;

/* Accepts NULL, nulls the pointer. */
void kafka_admin_close(struct kafka_admin **adminp);

#endif
