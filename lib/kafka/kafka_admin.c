/* SPDX-License-Identifier: Apache-2.0
 *
 * Admin requests through a producer handle that never produces. The answer to
 * a request comes as an event on a queue of its own.
 */
#include "kafka/kafka_admin.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "kafka/kafka_error.h"
#include "kafka_private.h"

/* What the library may take beyond the request's own timeout before we call it lost. */
#define ANSWER_GRACE_MS 1000
#define AWAIT_STEP_MS 20

struct kafka_admin {
    rd_kafka_t *handle;
    rd_kafka_queue_t *queue;
    int timeout_ms;
};

static void event_destroy(rd_kafka_event_t **eventp)
{
    if (*eventp != NULL) {
        rd_kafka_event_destroy(*eventp);
    }
}

static void options_destroy(rd_kafka_AdminOptions_t **optionsp)
{
    if (*optionsp != NULL) {
        rd_kafka_AdminOptions_destroy(*optionsp);
    }
}

#define AUTO_EVENT __attribute__((cleanup(event_destroy)))
#define AUTO_OPTIONS __attribute__((cleanup(options_destroy)))

static bool configure(rd_kafka_conf_t *conf, const struct kafka_admin_options *options, struct err *err)
{
    static const char *const FIXED[] = {"bootstrap.servers", NULL};
    kafka_log_attach(conf);
    return kafka_conf_set(conf, "bootstrap.servers", options->brokers, err) &&
           kafka_conf_set_all(conf, options->properties, options->property_count, FIXED, err);
}

struct kafka_admin *kafka_admin_open(const struct kafka_admin_options *options, struct err *err)
{
    assert(options != NULL && options->brokers != NULL && options->timeout_ms > 0);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (!configure(conf, options, err)) {
        rd_kafka_conf_destroy(conf);
        return NULL;
    }
    char why[256] = "";
    rd_kafka_t *handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    struct kafka_admin *admin = calloc(1, sizeof *admin);
    if (handle == NULL || admin == NULL) {
        if (handle == NULL) {
            rd_kafka_conf_destroy(conf);
        } else {
            rd_kafka_destroy(handle);
        }
        free(admin);
        (void)err_set(err, ERR_PERMANENT, "kafka_handle_failed", "%s", handle == NULL ? why : "no memory");
        return NULL;
    }
    admin->handle = handle;
    admin->queue = rd_kafka_queue_new(handle);
    admin->timeout_ms = options->timeout_ms;
    return admin;
}

void kafka_admin_close(struct kafka_admin **adminp)
{
    assert(adminp != NULL);
    struct kafka_admin *admin = *adminp;
    if (admin == NULL) {
        return;
    }
    rd_kafka_queue_destroy(admin->queue);
    rd_kafka_destroy(admin->handle);
    free(admin);
    *adminp = NULL;
}

static rd_kafka_AdminOptions_t *options_new(struct kafka_admin *admin, rd_kafka_admin_op_t operation)
{
    char why[256];
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(admin->handle, operation);
    assert(options != NULL);
    rd_kafka_resp_err_t code = rd_kafka_AdminOptions_set_request_timeout(options, admin->timeout_ms, why, sizeof why);
    assert(code == RD_KAFKA_RESP_ERR_NO_ERROR);
    return options;
}

/* The answer's event, whose request as a whole succeeded; else NULL with err. */
static rd_kafka_event_t *await_answer(struct kafka_admin *admin, const char *what, struct err *err)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(admin->queue, admin->timeout_ms + ANSWER_GRACE_MS);
    if (event == NULL) {
        (void)kafka_error_set(err, RD_KAFKA_RESP_ERR__TIMED_OUT, "%s", what);
        return NULL;
    }
    rd_kafka_resp_err_t code = rd_kafka_event_error(event);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        (void)kafka_error_set(err, code, "%s", what);
        rd_kafka_event_destroy(event);
        return NULL;
    }
    return event;
}

/* ---- Making a topic ----------------------------------------------------------------------------------------- */

