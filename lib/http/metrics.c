/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry is an insert-only list under a lock; a metric, once made, never
 * moves and never goes, so updates touch nothing but its own atomics.
 */
#include "http/metrics.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric {
    struct metric *next; /* Sorted by name, then by label text. */
    enum metric_type type;
    char *name;
    char *help;
    char *labels; /* `a="b",c="d"`, escaped; "" for none. */
    _Atomic uint64_t count;
    _Atomic double value; /* A gauge's value, a histogram's sum. */
    double bounds[METRICS_BUCKET_COUNT_MAX];
    size_t bound_count;
    _Atomic uint64_t buckets[METRICS_BUCKET_COUNT_MAX]; /* Not cumulative. */
};

struct metrics {
    pthread_mutex_t lock;
    struct metric *first;
};

static const double duration_bounds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                         0.1,    0.25,  0.5,    1.0,   2.5,  5.0,   10.0};

static const char *type_name(enum metric_type type)
{
    static const char *const names[] = {"counter", "gauge", "histogram"};
    return names[type];
}

/* Prometheus escapes backslash and newline everywhere, the quote in label values only. */
static void write_escaped(FILE *out, const char *text, bool is_label)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            fputs("\\n", out);
        } else if (*text == '\\' || (is_label && *text == '"')) {
            fputc('\\', out);
            fputc(*text, out);
        } else {
            fputc(*text, out);
        }
    }
}

/* Ends a stream into memory. NULL when some of it found no memory: a part of the text would look like a whole one. */
static char *finish_text(FILE *out, char **text)
{
    bool is_whole = !ferror(out);
    if (fclose(out) != 0 || !is_whole) {
        free(*text);
        *text = NULL;
    }
    return *text;
}

static char *label_text(const char *const *labels)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    for (size_t i = 0; labels != NULL && labels[i] != NULL; i += 2) {
        assert(labels[i + 1] != NULL);
        fprintf(out, "%s%s=\"", i == 0 ? "" : ",", labels[i]);
        write_escaped(out, labels[i + 1], true);
        fputc('"', out);
    }
    return finish_text(out, &text);
}

static int compare(const struct metric *metric, const char *name, const char *labels)
{
    int order = strcmp(metric->name, name);
    return order != 0 ? order : strcmp(metric->labels, labels);
}

static void metric_free(struct metric *metric)
{
    free(metric->name);
    free(metric->help);
    free(metric->labels);
    free(metric);
}

static struct metric *metric_new(enum metric_type type, const char *name, const char *help, const char *labels)
{
    struct metric *metric = calloc(1, sizeof *metric);
    if (metric == NULL) {
        return NULL;
    }
    metric->type = type;
    metric->name = strdup(name);
    metric->help = strdup(help);
    metric->labels = strdup(labels);
    if (metric->name == NULL || metric->help == NULL || metric->labels == NULL) {
        metric_free(metric);
        return NULL;
    }
    return metric;
}

/* Memory for a handful of metrics at start is a precondition of running at all, hence the asserts. */
static struct metric *find_or_make(struct metrics *metrics, enum metric_type type, const char *name, const char *help,
                                   const char *const *labels)
{
    assert(metrics != NULL && name != NULL && help != NULL);
    char *text = label_text(labels);
    assert(text != NULL);
    pthread_mutex_lock(&metrics->lock);
    struct metric **place = &metrics->first;
    while (*place != NULL && compare(*place, name, text) < 0) {
        place = &(*place)->next;
    }
    if (*place == NULL || compare(*place, name, text) != 0) {
        struct metric *metric = metric_new(type, name, help, text);
        assert(metric != NULL);
        metric->next = *place;
        *place = metric;
    }
    struct metric *found = *place;
    pthread_mutex_unlock(&metrics->lock);
    free(text);
    assert(found->type == type);
    return found;
}

static void add_double(_Atomic double *target, double amount)
{
    double seen = atomic_load(target);
    while (!atomic_compare_exchange_weak(target, &seen, seen + amount)) {
    }
}

struct metrics *metrics_new(struct err *err)
{
    struct metrics *metrics = calloc(1, sizeof *metrics);
    if (metrics == NULL) {
        (void)err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for metrics");
        return NULL;
    }
    pthread_mutex_init(&metrics->lock, NULL);
    return metrics;
}

