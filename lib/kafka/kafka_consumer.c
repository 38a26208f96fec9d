/* SPDX-License-Identifier: Apache-2.0
 *
 * The group member on librdkafka's event queue: one event at a time, never the
 * batch calls, which skip offsets around pause, seek and rebalance. The
 * invariant: a partition that is not paused is never resumed, since the library
 * would rewind it, and no pause outlives its assignment.
 */
#include "kafka/kafka_consumer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kafka/kafka_error.h"
#include "kafka_fetch_private.h"
#include "kafka_waker_private.h"

#define CLOSE_POLL_MS 50

struct kafka_consumer {
    rd_kafka_t *handle;
    rd_kafka_queue_t *queue;
    struct kafka_waker *waker; /* NULL where the library needs none. */
    char **topics;
    size_t topic_count;
    struct kafka_place *places; /* Of the last event. */
    size_t place_capacity;
    rd_kafka_topic_partition_list_t *paused;
    struct kafka_message_counter messages;
};

static const char *own_topic(const struct kafka_consumer *consumer, const char *topic)
{
    for (size_t i = 0; i < consumer->topic_count; i++) {
        if (strcmp(consumer->topics[i], topic) == 0) {
            return consumer->topics[i];
        }
    }
    return NULL;
}

static rd_kafka_topic_partition_list_t *list_of(const struct kafka_place *places, size_t count)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)count);
    for (size_t i = 0; i < count; i++) {
        rd_kafka_topic_partition_list_add(list, places[i].topic, places[i].partition)->offset = places[i].offset;
    }
    return list;
}

/* The first per-partition error of a call; a seek that is under way is none. */
static bool check_list(const rd_kafka_topic_partition_list_t *list, const char *what, struct err *err)
{
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *place = &list->elems[i];
        if (place->err != RD_KAFKA_RESP_ERR_NO_ERROR && place->err != RD_KAFKA_RESP_ERR__IN_PROGRESS) {
            return kafka_error_set(err, place->err, "%s %s/%d", what, place->topic, place->partition);
        }
    }
    return true;
}

static bool take_error(rd_kafka_error_t *error, const char *what, struct err *err)
{
    if (error == NULL) {
        return true;
    }
    kafka_error_set(err, rd_kafka_error_code(error), "%s", what);
    rd_kafka_error_destroy(error);
    return false;
}

static bool subscribe(struct kafka_consumer *consumer, struct err *err)
{
    KAFKA_LIST_AUTO rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new((int)consumer->topic_count);
    for (size_t i = 0; i < consumer->topic_count; i++) {
        rd_kafka_topic_partition_list_add(list, consumer->topics[i], RD_KAFKA_PARTITION_UA);
    }
    rd_kafka_resp_err_t code = rd_kafka_subscribe(consumer->handle, list);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR || kafka_error_set(err, code, "subscribe");
}

static bool copy_topics(struct kafka_consumer *consumer, const struct kafka_consumer_options *options, struct err *err)
{
    consumer->topics = calloc(options->topic_count, sizeof *consumer->topics);
    for (size_t i = 0; consumer->topics != NULL && i < options->topic_count; i++) {
        consumer->topics[i] = strdup(options->topics[i]);
        if (consumer->topics[i] == NULL) {
            break;
        }
        consumer->topic_count++;
    }
    return consumer->topic_count == options->topic_count ||
           err_set(err, ERR_FATAL, "out_of_memory", "%zu topics", options->topic_count);
}

static bool start_waker(struct kafka_consumer *consumer, const struct kafka_consumer_options *options, struct err *err)
{
    if (!kafka_waker_is_needed()) {
        return true;
    }
    consumer->waker = kafka_waker_new(consumer->handle, consumer->queue, kafka_fetch_queue_records(options),
                                      kafka_fetch_queue_size(options), err);
    return consumer->waker != NULL;
}

