/* SPDX-License-Identifier: Apache-2.0
 *
 * Topics for tests. A topic counts as made only when each of its partitions answers as its
 * leader: metadata shows a leader some milliseconds before the broker is one (seen).
 */
#include "kafka_fixture.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>

#define NAME_SIZE 128
#define TIMEOUT_MS 20000
#define SETTING_COUNT_MAX 16

struct kafka_fixture {
    char topic[NAME_SIZE];
    char bootstrap[512];
    int partition_count;
    const char *const *settings;
    rd_kafka_t *handle;
};

static bool print_failure(const char *what, const char *why)
{
    fprintf(stderr, "kafka_fixture: %s: %s\n", what, why);
    return false;
}

static void format(char *text, size_t size, const char *pattern, ...) __attribute__((format(printf, 3, 4)));
static void format(char *text, size_t size, const char *pattern, ...)
{
    va_list args;
    va_start(args, pattern);
    int length = vsnprintf(text, size, pattern, args);
    va_end(args);
    if (length < 0 || (size_t)length >= size) {
        print_failure("a text is too long", text);
        abort();
    }
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
}

static rd_kafka_t *open_handle(const char *bootstrap)
{
    char why[512] = "";
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, why, sizeof why) != RD_KAFKA_CONF_OK) {
        print_failure(bootstrap, why);
        rd_kafka_conf_destroy(conf);
        return NULL;
    }
    rd_kafka_t *handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (handle == NULL) {
        print_failure("no handle", why);
        rd_kafka_conf_destroy(conf);
    }
    return handle;
}

/* The live tests say what they ran against, once per program. The protocol does not tell
 * the broker's version; tests/run reads it where the broker runs and passes it on. */
static bool print_version(rd_kafka_t *handle)
{
    static bool was_printed;
    char *cluster = rd_kafka_clusterid(handle, TIMEOUT_MS);
    if (cluster == NULL) {
        return print_failure("no answer from the broker", getenv("ONCEWARD_TEST_KAFKA"));
    }
    if (!was_printed) {
        const char *version = getenv("ONCEWARD_TEST_KAFKA_VERSION");
        printf("kafka: cluster id %s, broker version %s, librdkafka %s\n", cluster,
               version != NULL ? version : "not told", rd_kafka_version_str());
        fflush(stdout);
    }
    was_printed = true;
    rd_kafka_mem_free(handle, cluster);
    return true;
}

/* Waits for the admin call's one result; true if it and its one topic succeeded. */
static bool take_result(rd_kafka_queue_t *queue, const char *what)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TIMEOUT_MS + 5000);
    if (event == NULL) {
        return print_failure(what, "no result in time");
    }
    size_t count = 0;
    const rd_kafka_topic_result_t **topics = NULL;
    const rd_kafka_CreateTopics_result_t *made = rd_kafka_event_CreateTopics_result(event);
    const rd_kafka_DeleteTopics_result_t *deleted = rd_kafka_event_DeleteTopics_result(event);
    if (made != NULL) {
        topics = rd_kafka_CreateTopics_result_topics(made, &count);
    } else if (deleted != NULL) {
        topics = rd_kafka_DeleteTopics_result_topics(deleted, &count);
    }
    bool is_done = rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR_NO_ERROR && count == 1 &&
                   rd_kafka_topic_result_error(topics[0]) == RD_KAFKA_RESP_ERR_NO_ERROR;
    if (!is_done) {
        print_failure(what, count == 1 ? rd_kafka_err2str(rd_kafka_topic_result_error(topics[0]))
                                       : rd_kafka_event_error_string(event));
    }
    rd_kafka_event_destroy(event);
    return is_done;
}

static rd_kafka_AdminOptions_t *admin_options(rd_kafka_t *handle, rd_kafka_admin_op_t op)
{
    char why[512] = "";
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(handle, op);
    rd_kafka_resp_err_t first = rd_kafka_AdminOptions_set_request_timeout(options, TIMEOUT_MS, why, sizeof why);
    rd_kafka_resp_err_t second = rd_kafka_AdminOptions_set_operation_timeout(options, TIMEOUT_MS, why, sizeof why);
    assert(first == RD_KAFKA_RESP_ERR_NO_ERROR && second == RD_KAFKA_RESP_ERR_NO_ERROR);
    (void)first;
    (void)second;
    return options;
}

static bool set_topic_setting(rd_kafka_NewTopic_t *topic, const char *setting)
{
    char name[256];
    const char *equals = strchr(setting, '=');
    assert(equals != NULL && (size_t)(equals - setting) < sizeof name);
    memcpy(name, setting, (size_t)(equals - setting));
    name[equals - setting] = '\0';
    return rd_kafka_NewTopic_set_config(topic, name, equals + 1) == RD_KAFKA_RESP_ERR_NO_ERROR;
}