static rd_kafka_NewTopic_t *new_topic(const struct kafka_admin_topic *topic, struct err *err)
{
    char why[256] = "";
    rd_kafka_NewTopic_t *wish =
        rd_kafka_NewTopic_new(topic->topic, topic->partition_count > 0 ? topic->partition_count : -1,
                              topic->replication_factor > 0 ? topic->replication_factor : -1, why, sizeof why);
    if (wish == NULL) {
        (void)err_set(err, ERR_PERMANENT, "kafka_topic_invalid", "topic %s: %s", topic->topic, why);
        return NULL;
    }
    for (size_t i = 0; i < topic->setting_count; i++) {
        rd_kafka_resp_err_t code =
            rd_kafka_NewTopic_set_config(wish, topic->settings[i].name, topic->settings[i].value);
        if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
            rd_kafka_NewTopic_destroy(wish);
            (void)err_set(err, ERR_PERMANENT, "kafka_topic_invalid", "topic %s: setting %s: %s", topic->topic,
                          topic->settings[i].name, rd_kafka_err2str(code));
            return NULL;
        }
    }
    return wish;
}

/* A refusal of an operator's wish is permanent: repeating the command does not help, whatever the code means for
 * records. Only what says that the cluster is away stays transient. */
static bool refuse(struct err *err, const char *topic, const rd_kafka_topic_result_t *result)
{
    rd_kafka_resp_err_t code = rd_kafka_topic_result_error(result);
    const char *why = rd_kafka_topic_result_error_string(result);
    bool is_away = code < 0 || code == RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT || code == RD_KAFKA_RESP_ERR_NOT_CONTROLLER;
    return err_set(err, is_away ? ERR_TRANSIENT : ERR_PERMANENT, kafka_error_name(code), "topic %s: %s", topic,
                   why != NULL ? why : rd_kafka_err2str(code));
}

bool kafka_admin_topic_make(struct kafka_admin *admin, const struct kafka_admin_topic *topic,
                            enum kafka_admin_outcome *ret_outcome, struct err *err)
{
    assert(admin != NULL && topic != NULL && topic->topic != NULL);
    rd_kafka_NewTopic_t *wish = new_topic(topic, err);
    if (wish == NULL) {
        return false;
    }
    AUTO_OPTIONS rd_kafka_AdminOptions_t *options = options_new(admin, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    rd_kafka_CreateTopics(admin->handle, &wish, 1, options, admin->queue);
    rd_kafka_NewTopic_destroy(wish);
    AUTO_EVENT rd_kafka_event_t *event = await_answer(admin, "make topic", err);
    if (event == NULL) {
        return false;
    }
    size_t count = 0;
    const rd_kafka_topic_result_t **results =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    assert(count == 1);
    rd_kafka_resp_err_t code = rd_kafka_topic_result_error(results[0]);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR && code != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) {
        return refuse(err, topic->topic, results[0]);
    }
    *ret_outcome = code == RD_KAFKA_RESP_ERR_NO_ERROR ? KAFKA_ADMIN_MADE : KAFKA_ADMIN_EXISTED;
    return true;
}

/* ---- Reading a topic ---------------------------------------------------------------------------------------- */

static bool read_partitions(struct kafka_admin *admin, const char *topic, struct kafka_admin_facts *facts,
                            struct err *err)
{
    rd_kafka_topic_t *local = rd_kafka_topic_new(admin->handle, topic, NULL);
    if (local == NULL) {
        return err_set(err, ERR_PERMANENT, "kafka_topic_invalid", "topic %s: %s", topic,
                       rd_kafka_err2str(rd_kafka_last_error()));
    }
    const rd_kafka_metadata_t *metadata = NULL;
    rd_kafka_resp_err_t code = rd_kafka_metadata(admin->handle, 0, local, &metadata, admin->timeout_ms);
    rd_kafka_topic_destroy(local);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return kafka_error_set(err, code, "topic %s", topic);
    }
    if (metadata->topic_cnt == 1) {
        code = metadata->topics[0].err;
        facts->partition_count = metadata->topics[0].partition_cnt;
        facts->is_ready = facts->partition_count > 0;
        for (int i = 0; i < facts->partition_count; i++) {
            facts->is_ready = facts->is_ready && metadata->topics[0].partitions[i].leader >= 0;
        }
        facts->replication_factor = facts->partition_count > 0 ? metadata->topics[0].partitions[0].replica_cnt : 0;
    }
    rd_kafka_metadata_destroy(metadata);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR && code != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) {
        return kafka_error_set(err, code, "topic %s", topic);
    }
    facts->exists = code == RD_KAFKA_RESP_ERR_NO_ERROR && facts->partition_count > 0;
    return true;
}

