/* SPDX-License-Identifier: Apache-2.0
 *
 * The pump. A ticket is the index of a slot that knows its entry, so a late
 * report never meets freed memory. The invariant: an entry is SENT exactly
 * while a slot points to it.
 */
#include "relay_pump.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/failpoint.h"
#include "base/thread.h"

#define REPORT_BATCH 256

struct slot {
    struct relay_entry *entry; /* NULL: free. */
    size_t next_free;
};

struct relay_pump {
    struct relay_pump_options options;
    pthread_mutex_t mutex; /* Guards the three below against purge. */
    struct publisher *batch;
    struct publisher *single; /* NULL until a suspect comes. */
    struct err spent_why;
    atomic_bool is_spent;
    struct slot *slots;
    size_t slot_count;
    struct relay_entry **given_back; /* Room for all of them. */
    size_t first_free;               /* = slot_count: none. */
    struct publish_report reports[REPORT_BATCH];
    struct relay_pump_counts counts;
};

/* The mutex is held. */
static void spend(struct relay_pump *pump, const struct err *why)
{
    if (!atomic_exchange(&pump->is_spent, true)) {
        pump->spent_why = *why;
    }
}

static void spend_for(struct relay_pump *pump, const struct err *why)
{
    thread_lock(&pump->mutex);
    spend(pump, why);
    thread_unlock(&pump->mutex);
}

static void reset_slots(struct relay_pump *pump)
{
    for (size_t i = 0; i < pump->slot_count; i++) {
        pump->slots[i] = (struct slot){.entry = NULL, .next_free = i + 1};
    }
    pump->first_free = 0;
}

static struct publisher *open_publisher(struct relay_pump *pump, bool is_single, struct err *err)
{
    struct publisher *publisher = pump->options.open(pump->options.context, is_single, err);
    thread_lock(&pump->mutex);
    if (is_single) {
        pump->single = publisher;
    } else {
        pump->batch = publisher;
    }
    thread_unlock(&pump->mutex);
    return publisher;
}

static int compare_ids(const void *left, const void *right)
{
    int64_t one = (*(struct relay_entry *const *)left)->id;
    int64_t other = (*(struct relay_entry *const *)right)->id;
    return one < other ? -1 : one > other;
}

/* Every ticket without a report counts as not acknowledged: true, or else a duplicate. In order of id, in which they
 * will go out again. */
static void give_back(struct relay_pump *pump)
{
    struct publish_report lost = {.partition = -1, .offset = PUBLISH_OFFSET_UNKNOWN, .err = ERR_INIT};
    err_set(&lost.err, ERR_TRANSIENT, "publisher_closed", "the publisher was closed before its report");
    size_t count = 0;
    for (size_t i = 0; i < pump->slot_count; i++) {
        if (pump->slots[i].entry != NULL) {
            pump->given_back[count++] = pump->slots[i].entry;
        }
    }
    qsort(pump->given_back, count, sizeof pump->given_back[0], compare_ids);
    for (size_t i = 0; i < count; i++) {
        relay_window_report(pump->given_back[i], &lost);
    }
    pump->counts.failed += count;
    reset_slots(pump);
}

static void close_publishers(struct relay_pump *pump)
{
    thread_lock(&pump->mutex);
    struct publisher *batch = pump->batch;
    struct publisher *single = pump->single;
    pump->batch = NULL;
    pump->single = NULL;
    thread_unlock(&pump->mutex);
    if (batch != NULL) {
        batch->ops->close(batch);
    }
    if (single != NULL) {
        single->ops->close(single);
    }
    give_back(pump);
}

struct relay_pump *relay_pump_new(const struct relay_pump_options *options, struct err *err)
{
    assert(options->outstanding_count_max > 0);
    struct relay_pump *pump = calloc(1, sizeof *pump);
    struct slot *slots = calloc(2 * options->outstanding_count_max, sizeof *slots);
    struct relay_entry **given_back = calloc(2 * options->outstanding_count_max, sizeof(struct relay_entry *));
    if (pump == NULL || slots == NULL || given_back == NULL) {
        free(pump);
        free(slots);
        free(given_back);
        err_set(err, ERR_FATAL, "memory", "no memory for %zu events in flight", options->outstanding_count_max);
        return NULL;
    }
    pump->options = *options;
    pump->slots = slots;
    pump->given_back = given_back;
    pump->slot_count = 2 * options->outstanding_count_max;
    pthread_mutex_init(&pump->mutex, NULL);
    reset_slots(pump);
    if (open_publisher(pump, false, err) == NULL) {
        relay_pump_free(&pump);
    }
    return pump;
}

void relay_pump_free(struct relay_pump **pumpp)
{
    struct relay_pump *pump = *pumpp;
    *pumpp = NULL;
    if (pump != NULL) {
        close_publishers(pump);
        pthread_mutex_destroy(&pump->mutex);
        free(pump->slots);
        free(pump->given_back);
        free(pump);
    }
}

bool relay_pump_reopen(struct relay_pump *pump, struct err *err)
{
    close_publishers(pump);
    atomic_store(&pump->is_spent, false);
    if (open_publisher(pump, false, err) == NULL) {
        spend_for(pump, err);
        return false;
    }
    return true;
}

enum hand_over { HANDED_OVER, IS_FULL, IS_DELAYED };