static bool create_topic(struct kafka_fixture *fixture)
{
    char why[512] = "";
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(fixture->topic, fixture->partition_count, -1, why, sizeof why);
    if (topic == NULL) {
        return print_failure(fixture->topic, why);
    }
    for (int i = 0; fixture->settings != NULL && fixture->settings[i] != NULL; i++) {
        assert(i < SETTING_COUNT_MAX);
        if (!set_topic_setting(topic, fixture->settings[i])) {
            rd_kafka_NewTopic_destroy(topic);
            return print_failure("a topic setting is not understood", fixture->settings[i]);
        }
    }
    rd_kafka_queue_t *queue = rd_kafka_queue_new(fixture->handle);
    rd_kafka_AdminOptions_t *options = admin_options(fixture->handle, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    rd_kafka_CreateTopics(fixture->handle, &topic, 1, options, queue);
    bool is_made = take_result(queue, fixture->topic);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_queue_destroy(queue);
    rd_kafka_NewTopic_destroy(topic);
    return is_made;
}

static bool delete_topic(struct kafka_fixture *fixture)
{
    rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(fixture->topic);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(fixture->handle);
    rd_kafka_AdminOptions_t *options = admin_options(fixture->handle, RD_KAFKA_ADMIN_OP_DELETETOPICS);
    rd_kafka_DeleteTopics(fixture->handle, &topic, 1, options, queue);
    bool is_deleted = take_result(queue, fixture->topic);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_queue_destroy(queue);
    rd_kafka_DeleteTopic_destroy(topic);
    return is_deleted;
}

/* How many partitions of the topic have a leader, by the broker's metadata of now. */
static int count_leaders(struct kafka_fixture *fixture)
{
    const struct rd_kafka_metadata *metadata = NULL;
    if (rd_kafka_metadata(fixture->handle, 1, NULL, &metadata, TIMEOUT_MS) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return -1;
    }
    int leader_count = 0;
    for (int t = 0; t < metadata->topic_cnt; t++) {
        const rd_kafka_metadata_topic_t *topic = &metadata->topics[t];
        for (int p = 0; strcmp(topic->topic, fixture->topic) == 0 && p < topic->partition_cnt; p++) {
            leader_count += topic->partitions[p].leader >= 0;
        }
    }
    rd_kafka_metadata_destroy(metadata);
    return leader_count;
}

static bool leaders_answer(struct kafka_fixture *fixture)
{
    for (int partition = 0; partition < fixture->partition_count; partition++) {
        int64_t low = 0;
        int64_t high = 0;
        if (rd_kafka_query_watermark_offsets(fixture->handle, fixture->topic, partition, &low, &high, TIMEOUT_MS) !=
            RD_KAFKA_RESP_ERR_NO_ERROR) {
            return false;
        }
    }
    return true;
}

static bool await_leaders(struct kafka_fixture *fixture, int leader_count)
{
    for (int waited_ms = 0; waited_ms < TIMEOUT_MS; waited_ms += 20) {
        if (count_leaders(fixture) == leader_count && (leader_count == 0 || leaders_answer(fixture))) {
            return true;
        }
        nap();
    }
    return print_failure(fixture->topic, "its partitions have no leaders in time");
}

static void name_topic(char *ret_name)
{
    static unsigned count;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    format(ret_name, NAME_SIZE, "test.%ld.%lld.%u", (long)getpid(),
           (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000, count++);
}

struct kafka_fixture *kafka_fixture_new(int partition_count)
{
    return kafka_fixture_new_with(partition_count, NULL);
}

struct kafka_fixture *kafka_fixture_new_with(int partition_count, const char *const *settings)
{
    const char *bootstrap = getenv("ONCEWARD_TEST_KAFKA");
    if (bootstrap == NULL || bootstrap[0] == '\0') {
        print_failure(
            "ONCEWARD_TEST_KAFKA is not set",
            "this test needs a Kafka broker; tests/run starts one, docs/local-services.md says how to do it by hand");
        return NULL;
    }
    struct kafka_fixture *fixture = calloc(1, sizeof *fixture);
    assert(fixture != NULL && partition_count > 0);
    fixture->partition_count = partition_count;
    fixture->settings = settings;
    format(fixture->bootstrap, sizeof fixture->bootstrap, "%s", bootstrap);
    name_topic(fixture->topic);
    fixture->handle = open_handle(bootstrap);
    bool is_made = fixture->handle != NULL && print_version(fixture->handle) && create_topic(fixture) &&
                   await_leaders(fixture, partition_count);
    if (!is_made) {
        if (fixture->handle != NULL) {
            rd_kafka_destroy(fixture->handle);
        }
        free(fixture);
        return NULL;
    }
    return fixture;
}

void kafka_fixture_free(struct kafka_fixture **fixturep)
{
    struct kafka_fixture *fixture = *fixturep;
    if (fixture == NULL) {
        return;
    }
    if (!delete_topic(fixture)) {
        fprintf(stderr, "kafka_fixture: topic %s is left behind\n", fixture->topic);
    }
    rd_kafka_destroy(fixture->handle);
    free(fixture);
    *fixturep = NULL;
}

const char *kafka_fixture_topic(const struct kafka_fixture *fixture)
{
    return fixture->topic;
}

const char *kafka_fixture_bootstrap(const struct kafka_fixture *fixture)
{
    return fixture->bootstrap;
}

bool kafka_fixture_recreate(struct kafka_fixture *fixture)
{
    return delete_topic(fixture) && await_leaders(fixture, 0) && create_topic(fixture) &&
           await_leaders(fixture, fixture->partition_count);
}

long long kafka_fixture_end_offset(struct kafka_fixture *fixture, int partition)
{
    int64_t low = 0;
    int64_t high = 0;
    rd_kafka_resp_err_t code =
        rd_kafka_query_watermark_offsets(fixture->handle, fixture->topic, partition, &low, &high, TIMEOUT_MS);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        print_failure(fixture->topic, rd_kafka_err2str(code));
        return -1;
    }
    return high;
}
