/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking at a topic from outside the group, by a handle that assigns itself
 * one partition at a time. The invariant: at most one reading is under way, and
 * its answer is about the place that was asked for.
 */
#include "kafka/kafka_reader.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "kafka/kafka_error.h"
#include "kafka_fetch_private.h"

#define TOPIC_SIZE 256

struct kafka_reader {
    rd_kafka_t *handle;
    rd_kafka_queue_t *queue;
    bool is_reading;
    char topic[TOPIC_SIZE]; /* Of the reading. Messages borrow it until the next one starts. */
    int32_t partition;
    int64_t offset;
    struct kafka_message_counter messages;
};

struct kafka_reader *kafka_reader_open(const struct kafka_consumer_options *options, struct err *err)
{
    struct kafka_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        err_set(err, ERR_FATAL, "out_of_memory", "reader");
        return NULL;
    }
    reader->handle = kafka_fetch_open(options, false, &reader->queue, err);
    if (reader->handle == NULL) {
        free(reader);
        return NULL;
    }
    return reader;
}

bool kafka_reader_start(struct kafka_reader *reader, struct kafka_place place, struct err *err)
{
    assert(reader != NULL && place.offset >= 0 && reader->messages.count == 0);
    if (!text_copy(reader->topic, sizeof reader->topic, place.topic)) {
        return err_set(err, ERR_PERMANENT, "topic_invalid", "a topic's name of more than %d bytes", TOPIC_SIZE - 1);
    }
    reader->partition = place.partition;
    reader->offset = place.offset;
    KAFKA_LIST_AUTO rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, place.topic, place.partition)->offset = place.offset;
    rd_kafka_resp_err_t code = rd_kafka_assign(reader->handle, list);
    reader->is_reading = code == RD_KAFKA_RESP_ERR_NO_ERROR;
    return reader->is_reading || kafka_error_set(err, code, "read again %s/%d", place.topic, place.partition);
}

static bool is_place(const struct kafka_reader *reader, const char *topic, int32_t partition)
{
    return strcmp(reader->topic, topic) == 0 && reader->partition == partition;
}

/* On true with a MESSAGE the event belongs to the message. */
static bool on_fetch(struct kafka_reader *reader, rd_kafka_event_t *event, enum kafka_reader_outcome *ret_outcome,
                     struct kafka_message *ret_message, struct err *err)
{
    const rd_kafka_message_t *raw = rd_kafka_event_message_next(event);
    if (raw == NULL || raw->err != RD_KAFKA_RESP_ERR_NO_ERROR || raw->offset < reader->offset ||
        !is_place(reader, rd_kafka_topic_name(raw->rkt), raw->partition)) {
        return true;
    }
    if (!kafka_message_take(event, raw, reader->topic, &reader->messages, ret_message, err)) {
        return false;
    }
    *ret_outcome = KAFKA_READER_MESSAGE;
    return true;
}

static void on_error(const struct kafka_reader *reader, rd_kafka_event_t *event, enum kafka_reader_outcome *ret_outcome)
{
    rd_kafka_resp_err_t code = rd_kafka_event_error(event);
    rd_kafka_topic_partition_t *place = rd_kafka_event_topic_partition(event);
    if (place == NULL) {
        return;
    }
    if (is_place(reader, place->topic, place->partition) &&
        (code == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET || code == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE)) {
        *ret_outcome = KAFKA_READER_OUT_OF_RANGE;
    }
    rd_kafka_topic_partition_destroy(place);
}

bool kafka_reader_poll(struct kafka_reader *reader, int timeout_ms, enum kafka_reader_outcome *ret_outcome,
                       struct kafka_message *ret_message, struct err *err)
{
    assert(reader != NULL && reader->is_reading);
    *ret_outcome = KAFKA_READER_PENDING;
    *ret_message = (struct kafka_message){0};
    rd_kafka_event_t *event = rd_kafka_queue_poll(reader->queue, timeout_ms);
    if (event == NULL) {
        return true;
    }
    bool is_good = true;
    if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_FETCH) {
        is_good = on_fetch(reader, event, ret_outcome, ret_message, err);
    } else if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR) {
        on_error(reader, event, ret_outcome);
    }
    if (!is_good || *ret_outcome != KAFKA_READER_MESSAGE) {
        rd_kafka_event_destroy(event);
    }
    if (*ret_outcome != KAFKA_READER_PENDING) {
        kafka_reader_stop(reader);
    }
    return is_good;
}

