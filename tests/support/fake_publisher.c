/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake broker. What is published is copied as far as a test looks at it.
 */
#include "fake_publisher.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUTSTANDING_COUNT_MAX 20000

struct record {
    uint64_t ticket;
    struct event event; /* key, topic and value are copies. */
    bool fails;
};

struct fake_publisher {
    struct publisher publisher; /* First. */
    struct fake_publisher_options options;
    struct record *records; /* A ring. */
    size_t first;
    size_t count;
    size_t publish_count;
    bool is_purged;
};

static char *copy(const void *data, size_t size)
{
    char *copied = malloc(size + 1);
    assert(copied != NULL);
    memcpy(copied, data, size);
    copied[size] = '\0';
    return copied;
}

static bool is_refused(const struct fake_publisher *fake, const struct event *event)
{
    return fake->options.refused_key != NULL && strcmp(fake->options.refused_key, event->key) == 0;
}

static bool publish(struct publisher *publisher, const struct event *event, uint64_t ticket,
                    enum publish_outcome *ret_outcome, struct err *err)
{
    struct fake_publisher *fake = (struct fake_publisher *)publisher;
    if (fake->is_purged) {
        return err_set(err, ERR_TRANSIENT, "publisher_purged", "purged");
    }
    if (fake->count == OUTSTANDING_COUNT_MAX) {
        *ret_outcome = PUBLISH_FULL;
        return true;
    }
    bool fails = ++fake->publish_count == fake->options.fail_at;
    if (fails && fake->options.is_refusal_at_once) {
        return err_set(err, fake->options.kind, "fake", "refused at once");
    }
    struct record *record = &fake->records[(fake->first + fake->count++) % OUTSTANDING_COUNT_MAX];
    *record = (struct record){.ticket = ticket, .event = *event, .fails = fails};
    record->event.key = copy(event->key, strlen(event->key));
    record->event.topic = copy(event->topic, strlen(event->topic));
    record->event.value.data = copy(event->value.data, event->value.size);
    *ret_outcome = PUBLISH_QUEUED;
    return true;
}

static struct publish_report report_of(struct fake_publisher *fake, struct record *record)
{
    struct publish_report report = {.ticket = record->ticket, .partition = -1, .offset = PUBLISH_OFFSET_UNKNOWN};
    if (fake->is_purged) {
        err_set(&report.err, ERR_TRANSIENT, "_PURGE_QUEUE", "purged");
    } else if (is_refused(fake, &record->event)) {
        err_set(&report.err, ERR_PERMANENT, "MSG_SIZE_TOO_LARGE", "refused");
    } else if (record->fails) {
        err_set(&report.err, fake->options.kind, "fake", "failed as asked");
    } else {
        report.was_acknowledged = true;
        report.partition = 0;
        report.offset = record->event.outbox_id;
        if (fake->options.acknowledged != NULL) {
            fake->options.acknowledged(fake->options.context, &record->event);
        }
    }
    return report;
}

static void record_done(struct record *record)
{
    free((void *)(uintptr_t)record->event.key);
    free((void *)(uintptr_t)record->event.topic);
    free((void *)(uintptr_t)record->event.value.data);
}

static size_t collect(struct publisher *publisher, struct publish_report *ret_reports, size_t report_count_max,
                      int timeout_ms)
{
    struct fake_publisher *fake = (struct fake_publisher *)publisher;
    size_t count = 0;
    if (fake->options.is_silent && !fake->is_purged) {
        usleep((useconds_t)timeout_ms * 1000);
        return 0;
    }
    while (count < report_count_max && fake->count > 0) {
        struct record *record = &fake->records[fake->first];
        ret_reports[count++] = report_of(fake, record);
        record_done(record);
        fake->first = (fake->first + 1) % OUTSTANDING_COUNT_MAX;
        fake->count--;
    }
    return count;
}

static void purge(struct publisher *publisher)
{
    ((struct fake_publisher *)publisher)->is_purged = true;
}

static size_t outstanding_count(const struct publisher *publisher)
{
    return ((const struct fake_publisher *)publisher)->count;
}

static int report_fd(const struct publisher *publisher)
{
    (void)publisher;
    return -1;
}

static void close_fake(struct publisher *publisher)
{
    struct fake_publisher *fake = (struct fake_publisher *)publisher;
    for (; fake->count > 0; fake->count--) {
        record_done(&fake->records[fake->first]);
        fake->first = (fake->first + 1) % OUTSTANDING_COUNT_MAX;
    }
    free(fake->records);
    free(fake);
}

static const struct publisher_ops fake_ops = {
    .publish = publish,
    .collect = collect,
    .purge = purge,
    .outstanding_count = outstanding_count,
    .report_fd = report_fd,
    .close = close_fake,
};

struct publisher *fake_publisher_new(const struct fake_publisher_options *options)
{
    struct fake_publisher *fake = calloc(1, sizeof *fake);
    assert(fake != NULL);
    fake->publisher.ops = &fake_ops;
    fake->options = *options;
    fake->records = calloc(OUTSTANDING_COUNT_MAX, sizeof *fake->records);
    assert(fake->records != NULL);
    return &fake->publisher;
}

void fake_publisher_set_silent(struct publisher *publisher, bool is_silent)
{
    ((struct fake_publisher *)publisher)->options.is_silent = is_silent;
}

size_t fake_publisher_publish_count(const struct publisher *publisher)
{
    return ((const struct fake_publisher *)publisher)->publish_count;
}

bool fake_publisher_is_purged(const struct publisher *publisher)
{
    return ((const struct fake_publisher *)publisher)->is_purged;
}
