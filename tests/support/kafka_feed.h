/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts records on a topic past the code under test: good events, copies of
 * them, and records that are wrong in every way.
 */
#ifndef SUPPORT_KAFKA_FEED_H
#define SUPPORT_KAFKA_FEED_H

#include <stdint.h>

struct kafka_feed;

/* Ends the test process if it cannot, as all functions here. */
struct kafka_feed *kafka_feed_new(const char *brokers, const char *topic);
void kafka_feed_free(struct kafka_feed **feedp);

/* headers: name, value, …, NULL; NULL for none. value and key NULL for null. Does not wait. */
void kafka_feed_put(struct kafka_feed *feed, int partition, const char *key, const char *value,
                    const char *const *headers);

/* An event of the source /onceward. */
void kafka_feed_event(struct kafka_feed *feed, int partition, const char *event_id, int64_t sequence, const char *key,
                      const char *value);

/* Writes the text of the n-th UUIDv7 of a test: of now, rising with n. */
void kafka_feed_id(int n, char ret_id[37]);

/* Deletes the records of a partition before this offset, as retention does. */
void kafka_feed_truncate(struct kafka_feed *feed, int partition, int64_t first_offset);

/* Waits until all is on the topic. */
void kafka_feed_flush(struct kafka_feed *feed);

#endif