struct kafka_consumer *kafka_consumer_open(const struct kafka_consumer_options *options, struct err *err)
{
    assert(options != NULL && options->topic_count > 0 && options->instance != NULL && options->memory_size_max > 0);
    struct kafka_consumer *consumer = calloc(1, sizeof *consumer);
    if (consumer == NULL) {
        err_set(err, ERR_FATAL, "out_of_memory", "consumer");
        return NULL;
    }
    consumer->paused = rd_kafka_topic_partition_list_new(0);
    if (copy_topics(consumer, options, err)) {
        consumer->handle = kafka_fetch_open(options, true, &consumer->queue, err);
    }
    if (consumer->handle == NULL || !start_waker(consumer, options, err) || !subscribe(consumer, err)) {
        kafka_consumer_close(&consumer, 0);
        return NULL;
    }
    return consumer;
}

static bool reserve_places(struct kafka_consumer *consumer, size_t count, struct err *err)
{
    if (count <= consumer->place_capacity) {
        return true;
    }
    struct kafka_place *places = reallocarray(consumer->places, count, sizeof *places);
    if (places == NULL) {
        return err_set(err, ERR_FATAL, "out_of_memory", "%zu partitions", count);
    }
    consumer->places = places;
    consumer->place_capacity = count;
    return true;
}

static bool on_rebalance(struct kafka_consumer *consumer, rd_kafka_event_t *event,
                         struct kafka_consumer_event *ret_event, struct err *err)
{
    const rd_kafka_topic_partition_list_t *list = rd_kafka_event_topic_partition_list(event);
    if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        ret_event->kind = rd_kafka_assignment_lost(consumer->handle) ? KAFKA_CONSUMER_LOST : KAFKA_CONSUMER_REVOKED;
        return true;
    }
    if (!reserve_places(consumer, (size_t)list->cnt, err)) {
        return false;
    }
    size_t count = 0;
    for (int i = 0; i < list->cnt; i++) {
        const char *topic = own_topic(consumer, list->elems[i].topic);
        assert(topic != NULL); /* Subscriptions are names, never patterns. */
        consumer->places[count++] = (struct kafka_place){
            .topic = topic, .partition = list->elems[i].partition, .offset = KAFKA_OFFSET_UNPLACED};
    }
    ret_event->kind = KAFKA_CONSUMER_ASSIGNED;
    ret_event->places = consumer->places;
    ret_event->place_count = count;
    return true;
}

static bool on_error(struct kafka_consumer *consumer, rd_kafka_event_t *event, struct kafka_consumer_event *ret_event,
                     struct err *err)
{
    rd_kafka_resp_err_t code = rd_kafka_event_error(event);
    if (kafka_error_kind(code) == ERR_FATAL || rd_kafka_event_error_is_fatal(event)) {
        return kafka_fetch_set_fatal(consumer->handle, err) ? false : kafka_error_set(err, code, "consume");
    }
    rd_kafka_topic_partition_t *place = rd_kafka_event_topic_partition(event);
    const char *topic = place == NULL ? NULL : own_topic(consumer, place->topic);
    bool is_reset = code == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET || code == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE;
    bool is_good = true;
    if (topic != NULL && is_reset && (is_good = reserve_places(consumer, 1, err))) {
        consumer->places[0] =
            (struct kafka_place){.topic = topic, .partition = place->partition, .offset = place->offset};
        ret_event->kind = KAFKA_CONSUMER_OUT_OF_RANGE;
        ret_event->places = consumer->places;
        ret_event->place_count = 1;
    } else if (is_good) {
        ret_event->kind = KAFKA_CONSUMER_TROUBLE;
        kafka_error_set(&ret_event->err, code, "consume%s%s", topic == NULL ? "" : " ", topic == NULL ? "" : topic);
    }
    if (place != NULL) {
        rd_kafka_topic_partition_destroy(place);
    }
    return is_good;
}

/* On true with a MESSAGE the event belongs to the message. */
static bool on_fetch(struct kafka_consumer *consumer, rd_kafka_event_t *event, struct kafka_consumer_event *ret_event,
                     struct err *err)
{
    const rd_kafka_message_t *raw = rd_kafka_event_message_next(event);
    assert(raw != NULL);
    const char *topic = own_topic(consumer, rd_kafka_topic_name(raw->rkt));
    assert(topic != NULL);
    kafka_waker_look(consumer->waker, raw);
    if (raw->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        ret_event->kind = KAFKA_CONSUMER_TROUBLE;
        kafka_error_set(&ret_event->err, raw->err, "consume %s/%d", topic, raw->partition);
        return true;
    }
    if (!kafka_message_take(event, raw, topic, &consumer->messages, &ret_event->message, err)) {
        return false;
    }
    ret_event->kind = KAFKA_CONSUMER_MESSAGE;
    return true;
}

