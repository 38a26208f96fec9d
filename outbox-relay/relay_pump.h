/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the lanes' windows and the publishers: hands over what is ready,
 * gives each report to its entry, and replaces publishers that are spent. A
 * second publisher, opened when it is first needed, sends suspects singly.
 */
#ifndef RELAY_PUMP_H
#define RELAY_PUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "domain/publisher.h"
#include "relay_window.h"

struct relay_pump;

struct relay_pump_options {
    /* Opens a publisher; is_single: each record is a batch of its own. */
    struct publisher *(*open)(void *context, bool is_single, struct err *err);
    void *context;
    size_t outstanding_count_max; /* Of each publisher. */
};

struct relay_pump_counts {
    uint64_t published;    /* Handed over. */
    uint64_t acknowledged; /* Known to be on the topic. */
    uint64_t refused;      /* Refused for good. */
    uint64_t failed;       /* Reported as neither: it will be published again. */
};

/* Opens the first publisher. NULL when that fails. */
struct relay_pump *relay_pump_new(const struct relay_pump_options *options, struct err *err) MUST_CHECK;

/* Closes the publishers: whatever was outstanding is given back to its window as not acknowledged. */
void relay_pump_free(struct relay_pump **pumpp);

/* Hands over what the window has ready, until it has no more or a publisher is full. What cannot go now is delayed in
 * the window. *ret_why is filled with the last reason for a delay. False only when a publisher cannot be opened. */
bool relay_pump_send(struct relay_pump *pump, struct relay_window *window, struct err *ret_why,
                     struct err *err) MUST_CHECK;

/* Waits up to timeout_ms for reports and gives them to their entries. Returns their number. */
size_t relay_pump_collect(struct relay_pump *pump, int timeout_ms);

size_t relay_pump_outstanding_count(const struct relay_pump *pump);

/* The publishers' descriptors that are readable when there is something to collect; -1 for none. Borrowed until
 * collect, reopen or free. */
#define RELAY_PUMP_FD_COUNT 2
void relay_pump_report_fds(const struct relay_pump *pump, int ret_fds[RELAY_PUMP_FD_COUNT]);

/* From any thread, at the lease's deadline: what is queued is not sent any more. The pump is spent then. code and text
 * say why. */
void relay_pump_purge(struct relay_pump *pump, const char *code, const char *text);

/* A publisher cannot go on: it had a fatal error or was purged. */
bool relay_pump_is_spent(const struct relay_pump *pump);

/* The first reason why, for a pump that is spent. */
struct err relay_pump_spent_why(struct relay_pump *pump);

/* New publishers in place of the old. What was outstanding is ready again: its fate is unknown, and it is published
 * again from the settled place on, in order. */
bool relay_pump_reopen(struct relay_pump *pump, struct err *err) MUST_CHECK;

/* The publisher of batches, borrowed until reopen or free. */
struct publisher *relay_pump_publisher(struct relay_pump *pump);

const struct relay_pump_counts *relay_pump_counts(const struct relay_pump *pump);

#endif
