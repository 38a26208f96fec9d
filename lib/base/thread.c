/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads with their results looked at. Signals that ask for a stop are left
 * to the main thread.
 */
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

#define THREAD_NAME_SIZE 16 /* The kernel's limit. */

static void *thread_main(void *argument)
{
    struct thread *thread = argument;
    thread->run(thread->context);
    return NULL;
}

bool thread_start(struct thread *thread, const char *name, void (*run)(void *context), void *context, struct err *err)
{
    assert(!thread->is_running && run != NULL);
    thread->run = run;
    thread->context = context;
    sigset_t blocked;
    sigset_t before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGINT);
    int masked = pthread_sigmask(SIG_BLOCK, &blocked, &before);
    assert(masked == 0);
    int result = pthread_create(&thread->id, NULL, thread_main, thread);
    masked = pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert(masked == 0);
    if (result != 0) {
        return err_set(err, ERR_TRANSIENT, "thread", "cannot start thread %s: %s", name, strerror(result));
    }
    thread->is_running = true;
    char short_name[THREAD_NAME_SIZE];
    text_copy(short_name, sizeof short_name, name);
    pthread_setname_np(thread->id, short_name);
    return true;
}

void thread_join(struct thread *thread)
{
    if (thread->is_running) {
        int result = pthread_join(thread->id, NULL);
        assert(result == 0);
        thread->is_running = false;
    }
}

void thread_lock(pthread_mutex_t *mutex)
{
    int result = pthread_mutex_lock(mutex);
    assert(result == 0);
}

void thread_unlock(pthread_mutex_t *mutex)
{
    int result = pthread_mutex_unlock(mutex);
    assert(result == 0);
}

void thread_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    int result = pthread_condattr_init(&attributes);
    assert(result == 0);
    result = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    assert(result == 0);
    result = pthread_cond_init(cond, &attributes);
    assert(result == 0);
    pthread_condattr_destroy(&attributes);
}

bool thread_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ms)
{
    struct timespec deadline = {.tv_sec = deadline_ms / 1000, .tv_nsec = deadline_ms % 1000 * 1000000};
    int result = pthread_cond_timedwait(cond, mutex, &deadline);
    assert(result == 0 || result == ETIMEDOUT);
    return result == 0;
}
