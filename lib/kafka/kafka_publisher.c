/* SPDX-License-Identifier: Apache-2.0
 *
 * The publisher on librdkafka. The library copies each record and carries the
 * caller's ticket as an integer; its delivery reports go into a ring that has
 * room for every outstanding ticket. The invariant: each accepted publish is
 * reported exactly once, and after a fatal error nothing is accepted.
 */
#include "kafka/kafka_publisher.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "kafka/kafka_error.h"
#include "kafka/kafka_log.h"
#include "kafka_private.h"

#define DELIVERY_DRAIN_MS 10

/* What a publisher promises hangs on these, so nobody else sets them. */
static const char *const fixed_names[] = {
    "acks",        "request.required.acks", "enable.idempotence", "message.timeout.ms",   "delivery.timeout.ms",
    "partitioner", "transactional.id",      "bootstrap.servers",  "metadata.broker.list", NULL,
};

static const struct kafka_property fixed_properties[] = {
    {"acks", "all"},
    {"enable.idempotence", "true"},
    {"message.timeout.ms", "0"}, /* Order outlives an outage; the relay has its own deadline. */
    {"partitioner", "murmur2_random"},
};

static const struct kafka_property default_properties[] = {
    {"client.id", "onceward"},
    {"compression.type", "none"},
    {"linger.ms", "0.1"}, /* What comes while a batch is on its way makes the next one. */
    {"socket.nagle.disable", "true"},
    {"reconnect.backoff.max.ms", "2000"},
    {"message.max.bytes", "67108864"}, /* The topic's own limit judges, not the client's. */
};

struct kafka_publisher {
    struct publisher publisher; /* First, so that the port's pointer is ours. */
    rd_kafka_t *handle;
    rd_kafka_queue_t *queue; /* Of what rd_kafka_poll serves: reports and errors. */
    int report_fd;           /* Written to when something enters the queue. */
    struct kafka_topics *topics;
    bool is_fatal;
    atomic_bool is_purged; /* Also set by the thread that watches the lease. */
    struct err fatal;
    size_t outstanding_count; /* Accepted and not handed out by collect. */
    size_t outstanding_bytes; /* Of those without a report. */
    size_t outstanding_bytes_max;
    struct publish_report *ring;
    size_t ring_capacity; /* = outstanding_count_max, so it cannot overflow. */
    size_t ring_first;
    size_t ring_count;
};

static void note_fatal(struct kafka_publisher *kafka)
{
    char why[256];
    rd_kafka_resp_err_t code = rd_kafka_fatal_error(kafka->handle, why, sizeof why);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR || kafka->is_fatal) {
        return;
    }
    kafka->is_fatal = true;
    err_set(&kafka->fatal, ERR_FATAL, kafka_error_name(code), "the producer is spent: %s", why);
}

static void on_error(rd_kafka_t *handle, int code, const char *reason, void *opaque)
{
    (void)handle;
    (void)reason;
    struct kafka_publisher *kafka = opaque;
    if (code == RD_KAFKA_RESP_ERR__FATAL) {
        note_fatal(kafka);
    }
}

static void on_delivery(rd_kafka_t *handle, const rd_kafka_message_t *message, void *opaque)
{
    (void)handle;
    struct kafka_publisher *kafka = opaque;
    assert(kafka->ring_count < kafka->ring_capacity);
    size_t place = (kafka->ring_first + kafka->ring_count) % kafka->ring_capacity;
    struct publish_report *report = &kafka->ring[place];
    *report = (struct publish_report){.ticket = (uint64_t)(uintptr_t)message->_private,
                                      .was_acknowledged = message->err == RD_KAFKA_RESP_ERR_NO_ERROR,
                                      .partition = -1,
                                      .offset = PUBLISH_OFFSET_UNKNOWN,
                                      .err = ERR_INIT};
    kafka->ring_count++;
    assert(kafka->outstanding_bytes >= message->key_len + message->len);
    kafka->outstanding_bytes -= message->key_len + message->len;
    if (report->was_acknowledged) {
        report->partition = message->partition;
        report->offset = message->offset >= 0 ? message->offset : PUBLISH_OFFSET_UNKNOWN;
        return;
    }
    note_fatal(kafka);
    if (kafka->is_fatal) {
        report->err = kafka->fatal;
    } else {
        kafka_error_set(&report->err, message->err, "publish to %s",
                        message->rkt == NULL ? "?" : rd_kafka_topic_name(message->rkt));
        if (report->err.kind == ERR_TRANSIENT && !kafka->is_purged) {
            kafka_topics_refresh(kafka->topics);
        }
    }
}

