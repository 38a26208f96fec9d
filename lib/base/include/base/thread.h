/* SPDX-License-Identifier: Apache-2.0
 *
 * POSIX threads with their results looked at: the calls that can only fail by
 * our own mistake assert, starting a thread can fail and says so.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct thread {
    pthread_t id;
    bool is_running; /* Between thread_start and thread_join. */
    void (*run)(void *context);
    void *context;
};

/* Runs run(context) in a thread of this name (at most 15 characters are kept). SIGTERM and SIGINT are blocked in it.
 * thread stays at its place until joined. Transient error when the system refuses. */
bool thread_start(struct thread *thread, const char *name, void (*run)(void *context), void *context,
                  struct err *err) MUST_CHECK;

/* Waits for its end. Nothing happens when it is not running. */
void thread_join(struct thread *thread);

void thread_lock(pthread_mutex_t *mutex);
void thread_unlock(pthread_mutex_t *mutex);

/* A condition whose deadlines are on the monotonic clock. */
void thread_cond_init(pthread_cond_t *cond);

/* False when the deadline (clock_monotonic_ms) has passed. May also wake for nothing, as conditions do. */
bool thread_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ms);

#endif
