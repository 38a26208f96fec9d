/* SPDX-License-Identifier: Apache-2.0
 *
 * Which topics and partitions can be written to. A thread asks the cluster for
 * the topics that were asked about; the answers are read under a mutex. The
 * invariant: a topic is available only by an answer of the cluster.
 */
#include "kafka_private.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TOPIC_COUNT_MAX 4096
#define ASK_TIMEOUT_MS 1000
#define ASK_AGAIN_MIN_MS 50
#define ASK_AGAIN_MAX_MS 1000
#define ASK_IDLE_MS 5000

struct topic {
    char *name;
    rd_kafka_topic_t *handle; /* Makes the topic "locally known", so that one request asks for all. */
    bool is_open;             /* The cluster knows it, or refuses to tell us: then the broker shall judge. */
    int partition_count;
    bool *has_leader; /* By partition. */
};

struct kafka_topics {
    rd_kafka_t *handle;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_stopping;
    bool is_wanted;    /* Somebody waits for news. */
    bool is_reachable; /* The last request was answered. */
    struct topic *topics;
    size_t topic_count;
    size_t topic_capacity;
};

static struct topic *find(struct kafka_topics *topics, const char *name)
{
    for (size_t i = 0; i < topics->topic_count; i++) {
        if (strcmp(topics->topics[i].name, name) == 0) {
            return &topics->topics[i];
        }
    }
    return NULL;
}

static bool add(struct kafka_topics *topics, const char *name)
{
    if (topics->topic_count == TOPIC_COUNT_MAX) {
        return false;
    }
    if (topics->topic_count == topics->topic_capacity) {
        size_t capacity = topics->topic_capacity == 0 ? 8 : 2 * topics->topic_capacity;
        struct topic *grown = realloc(topics->topics, capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        topics->topics = grown;
        topics->topic_capacity = capacity;
    }
    struct topic topic = {.name = strdup(name), .handle = rd_kafka_topic_new(topics->handle, name, NULL)};
    if (topic.name == NULL || topic.handle == NULL) {
        free(topic.name);
        if (topic.handle != NULL) {
            rd_kafka_topic_destroy(topic.handle);
        }
        return false;
    }
    topics->topics[topics->topic_count++] = topic;
    return true;
}

static void learn(struct topic *topic, const rd_kafka_metadata_topic_t *answer)
{
    if (answer->err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED) {
        topic->is_open = true;
        topic->partition_count = 0;
        return;
    }
    topic->is_open = answer->err == RD_KAFKA_RESP_ERR_NO_ERROR && answer->partition_cnt > 0;
    if (!topic->is_open) {
        return;
    }
    bool *has_leader = realloc(topic->has_leader, (size_t)answer->partition_cnt * sizeof *has_leader);
    if (has_leader == NULL) {
        topic->is_open = false;
        return;
    }
    topic->has_leader = has_leader;
    topic->partition_count = answer->partition_cnt;
    memset(has_leader, 0, (size_t)answer->partition_cnt * sizeof *has_leader);
    for (int i = 0; i < answer->partition_cnt; i++) {
        int32_t id = answer->partitions[i].id;
        if (id >= 0 && id < answer->partition_cnt) {
            has_leader[id] = answer->partitions[i].leader >= 0;
        }
    }
}

static bool is_all_available(const struct kafka_topics *topics)
{
    for (size_t i = 0; i < topics->topic_count; i++) {
        const struct topic *topic = &topics->topics[i];
        if (!topic->is_open) {
            return false;
        }
        for (int partition = 0; partition < topic->partition_count; partition++) {
            if (!topic->has_leader[partition]) {
                return false;
            }
        }
    }
    return true;
}

/* One request; the mutex is not held meanwhile. */
static void ask(struct kafka_topics *topics)
{
    const rd_kafka_metadata_t *answer = NULL;
    pthread_mutex_unlock(&topics->mutex);
    rd_kafka_resp_err_t code = rd_kafka_metadata(topics->handle, 0, NULL, &answer, ASK_TIMEOUT_MS);
    pthread_mutex_lock(&topics->mutex);
    topics->is_reachable = code == RD_KAFKA_RESP_ERR_NO_ERROR;
    if (!topics->is_reachable) {
        return;
    }
    for (int i = 0; i < answer->topic_cnt; i++) {
        struct topic *topic = find(topics, answer->topics[i].topic);
        if (topic != NULL) {
            learn(topic, &answer->topics[i]);
        }
    }
    rd_kafka_metadata_destroy(answer);
}

static void wait_ms(struct kafka_topics *topics, int timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    while (!topics->is_stopping && !topics->is_wanted) {
        if (pthread_cond_timedwait(&topics->changed, &topics->mutex, &until) != 0) {
            break;
        }
    }
}

static void *run(void *arg)
{
    struct kafka_topics *topics = arg;
    int again_ms = ASK_AGAIN_MIN_MS;
    pthread_mutex_lock(&topics->mutex);
    while (!topics->is_stopping) {
        topics->is_wanted = false;
        ask(topics);
        if (topics->is_reachable && is_all_available(topics)) {
            again_ms = ASK_AGAIN_MIN_MS;
            wait_ms(topics, ASK_IDLE_MS);
        } else {
            wait_ms(topics, again_ms);
            again_ms = 2 * again_ms > ASK_AGAIN_MAX_MS ? ASK_AGAIN_MAX_MS : 2 * again_ms;
        }
    }
    pthread_mutex_unlock(&topics->mutex);
    return NULL;
}

struct kafka_topics *kafka_topics_new(rd_kafka_t *handle, struct err *err)
{
    assert(handle != NULL && err != NULL);
    struct kafka_topics *topics = calloc(1, sizeof *topics);
    if (topics == NULL) {
        err_set(err, ERR_FATAL, "memory", "no memory for the table of topics");
        return NULL;
    }
    topics->handle = handle;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&topics->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&topics->mutex, NULL);
    if (pthread_create(&topics->thread, NULL, run, topics) != 0) {
        err_set(err, ERR_FATAL, "thread", "cannot start the thread that watches topics");
        pthread_cond_destroy(&topics->changed);
        pthread_mutex_destroy(&topics->mutex);
        free(topics);
        return NULL;
    }
    return topics;
}