static enum hand_over hand_over(struct relay_pump *pump, struct publisher *publisher, struct relay_entry *entry,
                                bool is_single, struct err *ret_why)
{
    if (pump->first_free == pump->slot_count) {
        return IS_FULL;
    }
    size_t ticket = pump->first_free;
    enum publish_outcome outcome = PUBLISH_QUEUED;
    struct err err = ERR_INIT;
    FAILPOINT("relay.before_send");
    if (publisher->ops->publish(publisher, entry->event, ticket, &outcome, &err)) {
        if (outcome == PUBLISH_FULL) {
            return IS_FULL;
        }
        pump->first_free = pump->slots[ticket].next_free;
        pump->slots[ticket].entry = entry;
        pump->counts.published++;
        relay_window_sent(entry, is_single);
        return HANDED_OVER;
    }
    if (err.kind == ERR_PERMANENT) { /* The client's own verdict is on this event alone. */
        pump->counts.refused++;
        relay_window_refuse(entry, &err);
        return HANDED_OVER;
    }
    if (err.kind == ERR_FATAL) {
        spend_for(pump, &err);
    }
    *ret_why = err;
    return IS_DELAYED;
}

static void send_all(struct relay_pump *pump, struct publisher *publisher, struct relay_window *window, bool is_single,
                     struct err *ret_why)
{
    struct relay_entry *entry;
    while (!atomic_load(&pump->is_spent) && (entry = relay_window_next(window, is_single)) != NULL) {
        enum hand_over result = hand_over(pump, publisher, entry, is_single, ret_why);
        if (result == IS_FULL) {
            relay_window_put_back(entry);
            return;
        }
        if (result == IS_DELAYED) {
            relay_window_delay(entry);
        }
    }
}

bool relay_pump_send(struct relay_pump *pump, struct relay_window *window, struct err *ret_why, struct err *err)
{
    send_all(pump, pump->batch, window, false, ret_why);
    if (relay_window_has_suspect(window) && !atomic_load(&pump->is_spent)) {
        if (pump->single == NULL && open_publisher(pump, true, err) == NULL) {
            return false;
        }
        send_all(pump, pump->single, window, true, ret_why);
    }
    return true;
}

static void dispatch(struct relay_pump *pump, const struct publish_report *report)
{
    assert(report->ticket < pump->slot_count);
    struct slot *slot = &pump->slots[report->ticket];
    struct relay_entry *entry = slot->entry;
    assert(entry != NULL);
    slot->entry = NULL;
    slot->next_free = pump->first_free;
    pump->first_free = (size_t)report->ticket;
    if (report->was_acknowledged) {
        pump->counts.acknowledged++;
    } else if (report->err.kind == ERR_PERMANENT && entry->is_single) {
        pump->counts.refused++;
    } else {
        pump->counts.failed++;
    }
    if (!report->was_acknowledged && report->err.kind == ERR_FATAL) {
        spend_for(pump, &report->err);
    }
    relay_window_report(entry, report);
}

static size_t collect_from(struct relay_pump *pump, struct publisher *publisher, int timeout_ms)
{
    size_t total = 0;
    size_t count;
    do {
        count = publisher->ops->collect(publisher, pump->reports, REPORT_BATCH, total == 0 ? timeout_ms : 0);
        for (size_t i = 0; i < count; i++) {
            dispatch(pump, &pump->reports[i]);
        }
        total += count;
    } while (count == REPORT_BATCH);
    return total;
}

size_t relay_pump_collect(struct relay_pump *pump, int timeout_ms)
{
    size_t count = 0;
    if (pump->single != NULL) {
        bool is_waiting = pump->single->ops->outstanding_count(pump->single) > 0;
        count = collect_from(pump, pump->single, is_waiting && timeout_ms > 1 ? 1 : 0);
    }
    if (pump->batch != NULL) {
        count += collect_from(pump, pump->batch, count == 0 ? timeout_ms : 0);
    }
    return count;
}

size_t relay_pump_outstanding_count(const struct relay_pump *pump)
{
    size_t count = pump->batch == NULL ? 0 : pump->batch->ops->outstanding_count(pump->batch);
    return count + (pump->single == NULL ? 0 : pump->single->ops->outstanding_count(pump->single));
}

void relay_pump_report_fds(const struct relay_pump *pump, int ret_fds[RELAY_PUMP_FD_COUNT])
{
    ret_fds[0] = pump->batch == NULL ? -1 : pump->batch->ops->report_fd(pump->batch);
    ret_fds[1] = pump->single == NULL ? -1 : pump->single->ops->report_fd(pump->single);
}

void relay_pump_purge(struct relay_pump *pump, const char *code, const char *text)
{
    struct err why = ERR_INIT;
    (void)err_set(&why, ERR_TRANSIENT, code, "%s", text);
    thread_lock(&pump->mutex);
    spend(pump, &why);
    if (pump->batch != NULL) {
        pump->batch->ops->purge(pump->batch);
    }
    if (pump->single != NULL) {
        pump->single->ops->purge(pump->single);
    }
    thread_unlock(&pump->mutex);
}

bool relay_pump_is_spent(const struct relay_pump *pump)
{
    return atomic_load(&pump->is_spent);
}

struct err relay_pump_spent_why(struct relay_pump *pump)
{
    assert(relay_pump_is_spent(pump));
    thread_lock(&pump->mutex);
    struct err why = pump->spent_why;
    thread_unlock(&pump->mutex);
    return why;
}

struct publisher *relay_pump_publisher(struct relay_pump *pump)
{
    return pump->batch;
}

const struct relay_pump_counts *relay_pump_counts(const struct relay_pump *pump)
{
    return &pump->counts;
}
