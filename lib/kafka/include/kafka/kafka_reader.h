/* SPDX-License-Identifier: Apache-2.0
 *
 * A second handle beside a consumer that looks at a topic without being in the
 * group: reads one record again, and asks for log ends, partitions, offsets by
 * time and the cluster's id. For one thread.
 */
#ifndef KAFKA_KAFKA_READER_H
#define KAFKA_KAFKA_READER_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kafka/kafka_consumer.h"

struct kafka_reader;

enum kafka_reader_outcome {
    KAFKA_READER_PENDING,      /* Nothing yet. */
    KAFKA_READER_MESSAGE,      /* The record at the offset, or, if it is no longer there, the next one. */
    KAFKA_READER_OUT_OF_RANGE, /* The log does not reach to this offset, or begins after it. */
};

/* As kafka_consumer_open(), with the same options. */
struct kafka_reader *kafka_reader_open(const struct kafka_consumer_options *options, struct err *err) MUST_CHECK;

/* Begins to read the record at this place; ends a reading that was under way. Does not wait. */
bool kafka_reader_start(struct kafka_reader *reader, struct kafka_place place, struct err *err) MUST_CHECK;

/* Waits up to timeout_ms for that record. Any answer but PENDING ends the reading. A broker that is away is
 * PENDING for ever: the deadline is the caller's. */
bool kafka_reader_poll(struct kafka_reader *reader, int timeout_ms, enum kafka_reader_outcome *ret_outcome,
                       struct kafka_message *ret_message, struct err *err) MUST_CHECK;

/* Ends the reading. */
void kafka_reader_stop(struct kafka_reader *reader);

/* The questions below wait up to timeout_ms for a broker's answer. TRANSIENT when none came. */

/* Offset of the first record that the log still has, and of the one that comes next. */
bool kafka_reader_log_ends(struct kafka_reader *reader, const char *topic, int32_t partition, int timeout_ms,
                           int64_t *ret_first, int64_t *ret_next, struct err *err) MUST_CHECK;

/* Number of the topic's partitions; 0 if there is no such topic. */
bool kafka_reader_partition_count(struct kafka_reader *reader, const char *topic, int timeout_ms, int32_t *ret_count,
                                  struct err *err) MUST_CHECK;

/* Offset of the first record whose timestamp is at or after unix_ms; that of the log's end if there is none. */
bool kafka_reader_offset_at(struct kafka_reader *reader, const char *topic, int32_t partition, int64_t unix_ms,
                            int timeout_ms, int64_t *ret_offset, struct err *err) MUST_CHECK;

/* The cluster's id. */
bool kafka_reader_cluster_id(struct kafka_reader *reader, int timeout_ms, char ret_id[KAFKA_CLUSTER_ID_SIZE],
                             struct err *err) MUST_CHECK;

/* As kafka_consumer_close(). */
bool kafka_reader_close(struct kafka_reader **readerp, int timeout_ms);

#endif