static bool add_text(rd_kafka_headers_t *headers, const char *name, const char *value)
{
    return value == NULL || rd_kafka_header_add(headers, name, -1, value, -1) == RD_KAFKA_RESP_ERR_NO_ERROR;
}

static bool add_fixed(rd_kafka_headers_t *headers, const struct event *event)
{
    char sequence[EVENT_SEQUENCE_DIGITS + 1];
    int written = snprintf(sequence, sizeof sequence, "%0*" PRId64, EVENT_SEQUENCE_DIGITS, event->outbox_id);
    assert(written == EVENT_SEQUENCE_DIGITS);
    return add_text(headers, "ce_specversion", "1.0") && add_text(headers, "ce_id", event->event_id) &&
           add_text(headers, "ce_source", event->source) && add_text(headers, "ce_type", event->type) &&
           add_text(headers, "ce_subject", event->subject) && add_text(headers, "ce_time", event->time) &&
           add_text(headers, "ce_sequence", sequence) && add_text(headers, "ce_dataschema", event->dataschema) &&
           add_text(headers, "content-type", event->content_type) && add_text(headers, "ce_tenantid", event->tenant) &&
           add_text(headers, "ce_traceparent", event->traceparent) &&
           add_text(headers, "traceparent", event->traceparent);
}

rd_kafka_headers_t *kafka_publisher_headers(const struct event *event)
{
    rd_kafka_headers_t *headers = rd_kafka_headers_new(KAFKA_PUBLISHER_HEADER_COUNT + event->header_count);
    bool is_complete = add_fixed(headers, event);
    for (size_t i = 0; is_complete && i < event->header_count; i++) {
        const struct event_header *header = &event->headers[i];
        is_complete = rd_kafka_header_add(headers, header->name, -1, header->value.data, (ssize_t)header->value.size) ==
                      RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    assert(is_complete); /* The library refuses only read-only lists. */
    return headers;
}

static bool produce(struct kafka_publisher *kafka, const struct event *event, uint64_t ticket,
                    enum publish_outcome *ret_outcome, struct err *err)
{
    rd_kafka_headers_t *headers = kafka_publisher_headers(event);
    rd_kafka_resp_err_t code = rd_kafka_producev(
        kafka->handle, RD_KAFKA_V_TOPIC(event->topic), RD_KAFKA_V_KEY(event->key, strlen(event->key)),
        RD_KAFKA_V_VALUE((void *)(uintptr_t)event->value.data, event->value.size), RD_KAFKA_V_HEADERS(headers),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_OPAQUE((void *)(uintptr_t)ticket), RD_KAFKA_V_END);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        kafka->outstanding_count++;
        kafka->outstanding_bytes += strlen(event->key) + event->value.size;
        *ret_outcome = PUBLISH_QUEUED;
        return true;
    }
    rd_kafka_headers_destroy(headers);
    if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
        *ret_outcome = PUBLISH_FULL;
        return true;
    }
    note_fatal(kafka);
    if (kafka->is_fatal) {
        *err = kafka->fatal;
        return false;
    }
    return kafka_error_set(err, code, "publish to %s", event->topic);
}

static bool is_full(const struct kafka_publisher *kafka, const struct event *event)
{
    size_t bytes = kafka->outstanding_bytes + strlen(event->key) + event->value.size;
    bool is_heavy = kafka->outstanding_bytes_max > 0 && bytes > kafka->outstanding_bytes_max;
    return kafka->outstanding_count == kafka->ring_capacity || (is_heavy && kafka->outstanding_bytes > 0);
}

