/* SPDX-License-Identifier: Apache-2.0
 *
 * A broker that does what the test wants: it acknowledges everything but the
 * n-th publish, which fails with a given kind, and tells the test of each
 * event in the order in which it was acknowledged.
 */
#ifndef SUPPORT_FAKE_PUBLISHER_H
#define SUPPORT_FAKE_PUBLISHER_H

#include <stdbool.h>
#include <stddef.h>

#include "domain/publisher.h"

struct fake_publisher_options {
    size_t fail_at;          /* 1 is the first publish; 0: none fails. */
    enum err_kind kind;      /* Of that failure, which comes as a report. */
    bool is_refusal_at_once; /* It comes from publish() instead. */
    const char *refused_key; /* Every event of this key is refused for good. */
    bool is_silent;          /* No report comes, until fake_publisher_speak. */
    /* Before the report is handed out; may be NULL. The event borrows until the call returns. */
    void (*acknowledged)(void *context, const struct event *event);
    void *context;
};

struct publisher *fake_publisher_new(const struct fake_publisher_options *options);

/* Reports come from now on, or not. */
void fake_publisher_set_silent(struct publisher *publisher, bool is_silent);

size_t fake_publisher_publish_count(const struct publisher *publisher);
bool fake_publisher_is_purged(const struct publisher *publisher);

#endif
