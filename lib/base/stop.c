/* SPDX-License-Identifier: Apache-2.0
 *
 * Being asked to stop. The handler does only what is async-signal-safe: an
 * atomic store and a write to an eventfd that nobody reads, so that it stays
 * readable for every poll.
 */
#include "base/stop.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

#define EXIT_INTERRUPTED_TWICE 130

static atomic_bool is_requested;
static atomic_int interrupt_count;
static int event_fd = -1;

void stop_request(void)
{
    int saved_errno = errno;
    atomic_store(&is_requested, true);
    if (event_fd >= 0) {
        uint64_t one = 1;
        /* It can only fail when the counter is full, and then the descriptor is readable. */
        ssize_t written = write(event_fd, &one, sizeof one);
        (void)written;
    }
    errno = saved_errno;
}

static void on_signal(int number)
{
    if (number == SIGINT && atomic_fetch_add(&interrupt_count, 1) > 0) {
        _exit(EXIT_INTERRUPTED_TWICE);
    }
    stop_request();
}

bool stop_init(struct err *err)
{
    assert(event_fd < 0);
    event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event_fd < 0) {
        return err_set(err, ERR_FATAL, "eventfd", "cannot make an eventfd: %s", strerror(errno));
    }
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    if (sigaction(SIGTERM, &action, NULL) != 0 || sigaction(SIGINT, &action, NULL) != 0 ||
        sigaction(SIGPIPE, &ignore, NULL) != 0) {
        return err_set(err, ERR_FATAL, "sigaction", "cannot install signal handlers: %s", strerror(errno));
    }
    return true;
}

int stop_fd(void)
{
    return event_fd;
}

bool stop_requested(void)
{
    return atomic_load(&is_requested);
}

bool stop_wait_ms(int64_t timeout_ms)
{
    assert(event_fd >= 0 && timeout_ms >= 0);
    int64_t deadline_ms = clock_monotonic_ms() + timeout_ms;
    while (!stop_requested()) {
        int64_t left_ms = deadline_ms - clock_monotonic_ms();
        if (left_ms <= 0) {
            return false;
        }
        struct pollfd waited = {.fd = event_fd, .events = POLLIN};
        int count = poll(&waited, 1, left_ms > INT_MAX ? INT_MAX : (int)left_ms);
        assert(count >= 0 || errno == EINTR);
    }
    return true;
}