static bool publish(struct publisher *publisher, const struct event *event, uint64_t ticket,
                    enum publish_outcome *ret_outcome, struct err *err)
{
    struct kafka_publisher *kafka = (struct kafka_publisher *)publisher;
    assert(event->value.data != NULL && event->outbox_id > 0);
    if (kafka->is_fatal) {
        *err = kafka->fatal;
        return false;
    }
    if (kafka->is_purged) {
        return err_set(err, ERR_TRANSIENT, "publisher_purged", "the publisher was purged");
    }
    if (is_full(kafka, event)) {
        *ret_outcome = PUBLISH_FULL;
        return true;
    }
    if (!kafka_topics_is_available(kafka->topics, event->topic, event->key, strlen(event->key))) {
        return err_set(err, ERR_TRANSIENT, "topic_unavailable", "topic %s is unknown or has no leader for this key",
                       event->topic);
    }
    return produce(kafka, event, ticket, ret_outcome, err);
}

static void purge(struct publisher *publisher)
{
    struct kafka_publisher *kafka = (struct kafka_publisher *)publisher;
    kafka->is_purged = true;
    rd_kafka_purge(kafka->handle, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
}

static void clear_fd(int fd)
{
    eventfd_t count;
    (void)eventfd_read(fd, &count); /* Fails where nothing was written. */
}

static size_t collect(struct publisher *publisher, struct publish_report *ret_reports, size_t report_count_max,
                      int timeout_ms)
{
    struct kafka_publisher *kafka = (struct kafka_publisher *)publisher;
    clear_fd(kafka->report_fd); /* Before the look: what comes after it makes it readable again. */
    rd_kafka_poll(kafka->handle, kafka->ring_count > 0 ? 0 : timeout_ms);
    if (kafka->is_fatal && !kafka->is_purged) {
        purge(publisher);
        rd_kafka_poll(kafka->handle, DELIVERY_DRAIN_MS);
    }
    size_t count = 0;
    while (count < report_count_max && kafka->ring_count > 0) {
        ret_reports[count++] = kafka->ring[kafka->ring_first];
        kafka->ring_first = (kafka->ring_first + 1) % kafka->ring_capacity;
        kafka->ring_count--;
        kafka->outstanding_count--;
    }
    return count;
}

static size_t outstanding_count(const struct publisher *publisher)
{
    return ((const struct kafka_publisher *)publisher)->outstanding_count;
}

static int report_fd(const struct publisher *publisher)
{
    return ((const struct kafka_publisher *)publisher)->report_fd;
}

/* What is outstanding is given up: whoever needs its fate has collected it before. */
static void close_publisher(struct publisher *publisher)
{
    struct kafka_publisher *kafka = (struct kafka_publisher *)publisher;
    kafka_topics_free(&kafka->topics);
    if (kafka->handle != NULL) {
        rd_kafka_purge(kafka->handle, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        rd_kafka_queue_io_event_enable(kafka->queue, -1, NULL, 0);
        rd_kafka_queue_destroy(kafka->queue);
        rd_kafka_destroy(kafka->handle);
    }
    if (kafka->report_fd >= 0) {
        close(kafka->report_fd);
    }
    free(kafka->ring);
    free(kafka);
}

static const struct publisher_ops kafka_ops = {
    .publish = publish,
    .collect = collect,
    .purge = purge,
    .outstanding_count = outstanding_count,
    .report_fd = report_fd,
    .close = close_publisher,
};

static bool fill_conf(rd_kafka_conf_t *conf, const struct kafka_publisher_options *options, struct err *err)
{
    for (size_t i = 0; i < sizeof default_properties / sizeof default_properties[0]; i++) {
        if (!kafka_conf_set(conf, default_properties[i].name, default_properties[i].value, err)) {
            return false;
        }
    }
    if (!kafka_conf_set_all(conf, options->properties, options->property_count, fixed_names, err)) {
        return false;
    }
    for (size_t i = 0; i < sizeof fixed_properties / sizeof fixed_properties[0]; i++) {
        if (!kafka_conf_set(conf, fixed_properties[i].name, fixed_properties[i].value, err)) {
            return false;
        }
    }
    if (options->is_single && !kafka_conf_set(conf, "batch.num.messages", "1", err)) {
        return false;
    }
    return kafka_conf_set(conf, "bootstrap.servers", options->brokers, err);
}

static bool open_handle(struct kafka_publisher *kafka, const struct kafka_publisher_options *options, struct err *err)
{
    static const eventfd_t one = 1;
    kafka->report_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (kafka->report_fd < 0) {
        return err_set(err, ERR_FATAL, "eventfd", "no descriptor for reports: %s", strerror(errno));
    }
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (!fill_conf(conf, options, err)) {
        rd_kafka_conf_destroy(conf);
        return false;
    }
    rd_kafka_conf_set_opaque(conf, kafka);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_conf_set_error_cb(conf, on_error);
    kafka_log_attach(conf);
    char why[256];
    kafka->handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (kafka->handle == NULL) {
        rd_kafka_conf_destroy(conf);
        return err_set(err, ERR_PERMANENT, "kafka_property_invalid", "Kafka producer: %s", why);
    }
    kafka->queue = rd_kafka_queue_get_main(kafka->handle);
    rd_kafka_queue_io_event_enable(kafka->queue, kafka->report_fd, &one, sizeof one);
    kafka->topics = kafka_topics_new(kafka->handle, err);
    return kafka->topics != NULL;
}

struct publisher *kafka_publisher_open(const struct kafka_publisher_options *options, struct err *err)
{
    assert(options->brokers != NULL && options->outstanding_count_max > 0);
    struct kafka_publisher *kafka = calloc(1, sizeof *kafka);
    struct publish_report *ring = calloc(options->outstanding_count_max, sizeof *ring);
    if (kafka == NULL || ring == NULL) {
        free(kafka);
        free(ring);
        err_set(err, ERR_FATAL, "memory", "no memory for %zu reports", options->outstanding_count_max);
        return NULL;
    }
    kafka->publisher.ops = &kafka_ops;
    kafka->ring = ring;
    kafka->ring_capacity = options->outstanding_count_max;
    kafka->outstanding_bytes_max = options->outstanding_bytes_max;
    if (!open_handle(kafka, options, err)) {
        close_publisher(&kafka->publisher);
        return NULL;
    }
    return &kafka->publisher;
}

bool kafka_publisher_is_reachable(struct publisher *publisher)
{
    assert(publisher->ops == &kafka_ops);
    return kafka_topics_is_reachable(((struct kafka_publisher *)publisher)->topics);
}

bool kafka_publisher_cluster_id(struct publisher *publisher, int timeout_ms, char ret_id[KAFKA_CLUSTER_ID_SIZE],
                                struct err *err)
{
    assert(publisher->ops == &kafka_ops);
    struct kafka_publisher *kafka = (struct kafka_publisher *)publisher;
    char *id = rd_kafka_clusterid(kafka->handle, timeout_ms);
    if (id == NULL) {
        return err_set(err, ERR_TRANSIENT, "cluster_unreachable", "no broker told its cluster id");
    }
    size_t size = strlen(id);
    if (size < KAFKA_CLUSTER_ID_SIZE) {
        memcpy(ret_id, id, size + 1);
    }
    rd_kafka_mem_free(kafka->handle, id);
    return size < KAFKA_CLUSTER_ID_SIZE || err_set(err, ERR_PERMANENT, "cluster_id", "cluster id of %zu bytes", size);
}

rd_kafka_t *kafka_publisher_handle(struct publisher *publisher)
{
    assert(publisher->ops == &kafka_ops);
    return ((struct kafka_publisher *)publisher)->handle;
}
