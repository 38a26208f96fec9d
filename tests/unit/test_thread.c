/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include "base/clock.h"
#include "cmocka_all.h"

struct meeting {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool has_arrived;
};

static void arrive(void *context)
{
    struct meeting *meeting = context;
    thread_lock(&meeting->mutex);
    meeting->has_arrived = true;
    pthread_cond_signal(&meeting->cond);
    thread_unlock(&meeting->mutex);
}

static void test_thread_meets_at_a_condition(void **state)
{
    (void)state;
    struct meeting meeting = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct thread thread = {0};
    struct err err = ERR_INIT;
    thread_cond_init(&meeting.cond);
    thread_lock(&meeting.mutex);
    int64_t now_ms = clock_monotonic_ms();
    while (thread_cond_wait_until(&meeting.cond, &meeting.mutex, now_ms + 10)) {
    }
    assert_false(meeting.has_arrived);
    assert_true(clock_monotonic_ms() >= now_ms + 10);
    assert_true(thread_start(&thread, "a name that is too long for the kernel", arrive, &meeting, &err));
    while (!meeting.has_arrived) {
        assert_true(thread_cond_wait_until(&meeting.cond, &meeting.mutex, clock_monotonic_ms() + 10000));
    }
    thread_unlock(&meeting.mutex);
    thread_join(&thread);
    thread_join(&thread);
    assert_false(thread.is_running);
    pthread_cond_destroy(&meeting.cond);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_thread_meets_at_a_condition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
