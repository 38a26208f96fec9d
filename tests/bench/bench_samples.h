/* SPDX-License-Identifier: Apache-2.0
 *
 * What the measuring programs share: clocks, samples of durations, and how they are told: one JSON object.
 */
#ifndef BENCH_SAMPLES_H
#define BENCH_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

/* Microseconds since the machine started, and of the day's clock, which two processes can compare. */
int64_t bench_monotonic_us(void);
int64_t bench_wall_us(void);

/* CPU time of this process, in seconds. */
double bench_cpu_seconds(void);

struct bench_samples {
    float *ms;
    size_t count;
    size_t count_max;
};

void bench_samples_init(struct bench_samples *samples, size_t count_max);
void bench_samples_done(struct bench_samples *samples);
/* Beyond count_max nothing is added. */
void bench_samples_add(struct bench_samples *samples, int64_t duration_us);
/* Adds all of another's, whatever count_max was. */
void bench_samples_merge(struct bench_samples *samples, const struct bench_samples *others);

/* Prints {"count", "seconds", "rate", "p50_ms", "p99_ms", "cpu_seconds", "failures"}. Sorts. Samples may be NULL. */
void bench_print(size_t count, double seconds, struct bench_samples *samples, size_t failure_count);

#endif
