/* SPDX-License-Identifier: Apache-2.0
 *
 * Two hashes: of a payload, by which a known id is compared; of a whole record,
 * by which a place on a topic is recognised.
 */
#ifndef CONSUMER_HASH_H
#define CONSUMER_HASH_H

#include <stdint.h>

#include "domain/event.h"
#include "kafka/kafka_record.h"

#define CONSUMER_HASH_SIZE 32

/* The first eight bytes of SHA-256 of the value, big-endian, as the inbox keeps it. */
int64_t consumer_hash_payload(struct bytes value);

/* SHA-256 over offset, timestamp, key, headers and value, each with its length, so that a record of a topic that was
 * made anew differs even where its event is the same. */
void consumer_hash_record(const struct kafka_record *record, unsigned char ret_hash[CONSUMER_HASH_SIZE]);

#endif
