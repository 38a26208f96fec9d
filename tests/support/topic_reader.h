/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that is on a topic, read past the code under test.
 */
#ifndef SUPPORT_TOPIC_READER_H
#define SUPPORT_TOPIC_READER_H

#include <stddef.h>
#include <stdint.h>

struct topic_record {
    int32_t partition;
    int64_t offset;
    char key[64];
    char value[64];    /* Cut to size. */
    char sequence[24]; /* ce_sequence. */
};

/* Reads every partition to its end of now. Free *ret_records. Ends the test process if it cannot. */
size_t topic_reader_read(const char *brokers, const char *topic, int partition_count,
                         struct topic_record **ret_records);

#endif
