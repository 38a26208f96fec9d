/* SPDX-License-Identifier: Apache-2.0
 *
 * The waker. The thread exists because the library's request waits for its
 * answer. The invariant: one wake for each time that the queue was full.
 */
#include "kafka_waker_private.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"

#define FIRST_VERSION_WITHOUT 0x02020000
#define REQUEST_TIMEOUT_MS 500
#define IDLE_MS 60000
#define TOPIC_SIZE 250

struct kafka_waker {
    rd_kafka_t *handle;
    rd_kafka_queue_t *queue;
    size_t record_count_max;
    size_t size_max;
    bool was_full; /* Since the last wake. */
    struct thread thread;
    pthread_mutex_t mutex; /* Guards what follows. */
    pthread_cond_t changed;
    bool is_stopping;
    bool is_wanted;
    char topic[TOPIC_SIZE]; /* Whose leader is to be woken. */
    int32_t partition;
};

bool kafka_waker_is_needed(void)
{
    return rd_kafka_version() < FIRST_VERSION_WITHOUT;
}

static bool await_wish(struct kafka_waker *waker, char ret_topic[TOPIC_SIZE], int32_t *ret_partition)
{
    thread_lock(&waker->mutex);
    while (!waker->is_wanted && !waker->is_stopping) {
        (void)thread_cond_wait_until(&waker->changed, &waker->mutex, clock_monotonic_ms() + IDLE_MS);
    }
    bool is_going_on = !waker->is_stopping;
    waker->is_wanted = false;
    text_copy(ret_topic, TOPIC_SIZE, waker->topic);
    *ret_partition = waker->partition;
    thread_unlock(&waker->mutex);
    return is_going_on;
}

/* The answer does not matter, nor whether there is one. */
static void run(void *context)
{
    struct kafka_waker *waker = context;
    char topic[TOPIC_SIZE];
    int32_t partition;
    while (await_wish(waker, topic, &partition)) {
        int64_t low;
        int64_t high;
        (void)rd_kafka_query_watermark_offsets(waker->handle, topic, partition, &low, &high, REQUEST_TIMEOUT_MS);
    }
}

struct kafka_waker *kafka_waker_new(rd_kafka_t *handle, rd_kafka_queue_t *queue, size_t record_count_max,
                                    size_t size_max, struct err *err)
{
    assert(record_count_max > 0 && size_max > 0);
    struct kafka_waker *waker = calloc(1, sizeof *waker);
    if (waker == NULL) {
        err_set(err, ERR_FATAL, "out_of_memory", "waker");
        return NULL;
    }
    waker->handle = handle;
    waker->queue = queue;
    waker->record_count_max = record_count_max;
    waker->size_max = size_max;
    pthread_mutex_init(&waker->mutex, NULL);
    thread_cond_init(&waker->changed);
    if (!thread_start(&waker->thread, "kafka_waker", run, waker, err)) {
        kafka_waker_free(&waker);
    }
    return waker;
}

void kafka_waker_free(struct kafka_waker **wakerp)
{
    struct kafka_waker *waker = *wakerp;
    *wakerp = NULL;
    if (waker == NULL) {
        return;
    }
    thread_lock(&waker->mutex);
    waker->is_stopping = true;
    pthread_cond_signal(&waker->changed);
    thread_unlock(&waker->mutex);
    thread_join(&waker->thread);
    pthread_cond_destroy(&waker->changed);
    pthread_mutex_destroy(&waker->mutex);
    free(waker);
}

static void wish(struct kafka_waker *waker, const rd_kafka_message_t *taken)
{
    thread_lock(&waker->mutex);
    waker->is_wanted = true;
    text_copy(waker->topic, sizeof waker->topic, rd_kafka_topic_name(taken->rkt));
    waker->partition = taken->partition;
    pthread_cond_signal(&waker->changed);
    thread_unlock(&waker->mutex);
}

/* The queue tells its records, not its bytes: what waits is taken to be as large as what comes out. */
void kafka_waker_look(struct kafka_waker *waker, const rd_kafka_message_t *taken)
{
    if (waker == NULL) {
        return;
    }
    size_t count = rd_kafka_queue_length(waker->queue);
    size_t size = count * (taken->len + taken->key_len);
    if (count >= waker->record_count_max / 4 * 3 || size >= waker->size_max / 4 * 3) {
        waker->was_full = true;
    } else if (waker->was_full && count < waker->record_count_max / 2 && size < waker->size_max / 2) {
        waker->was_full = false;
        wish(waker, taken);
    }
}
