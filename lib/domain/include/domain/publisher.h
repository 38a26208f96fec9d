/* SPDX-License-Identifier: Apache-2.0
 *
 * The publisher port: what the relay needs of a broker. Two implementations:
 * Kafka (lib/kafka) and the fake of the tests that fails on demand.
 */
#ifndef DOMAIN_PUBLISHER_H
#define DOMAIN_PUBLISHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "domain/event.h"

struct publisher;

#define PUBLISH_OFFSET_UNKNOWN (-1)

/* The broker's word on one event, exactly one per accepted publish. */
struct publish_report {
    uint64_t ticket; /* The caller's own number, given back as it was. */
    bool was_acknowledged;
    int32_t partition; /* -1 unless acknowledged. */
    int64_t offset;    /* PUBLISH_OFFSET_UNKNOWN where the broker did not say. */
    struct err err;    /* Set unless acknowledged. PERMANENT: a verdict on this message. TRANSIENT: it may
                        * or may not be on the topic. FATAL: the handle is spent, open a new one. */
};

enum publish_outcome {
    PUBLISH_QUEUED, /* A report will come. */
    PUBLISH_FULL,   /* Back-pressure: collect reports, then try again. No report will come. */
};

struct publisher_ops {
    /* Queues one event. Copies what it needs; does not block. False: no report will come. */
    bool (*publish)(struct publisher *publisher, const struct event *event, uint64_t ticket,
                    enum publish_outcome *ret_outcome, struct err *err);
    /* Waits up to timeout_ms for reports and writes up to report_count_max of them. */
    size_t (*collect)(struct publisher *publisher, struct publish_report *ret_reports, size_t report_count_max,
                      int timeout_ms);
    /* Discards what has not been sent yet and gives up on what has: every outstanding ticket gets a
     * report, which collect hands out. Used at the lease's deadline, and the only operation for other
     * threads. Nothing can be published afterwards. Does not block for long. */
    void (*purge)(struct publisher *publisher);
    /* Tickets without a report yet. */
    size_t (*outstanding_count)(const struct publisher *publisher);
    /* A descriptor that is readable when collect may have something to hand out, for who waits on more than that;
     * collect makes it unreadable. -1: there is none, one has to look. Owned by the publisher. */
    int (*report_fd)(const struct publisher *publisher);
    void (*close)(struct publisher *publisher);
};

/* The first member of every implementation. */
struct publisher {
    const struct publisher_ops *ops;
};

#endif
