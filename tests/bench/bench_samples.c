/* SPDX-License-Identifier: Apache-2.0
 *
 * Clocks and samples.
 */
#include "bench_samples.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static int64_t clock_us(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t bench_monotonic_us(void)
{
    return clock_us(CLOCK_MONOTONIC);
}

int64_t bench_wall_us(void)
{
    return clock_us(CLOCK_REALTIME);
}

double bench_cpu_seconds(void)
{
    return (double)clock_us(CLOCK_PROCESS_CPUTIME_ID) / 1e6;
}

void bench_samples_init(struct bench_samples *samples, size_t count_max)
{
    *samples = (struct bench_samples){.ms = calloc(count_max + 1, sizeof(float)), .count_max = count_max};
    assert(samples->ms != NULL);
}

void bench_samples_done(struct bench_samples *samples)
{
    free(samples->ms);
    *samples = (struct bench_samples){.ms = NULL};
}

void bench_samples_add(struct bench_samples *samples, int64_t duration_us)
{
    if (samples->count < samples->count_max) {
        samples->ms[samples->count++] = (float)duration_us / 1000.0F;
    }
}

void bench_samples_merge(struct bench_samples *samples, const struct bench_samples *others)
{
    samples->count_max = samples->count + others->count;
    samples->ms = realloc(samples->ms, (samples->count_max + 1) * sizeof(float));
    assert(samples->ms != NULL);
    memcpy(samples->ms + samples->count, others->ms, others->count * sizeof(float));
    samples->count = samples->count_max;
}

static int compare(const void *left, const void *right)
{
    float one = *(const float *)left;
    float other = *(const float *)right;
    return (one > other) - (one < other);
}

void bench_print(size_t count, double seconds, struct bench_samples *samples, size_t failure_count)
{
    double p50 = 0;
    double p99 = 0;
    if (samples != NULL && samples->count > 0) {
        qsort(samples->ms, samples->count, sizeof(float), compare);
        p50 = (double)samples->ms[samples->count / 2];
        p99 = (double)samples->ms[samples->count * 99 / 100];
    }
    printf("{\"count\": %zu, \"seconds\": %.6f, \"rate\": %.1f, \"p50_ms\": %.4f, \"p99_ms\": %.4f, "
           "\"cpu_seconds\": %.4f, \"failures\": %zu}\n",
           count, seconds, (double)count / seconds, p50, p99, bench_cpu_seconds(), failure_count);
}
