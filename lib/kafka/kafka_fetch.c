/* SPDX-License-Identifier: Apache-2.0
 *
 * Making and ending handles that consume. The invariant: nothing that fetches
 * starts at an offset of the library's choosing, and what is fetched ahead
 * keeps to one budget.
 */
#include <assert.h>
#include <pthread.h>
#include <time.h>

#include "base/text.h"
#include "base/thread.h"
#include "kafka/kafka_error.h"
#include "kafka_fetch_private.h"
#include "kafka_waker_private.h"

#define RECORD_SIZE 1024

/* What a consumer promises hangs on these, so nobody else sets them. */
static const char *const fixed_names[] = {
    "group.id",
    "group.instance.id",
    "auto.offset.reset",
    "enable.auto.commit",
    "auto.commit.enable",
    "enable.auto.offset.store",
    "partition.assignment.strategy",
    "session.timeout.ms",
    "enable.partition.eof",
    "queued.max.messages.kbytes",
    "fetch.max.bytes",
    "message.max.bytes",
    "bootstrap.servers",
    "metadata.broker.list",
    NULL,
};

static const struct kafka_property default_properties[] = {
    {"client.id", "onceward"},    {"socket.nagle.disable", "true"},  {"reconnect.backoff.max.ms", "2000"},
    {"fetch.wait.max.ms", "100"}, {"fetch.error.backoff.ms", "200"}, {"topic.metadata.refresh.interval.ms", "5000"},
};

static const struct kafka_property fixed_properties[] = {
    {"auto.offset.reset", "error"}, /* Anything else skips or repeats in silence. */
    {"enable.auto.commit", "false"},
    {"message.max.bytes", "1000"}, /* The producer's; the library wants fetch.max.bytes to be no less. */
    {"enable.auto.offset.store", "false"},
    {"partition.assignment.strategy", "range,roundrobin"}, /* Cooperative can hang before 2.6.1. */
};

static bool set_number(rd_kafka_conf_t *conf, const char *name, int64_t number, struct err *err)
{
    char text[24];
    bool has_fitted = text_format(text, sizeof text, "%lld", (long long)number);
    assert(has_fitted);
    return kafka_conf_set(conf, name, text, err);
}

static bool set_table(rd_kafka_conf_t *conf, const struct kafka_property *properties, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!kafka_conf_set(conf, properties[i].name, properties[i].value, err)) {
            return false;
        }
    }
    return true;
}

/* Half of the budget may wait in keys and values, and no more records than there is room for: a small one takes about
 * a KiB with its headers and the library's own structure. An answer of a broker that is on its way may
 * be an eighth. */
size_t kafka_fetch_queue_size(const struct kafka_consumer_options *options)
{
    return options->memory_size_max / 2;
}

size_t kafka_fetch_queue_records(const struct kafka_consumer_options *options)
{
    return options->memory_size_max / RECORD_SIZE;
}

static bool set_memory(rd_kafka_conf_t *conf, const struct kafka_consumer_options *options, bool is_member,
                       struct err *err)
{
    int64_t queue_kbytes = is_member ? (int64_t)(kafka_fetch_queue_size(options) / 1024) : 64;
    int64_t queue_records = is_member ? (int64_t)kafka_fetch_queue_records(options) : 1;
    int64_t fetch_size = is_member ? (int64_t)(options->memory_size_max / 8) : 65536;
    return set_number(conf, "queued.max.messages.kbytes", queue_kbytes < 64 ? 64 : queue_kbytes, err) &&
           set_number(conf, "fetch.max.bytes", fetch_size < 65536 ? 65536 : fetch_size, err) &&
           set_number(conf, "fetch.message.max.bytes",
                      fetch_size < 65536     ? 65536
                      : fetch_size < 1048576 ? fetch_size
                                             : 1048576,
                      err) &&
           set_number(conf, "queued.min.messages", queue_records < 10000000 ? queue_records : 10000000, err) &&
           (kafka_waker_is_needed() || kafka_conf_set(conf, "fetch.queue.backoff.ms", "10", err));
}

static bool fill_conf(rd_kafka_conf_t *conf, const struct kafka_consumer_options *options, bool is_member,
                      struct err *err)
{
    if (!set_table(conf, default_properties, sizeof default_properties / sizeof default_properties[0], err) ||
        !kafka_conf_set_all(conf, options->properties, options->property_count, fixed_names, err) ||
        !set_table(conf, fixed_properties, sizeof fixed_properties / sizeof fixed_properties[0], err) ||
        !set_memory(conf, options, is_member, err)) {
        return false;
    }
    if (is_member && (!set_number(conf, "session.timeout.ms", options->session_timeout_ms, err) ||
                      !kafka_conf_set(conf, "group.instance.id", options->instance, err))) {
        return false;
    }
    return kafka_conf_set(conf, "group.id", options->group, err) &&
           kafka_conf_set(conf, "bootstrap.servers", options->brokers, err);
}

rd_kafka_t *kafka_fetch_open(const struct kafka_consumer_options *options, bool is_member, rd_kafka_queue_t **ret_queue,
                             struct err *err)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (!fill_conf(conf, options, is_member, err)) {
        rd_kafka_conf_destroy(conf);
        return NULL;
    }
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_OFFSET_COMMIT);
    kafka_log_attach(conf);
    char why[256];
    rd_kafka_t *handle = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (handle == NULL) {
        rd_kafka_conf_destroy(conf);
        err_set(err, ERR_PERMANENT, "kafka_property_invalid", "Kafka consumer: %s", why);
        return NULL;
    }
    rd_kafka_poll_set_consumer(handle);
    *ret_queue = rd_kafka_queue_get_consumer(handle);
    return handle;
}

static void *destroy_handle(void *handle)
{
    rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    return NULL;
}

bool kafka_fetch_close(rd_kafka_t *handle, rd_kafka_queue_t *queue, int timeout_ms)
{
    assert(handle != NULL && queue != NULL);
    rd_kafka_queue_destroy(queue);
    pthread_t thread;
    if (pthread_create(&thread, NULL, destroy_handle, handle) != 0) {
        return false;
    }
    struct timespec deadline;
    int status = clock_gettime(CLOCK_REALTIME, &deadline);
    assert(status == 0);
    deadline.tv_sec += timeout_ms / 1000;
    deadline.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_sec++;
        deadline.tv_nsec -= 1000000000;
    }
    if (pthread_timedjoin_np(thread, NULL, &deadline) == 0) {
        return true;
    }
    status = pthread_detach(thread);
    assert(status == 0);
    return false;
}

bool kafka_fetch_set_fatal(rd_kafka_t *handle, struct err *err)
{
    char why[256] = "";
    rd_kafka_resp_err_t code = rd_kafka_fatal_error(handle, why, sizeof why);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        return false;
    }
    err_set(err, ERR_FATAL, kafka_error_name(code), "the consumer is spent: %s", why);
    return true;
}

void kafka_list_clear(rd_kafka_topic_partition_list_t **listp)
{
    if (*listp != NULL) {
        rd_kafka_topic_partition_list_destroy(*listp);
        *listp = NULL;
    }
}
