/* SPDX-License-Identifier: Apache-2.0
 *
 * The lease's thread. The deadline counts from before the renewal was sent, on
 * the monotonic clock, so it lies before the end that the database knows. The
 * invariant: state HELD is never read after the deadline.
 */
#include "relay_lease.h"

#include <assert.h>
#include <stdlib.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/rand.h"
#include "base/text.h"
#include "base/thread.h"
#include "db/db_lease.h"

struct relay_lease {
    struct relay_lease_options options;
    struct thread thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_stopping;
    bool is_ousted;
    bool is_held;
    int64_t deadline_ms;
    uint64_t epoch;
    char reason[ERR_TEXT_SIZE];
    /* The thread's alone: */
    struct db *db;
    bool is_registered;
    struct backoff backoff;
};

int64_t relay_lease_deadline(int64_t sent_ms, int64_t lease_ms, int64_t margin_ms)
{
    assert(margin_ms >= 0 && margin_ms < lease_ms);
    return sent_ms + lease_ms - margin_ms;
}

/* With the mutex held. True when the deadline passed just now. */
static bool expire_if_due(struct relay_lease *lease)
{
    if (!lease->is_held || clock_monotonic_ms() < lease->deadline_ms) {
        return false;
    }
    lease->is_held = false;
    lease->epoch++;
    return true;
}

enum relay_lease_state relay_lease_state(struct relay_lease *lease, uint64_t *ret_epoch)
{
    thread_lock(&lease->mutex);
    bool has_expired = expire_if_due(lease);
    enum relay_lease_state state = lease->is_ousted ? RELAY_LEASE_OUSTED
                                   : lease->is_held ? RELAY_LEASE_HELD
                                                    : RELAY_LEASE_NONE;
    *ret_epoch = lease->epoch;
    thread_unlock(&lease->mutex);
    if (has_expired) {
        lease->options.expired(lease->options.context);
    }
    return state;
}

void relay_lease_reason(struct relay_lease *lease, char *ret_reason, size_t size)
{
    thread_lock(&lease->mutex);
    text_copy(ret_reason, size, lease->is_held ? "" : lease->reason);
    thread_unlock(&lease->mutex);
}

static bool renew(struct relay_lease *lease, bool *ret_is_held, struct err *err)
{
    if (lease->db == NULL) {
        lease->db = db_open(&lease->options.database, err);
    } else if (!db_is_usable(lease->db) && !db_reset(lease->db, err)) {
        return false;
    }
    if (lease->db == NULL) {
        return false;
    }
    if (lease->is_registered) {
        return db_lease_renew(lease->db, &lease->options.owner, ret_is_held, err);
    }
    *ret_is_held = db_lease_register(lease->db, &lease->options.owner, err);
    lease->is_registered = *ret_is_held;
    return *ret_is_held;
}

/* One try. Returns how long to wait before the next. */
static int64_t turn(struct relay_lease *lease)
{
    struct err err = ERR_INIT;
    bool is_held = false;
    int64_t sent_ms = clock_monotonic_ms();
    bool is_answered = renew(lease, &is_held, &err);
    FAILPOINT("relay.after_renewal");
    thread_lock(&lease->mutex);
    bool has_expired = expire_if_due(lease);
    if (is_answered && is_held) {
        lease->is_held = true;
        lease->deadline_ms = relay_lease_deadline(sent_ms, lease->options.owner.lease_ms, lease->options.margin_ms);
        backoff_reset(&lease->backoff);
        has_expired |= expire_if_due(lease);
    } else if (is_answered) {
        lease->is_ousted = true;
        lease->is_held = false;
        lease->epoch++;
        has_expired = true;
    } else {
        text_copy(lease->reason, sizeof lease->reason, err.text);
    }
    bool is_ousted = lease->is_ousted;
    thread_unlock(&lease->mutex);
    if (has_expired) {
        lease->options.expired(lease->options.context);
        log_warning("relay.lease_lost", LOG_FIELDS(LOG_ERR(&err)), "%s",
                    is_ousted ? "another process has our name; we stop" : err.text);
    }
    if (is_answered) {
        return lease->options.renew_ms;
    }
    log_debug("relay.lease_not_renewed", LOG_FIELDS(LOG_ERR(&err)), "%s", err.text);
    int64_t wait_ms = backoff_next_ms(&lease->backoff, rand_uint32());
    backoff_fail(&lease->backoff);
    return wait_ms;
}

/* Sleeps until then or until asked to stop; wakes at the deadline on its way. */
static void sleep_until(struct relay_lease *lease, int64_t until_ms)
{
    thread_lock(&lease->mutex);
    bool has_expired = false;
    while (!lease->is_stopping && clock_monotonic_ms() < until_ms) {
        has_expired |= expire_if_due(lease);
        if (has_expired) {
            thread_unlock(&lease->mutex);
            lease->options.expired(lease->options.context);
            thread_lock(&lease->mutex);
            has_expired = false;
        }
        bool is_first = lease->is_held && lease->deadline_ms < until_ms;
        thread_cond_wait_until(&lease->changed, &lease->mutex, is_first ? lease->deadline_ms : until_ms);
    }
    thread_unlock(&lease->mutex);
}

static bool is_over(struct relay_lease *lease)
{
    thread_lock(&lease->mutex);
    bool is_over = lease->is_stopping || lease->is_ousted;
    thread_unlock(&lease->mutex);
    return is_over;
}

static void run(void *context)
{
    struct relay_lease *lease = context;
    while (!is_over(lease)) {
        int64_t wait_ms = turn(lease);
        sleep_until(lease, clock_monotonic_ms() + wait_ms);
    }
    struct err err = ERR_INIT;
    if (lease->is_registered && lease->db != NULL && db_is_usable(lease->db) &&
        !db_lease_resign(lease->db, &lease->options.owner, &err)) {
        log_debug("relay.not_resigned", LOG_FIELDS(LOG_ERR(&err)), "%s", err.text);
    }
    db_close(&lease->db);
}

struct relay_lease *relay_lease_start(const struct relay_lease_options *options, struct err *err)
{
    assert(options->expired != NULL && options->renew_ms > 0);
    struct relay_lease *lease = calloc(1, sizeof *lease);
    if (lease == NULL) {
        err_set(err, ERR_FATAL, "memory", "no memory for the lease");
        return NULL;
    }
    lease->options = *options;
    lease->backoff = (struct backoff){.first_ms = 100, .max_ms = 2000};
    text_copy(lease->reason, sizeof lease->reason, "not registered yet");
    pthread_mutex_init(&lease->mutex, NULL);
    thread_cond_init(&lease->changed);
    if (!thread_start(&lease->thread, "lease", run, lease, err)) {
        pthread_cond_destroy(&lease->changed);
        pthread_mutex_destroy(&lease->mutex);
        free(lease);
        return NULL;
    }
    return lease;
}

void relay_lease_stop(struct relay_lease **leasep)
{
    struct relay_lease *lease = *leasep;
    *leasep = NULL;
    if (lease == NULL) {
        return;
    }
    thread_lock(&lease->mutex);
    lease->is_stopping = true;
    pthread_cond_signal(&lease->changed);
    thread_unlock(&lease->mutex);
    thread_join(&lease->thread);
    pthread_cond_destroy(&lease->changed);
    pthread_mutex_destroy(&lease->mutex);
    free(lease);
}
