/* SPDX-License-Identifier: Apache-2.0
 *
 * A topic of its own for a test, on the broker that ONCEWARD_TEST_KAFKA names
 * (bootstrap.servers). Made and deleted through librdkafka's admin API. Nothing is
 * skipped: without a broker the maker prints why and returns NULL, and the test has to
 * fail.
 */
#ifndef SUPPORT_KAFKA_FIXTURE_H
#define SUPPORT_KAFKA_FIXTURE_H

#include <stdbool.h>

struct kafka_fixture;

/* A topic with a name nobody used before. settings: "name=value" pairs ended by NULL, or
 * NULL, for instance { "max.message.bytes=1000", NULL }; they must outlive the fixture. NULL
 * after printing why not. Blocks. */
struct kafka_fixture *kafka_fixture_new(int partition_count);
struct kafka_fixture *kafka_fixture_new_with(int partition_count, const char *const *settings);

/* Deletes the topic and nulls the pointer. Accepts NULL inside. */
void kafka_fixture_free(struct kafka_fixture **fixturep);

/* The topic's name. Borrowed from the fixture. */
const char *kafka_fixture_topic(const struct kafka_fixture *fixture);

/* The value of ONCEWARD_TEST_KAFKA. Borrowed from the fixture. */
const char *kafka_fixture_bootstrap(const struct kafka_fixture *fixture);

/* Deletes the fixture's topic and makes it again, empty: what an operator's mistake does.
 * False after printing why. */
bool kafka_fixture_recreate(struct kafka_fixture *fixture);

/* The offset after the last record of a partition, -1 after printing why it is unknown. */
long long kafka_fixture_end_offset(struct kafka_fixture *fixture, int partition);

#endif