void metrics_free(struct metrics **metricsp)
{
    struct metrics *metrics = *metricsp;
    *metricsp = NULL;
    if (metrics == NULL) {
        return;
    }
    while (metrics->first != NULL) {
        struct metric *metric = metrics->first;
        metrics->first = metric->next;
        metric_free(metric);
    }
    pthread_mutex_destroy(&metrics->lock);
    free(metrics);
}

struct metric *metrics_counter(struct metrics *metrics, const char *name, const char *help, const char *const *labels)
{
    return find_or_make(metrics, METRIC_COUNTER, name, help, labels);
}

struct metric *metrics_gauge(struct metrics *metrics, const char *name, const char *help, const char *const *labels)
{
    return find_or_make(metrics, METRIC_GAUGE, name, help, labels);
}

struct metric *metrics_histogram(struct metrics *metrics, const char *name, const char *help, const char *const *labels,
                                 const double *bounds, size_t bound_count)
{
    if (bounds == NULL) {
        bounds = duration_bounds;
        bound_count = sizeof duration_bounds / sizeof *duration_bounds;
    }
    assert(bound_count > 0 && bound_count <= METRICS_BUCKET_COUNT_MAX);
    struct metric *metric = find_or_make(metrics, METRIC_HISTOGRAM, name, help, labels);
    pthread_mutex_lock(&metrics->lock);
    if (metric->bound_count == 0) {
        memcpy(metric->bounds, bounds, bound_count * sizeof *bounds);
        metric->bound_count = bound_count;
    }
    pthread_mutex_unlock(&metrics->lock);
    return metric;
}

void metric_add(struct metric *metric, uint64_t amount)
{
    assert(metric->type == METRIC_COUNTER);
    atomic_fetch_add(&metric->count, amount);
}

void metric_set(struct metric *metric, double value)
{
    assert(metric->type == METRIC_GAUGE);
    atomic_store(&metric->value, value);
}

void metric_observe(struct metric *metric, double value)
{
    assert(metric->type == METRIC_HISTOGRAM);
    for (size_t i = 0; i < metric->bound_count; i++) {
        if (value <= metric->bounds[i]) {
            atomic_fetch_add(&metric->buckets[i], 1);
            break;
        }
    }
    add_double(&metric->value, value);
    atomic_fetch_add(&metric->count, 1);
}

static void write_sample(FILE *out, const struct metric *metric, const char *suffix, double value)
{
    bool has_labels = metric->labels[0] != '\0';
    fprintf(out, "%s%s%s%s%s %.17g\n", metric->name, suffix, has_labels ? "{" : "", metric->labels,
            has_labels ? "}" : "", value);
}

static void write_histogram(FILE *out, struct metric *metric)
{
    const char *comma = metric->labels[0] != '\0' ? "," : "";
    uint64_t sum = 0;
    for (size_t i = 0; i < metric->bound_count; i++) {
        sum += atomic_load(&metric->buckets[i]);
        fprintf(out, "%s_bucket{%s%sle=\"%g\"} %llu\n", metric->name, metric->labels, comma, metric->bounds[i],
                (unsigned long long)sum);
    }
    /* Read after the buckets and never below them, so that the series stays cumulative while others observe. */
    uint64_t count = atomic_load(&metric->count);
    count = count < sum ? sum : count;
    fprintf(out, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", metric->name, metric->labels, comma, (unsigned long long)count);
    write_sample(out, metric, "_sum", atomic_load(&metric->value));
    write_sample(out, metric, "_count", (double)count);
}

static void write_metric(FILE *out, struct metric *metric)
{
    if (metric->type == METRIC_HISTOGRAM) {
        write_histogram(out, metric);
    } else if (metric->type == METRIC_COUNTER) {
        write_sample(out, metric, "", (double)atomic_load(&metric->count));
    } else {
        write_sample(out, metric, "", atomic_load(&metric->value));
    }
}

char *metrics_text(struct metrics *metrics, size_t *ret_size)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&metrics->lock);
    const char *family = "";
    for (struct metric *metric = metrics->first; metric != NULL; metric = metric->next) {
        if (strcmp(family, metric->name) != 0) {
            family = metric->name;
            fprintf(out, "# HELP %s ", family);
            write_escaped(out, metric->help, false);
            fprintf(out, "\n# TYPE %s %s\n", family, type_name(metric->type));
        }
        write_metric(out, metric);
    }
    pthread_mutex_unlock(&metrics->lock);
    text = finish_text(out, &text);
    *ret_size = size;
    return text;
}