void kafka_topics_free(struct kafka_topics **topicsp)
{
    struct kafka_topics *topics = *topicsp;
    if (topics == NULL) {
        return;
    }
    pthread_mutex_lock(&topics->mutex);
    topics->is_stopping = true;
    pthread_cond_signal(&topics->changed);
    pthread_mutex_unlock(&topics->mutex);
    pthread_join(topics->thread, NULL);
    for (size_t i = 0; i < topics->topic_count; i++) {
        rd_kafka_topic_destroy(topics->topics[i].handle);
        free(topics->topics[i].name);
        free(topics->topics[i].has_leader);
    }
    free(topics->topics);
    pthread_cond_destroy(&topics->changed);
    pthread_mutex_destroy(&topics->mutex);
    free(topics);
    *topicsp = NULL;
}

static bool has_leader_for(const struct topic *topic, const char *key, size_t key_size)
{
    if (!topic->is_open || topic->partition_count == 0) {
        return topic->is_open;
    }
    int32_t partition =
        rd_kafka_msg_partitioner_murmur2_random(topic->handle, key, key_size, topic->partition_count, NULL, NULL);
    return partition >= 0 && partition < topic->partition_count && topic->has_leader[partition];
}

bool kafka_topics_is_available(struct kafka_topics *topics, const char *name, const char *key, size_t key_size)
{
    pthread_mutex_lock(&topics->mutex);
    struct topic *topic = find(topics, name);
    bool is_available = false;
    if (topic != NULL) {
        is_available = has_leader_for(topic, key, key_size);
    } else if (add(topics, name)) {
        topics->is_wanted = true;
        pthread_cond_signal(&topics->changed);
    }
    pthread_mutex_unlock(&topics->mutex);
    return is_available;
}

void kafka_topics_refresh(struct kafka_topics *topics)
{
    pthread_mutex_lock(&topics->mutex);
    topics->is_wanted = true;
    pthread_cond_signal(&topics->changed);
    pthread_mutex_unlock(&topics->mutex);
}

bool kafka_topics_is_reachable(struct kafka_topics *topics)
{
    pthread_mutex_lock(&topics->mutex);
    bool is_reachable = topics->is_reachable;
    pthread_mutex_unlock(&topics->mutex);
    return is_reachable;
}
