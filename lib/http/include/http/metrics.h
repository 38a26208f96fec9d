/* SPDX-License-Identifier: Apache-2.0
 *
 * A registry of counters, gauges and histograms with labels, and its text in
 * Prometheus' exposition format 0.0.4. Looking a metric up takes a lock, so do
 * it once and keep the pointer; updates are atomic and may come from any thread.
 */
#ifndef HTTP_METRICS_H
#define HTTP_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct metrics;
struct metric;

#define METRICS_BUCKET_COUNT_MAX 20

/* NULL, with a transient error, only when memory is out. */
struct metrics *metrics_new(struct err *err) MUST_CHECK;
void metrics_free(struct metrics **metricsp);

/* The one metric of this name and these labels; made at the first call. `labels` is a list of name, value, …,
 * NULL, or NULL for none; everything is copied. The pointer lives as long as the registry. Names of one
 * family must keep their type (asserted). Counters end in `_total`; units are base units (seconds, bytes). */
struct metric *metrics_counter(struct metrics *metrics, const char *name, const char *help, const char *const *labels);
struct metric *metrics_gauge(struct metrics *metrics, const char *name, const char *help, const char *const *labels);

/* `bounds` are the upper bounds of the buckets, rising; +Inf is added. NULL with 0 takes the default for
 * durations in seconds: 0.5 ms to 10 s. */
struct metric *metrics_histogram(struct metrics *metrics, const char *name, const char *help, const char *const *labels,
                                 const double *bounds, size_t bound_count);

void metric_add(struct metric *metric, uint64_t amount);  /* Counters. */
void metric_set(struct metric *metric, double value);     /* Gauges. */
void metric_observe(struct metric *metric, double value); /* Histograms. */

/* The whole registry as text, families sorted by name. Allocated, for free(); NULL when memory is out. */
char *metrics_text(struct metrics *metrics, size_t *ret_size);

#endif
