/* SPDX-License-Identifier: Apache-2.0
 *
 * What the consumer says about itself: counters, lag, and what readiness hangs
 * on.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "consumer_lag.h"
#include "consumer_private.h"
#include "db/db.h"
#include "http/health.h"
#include "http/metrics.h"

#define PROBE_MS 2000
#define PROBE_ASK_MS 300
#define STOPPED_LIST_SIZE 384

void consumer_measure_init(struct consumer *consumer)
{
    struct metrics *metrics = consumer->metrics;
    consumer->meters = (struct consumer_meters){
        .applied =
            metrics_counter(metrics, "onceward_consumer_applied_total", "Events whose effect was applied.", NULL),
        .duplicates = metrics_counter(metrics, "onceward_consumer_duplicates_total",
                                      "Deliveries of events that were applied before.", NULL),
        .dead_letters = metrics_counter(metrics, "onceward_consumer_dead_letters_total",
                                        "Records that were set aside with a reason.", NULL),
        .batches =
            metrics_counter(metrics, "onceward_consumer_batches_total", "Transactions that were committed.", NULL),
        .batch_records =
            metrics_counter(metrics, "onceward_consumer_batch_records_total", "Records in those transactions.", NULL),
        .assigned =
            metrics_gauge(metrics, "onceward_consumer_assigned_partitions", "Partitions of this process.", NULL),
        .stopped = metrics_gauge(metrics, "onceward_consumer_stopped_partitions",
                                 "Partitions that wait for an operator.", NULL),
    };
}

void consumer_measure_cursor(struct consumer *consumer, struct consumer_cursor *cursor)
{
    char partition[16];
    text_format(partition, sizeof partition, "%d", cursor->partition);
    const char *const labels[] = {"topic", cursor->topic, "partition", partition, NULL};
    cursor->lag = metrics_gauge(consumer->metrics, "onceward_consumer_lag_records",
                                "Records between the cursor and the end of the log.", labels);
}

static void tell(struct metric *metric, uint64_t now, uint64_t *told)
{
    metric_add(metric, now - *told);
    *told = now;
}

/* All that are stopped, each with its code, and what is written of the first, as far as there is room. */
static void tell_stopped(struct consumer *consumer, size_t stopped_count)
{
    char list[STOPPED_LIST_SIZE] = "";
    const struct consumer_cursor *first = NULL;
    for (size_t i = 0; i < consumer->cursors.count; i++) {
        const struct consumer_cursor *cursor = &consumer->cursors.items[i];
        if (cursor->state == CONSUMER_CURSOR_STOPPED) {
            size_t used = strlen(list);
            (void)text_format(list + used, sizeof list - used, "%s%s/%d %s", first == NULL ? "" : ", ", cursor->topic,
                              cursor->partition, cursor->reason.code);
            first = first == NULL ? cursor : first;
        }
    }
    if (first == NULL) {
        health_set_ready(consumer->health, "partitions");
    } else {
        health_set_unready(consumer->health, "partitions", "%zu stopped: %s; %s", stopped_count, list,
                           first->reason.text);
    }
}

static void tell_readiness(struct consumer *consumer, size_t stopped_count)
{
    struct health *health = consumer->health;
    tell_stopped(consumer, stopped_count);
    if (consumer->is_halted) {
        health_set_unready(health, "breaker", "too many dead letters; nothing is applied until a restart");
    } else {
        health_set_ready(health, "breaker");
    }
    if (consumer->is_unreachable) {
        health_set_unready(health, "kafka", "no broker answers");
    } else if (!consumer->is_assigned) {
        health_set_unready(health, "kafka", "no assignment from the group yet");
    } else {
        health_set_ready(health, "kafka");
    }
}

void consumer_measure_step(struct consumer *consumer)
{
    struct consumer_meters *meters = &consumer->meters;
    const struct consumer_counts *counts = &consumer->apply.counts;
    tell(meters->applied, counts->applied, &meters->told.applied);
    tell(meters->duplicates, counts->duplicates, &meters->told.duplicates);
    tell(meters->dead_letters, counts->dead_letters, &meters->told.dead_letters);
    tell(meters->batches, counts->batches, &meters->told.batches);
    tell(meters->batch_records, counts->batch_records, &meters->told.batch_records);
    metric_set(meters->assigned, (double)consumer->cursors.count);
    size_t stopped_count = 0;
    int64_t now_ms = clock_monotonic_ms();
    const struct consumer_cursor *still = NULL;
    for (size_t i = 0; i < consumer->cursors.count; i++) {
        struct consumer_cursor *cursor = &consumer->cursors.items[i];
        int64_t end = kafka_consumer_end_known(consumer->kafka, cursor->topic, cursor->partition);
        if (end >= cursor->next_offset) {
            metric_set(cursor->lag, (double)(end - cursor->next_offset));
        }
        if (consumer_lag_stands_still(cursor, end - cursor->next_offset, now_ms)) {
            still = still == NULL ? cursor : still;
        }
        if (cursor->state == CONSUMER_CURSOR_STOPPED) {
            stopped_count++;
        }
    }
    metric_set(meters->stopped, (double)stopped_count);
    tell_readiness(consumer, stopped_count);
    consumer_lag_tell(consumer->health, still, now_ms);
}

void consumer_measure_leave(struct consumer *consumer)
{
    consumer_measure_step(consumer);
    for (size_t i = 0; i < consumer->cursors.count; i++) {
        metric_set(consumer->cursors.items[i].lag, 0); /* Told by its new owner from now on. */
    }
}

void consumer_measure_probe(struct consumer *consumer, int64_t now_ms)
{
    if (!consumer->is_unreachable || now_ms < consumer->probe_at_ms) {
        return;
    }
    consumer->probe_at_ms = now_ms + PROBE_MS;
    int32_t count = 0;
    struct err err = ERR_INIT;
    if (kafka_reader_partition_count(consumer->reader, consumer->settings->topics.items[0], PROBE_ASK_MS, &count,
                                     &err)) {
        consumer->is_unreachable = false;
    }
}