static int64_t find_number(const rd_kafka_ConfigResource_t *resource, const char *name)
{
    size_t count = 0;
    const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resource, &count);
    for (size_t i = 0; i < count; i++) {
        int64_t number = 0;
        const char *value = rd_kafka_ConfigEntry_value(entries[i]);
        if (value != NULL && strcmp(rd_kafka_ConfigEntry_name(entries[i]), name) == 0 &&
            text_to_int64(value, &number)) {
            return number;
        }
    }
    return 0;
}

static bool read_limit(struct kafka_admin *admin, const char *topic, struct kafka_admin_facts *facts, struct err *err)
{
    rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
    if (resource == NULL) {
        return err_set(err, ERR_PERMANENT, "kafka_topic_invalid", "topic %s", topic);
    }
    AUTO_OPTIONS rd_kafka_AdminOptions_t *options = options_new(admin, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
    rd_kafka_DescribeConfigs(admin->handle, &resource, 1, options, admin->queue);
    rd_kafka_ConfigResource_destroy(resource);
    AUTO_EVENT rd_kafka_event_t *event = await_answer(admin, "describe topic", err);
    if (event == NULL) {
        return false;
    }
    size_t count = 0;
    const rd_kafka_ConfigResource_t **answers =
        rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &count);
    assert(count == 1);
    rd_kafka_resp_err_t code = rd_kafka_ConfigResource_error(answers[0]);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return kafka_error_set(err, code, "topic %s", topic);
    }
    facts->message_bytes_max = find_number(answers[0], "max.message.bytes");
    return true;
}

bool kafka_admin_topic_read(struct kafka_admin *admin, const char *topic, struct kafka_admin_facts *ret_facts,
                            struct err *err)
{
    assert(admin != NULL && topic != NULL);
    struct kafka_admin_facts facts = {.exists = false};
    if (!read_partitions(admin, topic, &facts, err)) {
        return false;
    }
    if (facts.exists && !read_limit(admin, topic, &facts, err)) {
        return false;
    }
    *ret_facts = facts.exists ? facts : (struct kafka_admin_facts){.exists = false};
    return true;
}

bool kafka_admin_topic_await(struct kafka_admin *admin, const char *topic, struct kafka_admin_facts *ret_facts,
                             struct err *err)
{
    int64_t until_ms = clock_monotonic_ms() + admin->timeout_ms;
    for (;;) {
        struct kafka_admin_facts facts = {.exists = false};
        if (!read_partitions(admin, topic, &facts, err)) {
            return false;
        }
        if (facts.is_ready) {
            return kafka_admin_topic_read(admin, topic, ret_facts, err);
        }
        if (clock_monotonic_ms() >= until_ms) {
            return err_set(err, ERR_TRANSIENT, "topic_not_ready", "topic %s: not every partition has a leader", topic);
        }
        (void)rd_kafka_poll(admin->handle, AWAIT_STEP_MS);
    }
}

bool kafka_admin_log_end(struct kafka_admin *admin, const char *topic, int32_t partition, int64_t *ret_offset,
                         struct err *err)
{
    int64_t first = 0;
    int64_t next = 0;
    rd_kafka_resp_err_t code =
        rd_kafka_query_watermark_offsets(admin->handle, topic, partition, &first, &next, admin->timeout_ms);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return kafka_error_set(err, code, "topic %s, partition %d", topic, (int)partition);
    }
    *ret_offset = next;
    return true;
}

bool kafka_admin_cluster_id(struct kafka_admin *admin, char ret_id[KAFKA_CLUSTER_ID_SIZE], struct err *err)
{
    char *id = rd_kafka_clusterid(admin->handle, admin->timeout_ms);
    if (id == NULL) {
        return kafka_error_set(err, RD_KAFKA_RESP_ERR__TIMED_OUT, "no broker told the cluster's id");
    }
    bool fits = text_copy(ret_id, KAFKA_CLUSTER_ID_SIZE, id);
    rd_kafka_mem_free(admin->handle, id);
    return fits || err_set(err, ERR_PERMANENT, "cluster_id_too_long", "the cluster's id is too long");
}
