/* SPDX-License-Identifier: Apache-2.0
 *
 * A member of a consumer group that keeps its offsets elsewhere. What happens
 * in the group comes out of poll as events; the caller answers them. Nothing is
 * ever reset to an offset that the caller did not name. For one thread.
 */
#ifndef KAFKA_KAFKA_CONSUMER_H
#define KAFKA_KAFKA_CONSUMER_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kafka/kafka_message.h"
#include "kafka/kafka_publisher.h"

struct kafka_consumer;

struct kafka_consumer_options {
    const char *brokers;  /* bootstrap.servers. */
    const char *group;    /* group.id. */
    const char *instance; /* group.instance.id: a restart under this name gets its partitions back. */
    const char *const *topics;
    size_t topic_count;
    size_t memory_size_max; /* Budget for what is fetched ahead, all partitions together. */
    int session_timeout_ms;
    const struct kafka_property *properties;
    size_t property_count;
};

/* A position on a topic. topic is borrowed from the consumer that gave it, or from the caller. */
struct kafka_place {
    const char *topic;
    int32_t partition;
    int64_t offset;
};

/* For what is going to be paused and sought at once. A real offset, never "the end": the library looks a logical one
 * up, and an answer that comes after the seek overrides it, which skips everything up to the end (librdkafka 2.0.2). */
#define KAFKA_OFFSET_UNPLACED 0

enum kafka_consumer_event_kind {
    KAFKA_CONSUMER_NOTHING,
    KAFKA_CONSUMER_MESSAGE,
    KAFKA_CONSUMER_ASSIGNED,     /* places: what to consume. Answer: kafka_consumer_assign(). */
    KAFKA_CONSUMER_REVOKED,      /* Finish what is under way, then kafka_consumer_unassign(). */
    KAFKA_CONSUMER_LOST,         /* Already somebody else's: apply and commit nothing more, then unassign. */
    KAFKA_CONSUMER_OUT_OF_RANGE, /* places[0]: its offset is not in the log. Only another assign fetches it again: a
                                  * seek does not wake it. */
    KAFKA_CONSUMER_TROUBLE,      /* err: worth a log line; the library goes on by itself. */
};

struct kafka_consumer_event {
    enum kafka_consumer_event_kind kind;
    struct kafka_message message;     /* The receiver's, until kafka_message_done(). */
    const struct kafka_place *places; /* Borrowed from the consumer until the next poll. */
    size_t place_count;
    struct err err;
};

/* Makes the handle and subscribes; needs no broker yet. NULL and PERMANENT for a property that is unknown,
 * malformed or fixed by what a consumer guarantees. Everything in options is copied. */
struct kafka_consumer *kafka_consumer_open(const struct kafka_consumer_options *options, struct err *err) MUST_CHECK;

/* Waits up to timeout_ms for one event. False is FATAL: the handle is spent (another process has its name, for
 * one), and must be closed without applying or committing anything more. */
bool kafka_consumer_poll(struct kafka_consumer *consumer, int timeout_ms, struct kafka_consumer_event *ret_event,
                         struct err *err) MUST_CHECK;

/* Fetches from these offsets on. KAFKA_OFFSET_UNPLACED for what is going to be paused and sought at once. Copies.
 * Within one assignment it may be called again; what is paused stays so. */
bool kafka_consumer_assign(struct kafka_consumer *consumer, const struct kafka_place *places, size_t place_count,
                           struct err *err) MUST_CHECK;
bool kafka_consumer_unassign(struct kafka_consumer *consumer, struct err *err) MUST_CHECK;

/* Whether the assignment is known to be lost although its event was not polled yet. */
bool kafka_consumer_is_lost(const struct kafka_consumer *consumer);

/* The next message of the partition is the one at this offset: what was fetched ahead is dropped. Does not wait. */
bool kafka_consumer_seek(struct kafka_consumer *consumer, struct kafka_place place, struct err *err) MUST_CHECK;

/* Stops and starts the fetching of one assigned partition. Repeating either does nothing. */
bool kafka_consumer_pause(struct kafka_consumer *consumer, const char *topic, int32_t partition,
                          struct err *err) MUST_CHECK;
bool kafka_consumer_resume(struct kafka_consumer *consumer, const char *topic, int32_t partition,
                           struct err *err) MUST_CHECK;

/* Tells the group, without waiting for an answer, how far the partitions are: a hint for people's tools, never
 * read back. offset is that of the next record. */
bool kafka_consumer_commit(struct kafka_consumer *consumer, const struct kafka_place *places, size_t place_count,
                           struct err *err) MUST_CHECK;

/* The end of the partition's log as far as fetching has told; -1 if it has not. Does not wait. */
int64_t kafka_consumer_end_known(const struct kafka_consumer *consumer, const char *topic, int32_t partition);

/* Leaves the group (a named member stays in it until its session times out) and frees. Waits up to timeout_ms;
 * false if the library did not come back by then. Accepts NULL, nulls the pointer. No message may be out. */
bool kafka_consumer_close(struct kafka_consumer **consumerp, int timeout_ms);

#endif