static bool on_event(struct kafka_consumer *consumer, rd_kafka_event_t *event, struct kafka_consumer_event *ret_event,
                     struct err *err)
{
    switch (rd_kafka_event_type(event)) {
    case RD_KAFKA_EVENT_FETCH: return on_fetch(consumer, event, ret_event, err);
    case RD_KAFKA_EVENT_REBALANCE: return on_rebalance(consumer, event, ret_event, err);
    case RD_KAFKA_EVENT_ERROR: return on_error(consumer, event, ret_event, err);
    default: return true; /* An answer to a commit: hints have no consequences. */
    }
}

bool kafka_consumer_poll(struct kafka_consumer *consumer, int timeout_ms, struct kafka_consumer_event *ret_event,
                         struct err *err)
{
    assert(consumer != NULL && ret_event != NULL);
    *ret_event = (struct kafka_consumer_event){.kind = KAFKA_CONSUMER_NOTHING, .err = ERR_INIT};
    rd_kafka_event_t *event = rd_kafka_queue_poll(consumer->queue, timeout_ms);
    if (event == NULL) {
        return true;
    }
    bool is_good = on_event(consumer, event, ret_event, err);
    if (!is_good || ret_event->kind != KAFKA_CONSUMER_MESSAGE) {
        rd_kafka_event_destroy(event);
    }
    return is_good;
}

static rd_kafka_topic_partition_t *find_paused(const struct kafka_consumer *consumer, const char *topic,
                                               int32_t partition)
{
    return rd_kafka_topic_partition_list_find(consumer->paused, topic, partition);
}

/* A pause survives in the library from one assignment to the next, unseen. */
static bool resume_all(struct kafka_consumer *consumer, struct err *err)
{
    if (consumer->paused->cnt == 0) {
        return true;
    }
    rd_kafka_resp_err_t code = rd_kafka_resume_partitions(consumer->handle, consumer->paused);
    rd_kafka_topic_partition_list_destroy(consumer->paused);
    consumer->paused = rd_kafka_topic_partition_list_new(0);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR || kafka_error_set(err, code, "resume before unassign");
}

bool kafka_consumer_assign(struct kafka_consumer *consumer, const struct kafka_place *places, size_t place_count,
                           struct err *err)
{
    assert(consumer != NULL && (places != NULL || place_count == 0));
    KAFKA_LIST_AUTO rd_kafka_topic_partition_list_t *list = list_of(places, place_count);
    rd_kafka_resp_err_t code = rd_kafka_assign(consumer->handle, list);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR && consumer->paused->cnt > 0) {
        code = rd_kafka_pause_partitions(consumer->handle, consumer->paused);
    }
    return code == RD_KAFKA_RESP_ERR_NO_ERROR || kafka_error_set(err, code, "assign");
}

bool kafka_consumer_unassign(struct kafka_consumer *consumer, struct err *err)
{
    assert(consumer != NULL);
    if (!resume_all(consumer, err)) {
        return false;
    }
    rd_kafka_resp_err_t code = rd_kafka_assign(consumer->handle, NULL);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR || kafka_error_set(err, code, "unassign");
}

bool kafka_consumer_is_lost(const struct kafka_consumer *consumer)
{
    return rd_kafka_assignment_lost(consumer->handle) != 0;
}

bool kafka_consumer_seek(struct kafka_consumer *consumer, struct kafka_place place, struct err *err)
{
    assert(consumer != NULL && place.topic != NULL);
    KAFKA_LIST_AUTO rd_kafka_topic_partition_list_t *list = list_of(&place, 1);
    return take_error(rd_kafka_seek_partitions(consumer->handle, list, 0), "seek", err) &&
           check_list(list, "seek", err);
}