void kafka_reader_stop(struct kafka_reader *reader)
{
    if (reader->is_reading) {
        reader->is_reading = false;
        rd_kafka_assign(reader->handle, NULL);
    }
}

bool kafka_reader_log_ends(struct kafka_reader *reader, const char *topic, int32_t partition, int timeout_ms,
                           int64_t *ret_first, int64_t *ret_next, struct err *err)
{
    /* librdkafka 2.0.2 waits past timeout_ms for a leader that is away (seen: 10 s), and whoever waits here does not
     * serve the group's callbacks. So first a question that keeps its time. */
    int32_t count = 0;
    if (!kafka_reader_partition_count(reader, topic, timeout_ms, &count, err)) {
        return false;
    }
    rd_kafka_resp_err_t code =
        rd_kafka_query_watermark_offsets(reader->handle, topic, partition, ret_first, ret_next, timeout_ms);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR ||
           err_set(err, ERR_TRANSIENT, kafka_error_name(code), "log ends of %s/%d: %s", topic, partition,
                   rd_kafka_err2str(code));
}

static int32_t partition_count(const struct rd_kafka_metadata *metadata, rd_kafka_resp_err_t *ret_code)
{
    assert(metadata->topic_cnt == 1);
    *ret_code = metadata->topics[0].err;
    return *ret_code == RD_KAFKA_RESP_ERR_NO_ERROR ? metadata->topics[0].partition_cnt : 0;
}

bool kafka_reader_partition_count(struct kafka_reader *reader, const char *topic, int timeout_ms, int32_t *ret_count,
                                  struct err *err)
{
    rd_kafka_topic_t *handle = rd_kafka_topic_new(reader->handle, topic, NULL);
    if (handle == NULL) {
        return kafka_error_set(err, rd_kafka_last_error(), "topic %s", topic);
    }
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_resp_err_t code = rd_kafka_metadata(reader->handle, 0, handle, &metadata, timeout_ms);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        *ret_count = partition_count(metadata, &code);
        rd_kafka_metadata_destroy(metadata);
    }
    rd_kafka_topic_destroy(handle);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
           err_set(err, ERR_TRANSIENT, kafka_error_name(code), "partitions of %s: %s", topic, rd_kafka_err2str(code));
}

bool kafka_reader_offset_at(struct kafka_reader *reader, const char *topic, int32_t partition, int64_t unix_ms,
                            int timeout_ms, int64_t *ret_offset, struct err *err)
{
    KAFKA_LIST_AUTO rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, partition)->offset = unix_ms;
    rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(reader->handle, list, timeout_ms);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        code = list->elems[0].err;
    }
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return err_set(err, ERR_TRANSIENT, kafka_error_name(code), "offset by time of %s/%d: %s", topic, partition,
                       rd_kafka_err2str(code));
    }
    if (list->elems[0].offset >= 0) {
        *ret_offset = list->elems[0].offset;
        return true;
    }
    int64_t first = 0; /* A time after the last record is -1 and no error. */
    return kafka_reader_log_ends(reader, topic, partition, timeout_ms, &first, ret_offset, err);
}

bool kafka_reader_cluster_id(struct kafka_reader *reader, int timeout_ms, char ret_id[KAFKA_CLUSTER_ID_SIZE],
                             struct err *err)
{
    char *id = rd_kafka_clusterid(reader->handle, timeout_ms);
    if (id == NULL) {
        return err_set(err, ERR_TRANSIENT, "cluster_unreachable", "no broker told its cluster id");
    }
    bool has_fitted = text_copy(ret_id, KAFKA_CLUSTER_ID_SIZE, id);
    rd_kafka_mem_free(reader->handle, id);
    return has_fitted || err_set(err, ERR_PERMANENT, "cluster_id", "a cluster id that does not fit");
}

bool kafka_reader_close(struct kafka_reader **readerp, int timeout_ms)
{
    struct kafka_reader *reader = *readerp;
    *readerp = NULL;
    if (reader == NULL) {
        return true;
    }
    assert(reader->messages.count == 0);
    bool is_closed = kafka_fetch_close(reader->handle, reader->queue, timeout_ms < 100 ? 100 : timeout_ms);
    free(reader);
    return is_closed;
}
