/* SPDX-License-Identifier: Apache-2.0
 *
 * Each test is a process of its own, since a stop is for ever.
 */
#include "base/stop.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmocka_all.h"

/* Runs part in a child that has stop installed, and gives its status as waitpid has it. */
static int status_of(int (*part)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct err err = ERR_INIT;
        _exit(stop_init(&err) ? part() : 99);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static int asked_by_a_signal(void)
{
    if (stop_requested() || stop_wait_ms(0)) {
        return 1;
    }
    raise(SIGTERM);
    struct pollfd polled = {.fd = stop_fd(), .events = POLLIN};
    for (int i = 0; i < 2; i++) {
        if (!stop_requested() || !stop_wait_ms(10000) || poll(&polled, 1, 0) != 1) {
            return 2;
        }
    }
    raise(SIGTERM);
    return 0;
}

static int wait_without_a_signal(void)
{
    int64_t before_ms = clock_monotonic_ms();
    bool was_asked = stop_wait_ms(20);
    return was_asked || clock_monotonic_ms() - before_ms < 20;
}

static int asked_from_inside(void)
{
    stop_request();
    return !stop_wait_ms(10000);
}

static int interrupted_twice(void)
{
    raise(SIGINT);
    raise(SIGINT);
    return 0;
}

static int write_to_a_closed_pipe(void)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return 1;
    }
    close(ends[0]);
    return write(ends[1], "x", 1) != -1;
}

struct stop_case {
    const char *name;
    int (*part)(void);
    int status;
};

static const struct stop_case cases[] = {
    {"a signal sets the flag and the descriptor for ever", asked_by_a_signal, 0},
    {"a wait without a signal ends in time", wait_without_a_signal, 0},
    {"a stop from inside is the same", asked_from_inside, 0},
    {"a second interrupt ends the process", interrupted_twice, 130},
    {"a closed pipe does not end the process", write_to_a_closed_pipe, 0},
};

static void test_stop(void **state)
{
    const struct stop_case *mine = *state;
    int status = status_of(mine->part);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), mine->status);
}

int main(void)
{
    return RUN_CASES("stop", test_stop, cases);
}