bool kafka_consumer_pause(struct kafka_consumer *consumer, const char *topic, int32_t partition, struct err *err)
{
    if (find_paused(consumer, topic, partition) != NULL) {
        return true;
    }
    struct kafka_place place = {.topic = topic, .partition = partition, .offset = KAFKA_OFFSET_UNPLACED};
    KAFKA_LIST_AUTO rd_kafka_topic_partition_list_t *list = list_of(&place, 1);
    rd_kafka_resp_err_t code = rd_kafka_pause_partitions(consumer->handle, list);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return kafka_error_set(err, code, "pause %s/%d", topic, partition);
    }
    rd_kafka_topic_partition_list_add(consumer->paused, topic, partition);
    return check_list(list, "pause", err);
}

bool kafka_consumer_resume(struct kafka_consumer *consumer, const char *topic, int32_t partition, struct err *err)
{
    if (find_paused(consumer, topic, partition) == NULL) {
        return true;
    }
    struct kafka_place place = {.topic = topic, .partition = partition, .offset = KAFKA_OFFSET_UNPLACED};
    KAFKA_LIST_AUTO rd_kafka_topic_partition_list_t *list = list_of(&place, 1);
    rd_kafka_topic_partition_list_del(consumer->paused, topic, partition);
    rd_kafka_resp_err_t code = rd_kafka_resume_partitions(consumer->handle, list);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return kafka_error_set(err, code, "resume %s/%d", topic, partition);
    }
    return check_list(list, "resume", err);
}

bool kafka_consumer_commit(struct kafka_consumer *consumer, const struct kafka_place *places, size_t place_count,
                           struct err *err)
{
    assert(consumer != NULL && place_count > 0);
    KAFKA_LIST_AUTO rd_kafka_topic_partition_list_t *list = list_of(places, place_count);
    rd_kafka_resp_err_t code = rd_kafka_commit(consumer->handle, list, 1);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR || kafka_error_set(err, code, "commit");
}

int64_t kafka_consumer_end_known(const struct kafka_consumer *consumer, const char *topic, int32_t partition)
{
    int64_t low = -1;
    int64_t high = -1;
    rd_kafka_resp_err_t code = rd_kafka_get_watermark_offsets(consumer->handle, topic, partition, &low, &high);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR && high >= 0 ? high : -1;
}

/* Answers the last revocation; false at the deadline. */
static bool leave(struct kafka_consumer *consumer, int timeout_ms)
{
    int64_t deadline_ms = clock_monotonic_ms() + timeout_ms;
    rd_kafka_error_t *error = rd_kafka_consumer_close_queue(consumer->handle, consumer->queue);
    if (error != NULL) {
        rd_kafka_error_destroy(error);
        return true; /* Fatal or already closed: there is nothing to leave. */
    }
    while (!rd_kafka_consumer_closed(consumer->handle)) {
        if (clock_monotonic_ms() >= deadline_ms) {
            return false;
        }
        rd_kafka_event_t *event = rd_kafka_queue_poll(consumer->queue, CLOSE_POLL_MS);
        if (event != NULL && rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE) {
            rd_kafka_assign(consumer->handle, NULL);
        }
        rd_kafka_event_destroy(event);
    }
    return true;
}

bool kafka_consumer_close(struct kafka_consumer **consumerp, int timeout_ms)
{
    struct kafka_consumer *consumer = *consumerp;
    *consumerp = NULL;
    if (consumer == NULL) {
        return true;
    }
    assert(consumer->messages.count == 0);
    bool is_closed = true;
    rd_kafka_topic_partition_list_destroy(consumer->paused);
    kafka_waker_free(&consumer->waker);
    if (consumer->handle != NULL) {
        int64_t deadline_ms = clock_monotonic_ms() + timeout_ms;
        is_closed = leave(consumer, timeout_ms);
        int64_t rest_ms = deadline_ms - clock_monotonic_ms();
        is_closed =
            kafka_fetch_close(consumer->handle, consumer->queue, rest_ms < 100 ? 100 : (int)rest_ms) && is_closed;
    }
    for (size_t i = 0; i < consumer->topic_count; i++) {
        free(consumer->topics[i]);
    }
    free(consumer->topics);
    free(consumer->places);
    free(consumer);
    return is_closed;
}
