/* SPDX-License-Identifier: Apache-2.0
 *
 * From settings to a publisher on Kafka.
 */
#include "relay_broker.h"

#include <stdlib.h>

#include "kafka/kafka_publisher.h"

struct publisher *relay_broker_open(void *context, bool is_single, struct err *err)
{
    const struct relay_settings *settings = context;
    size_t count = settings->kafka_properties.count;
    struct kafka_property *properties = calloc(count + 1, sizeof *properties);
    if (properties == NULL) {
        err_set(err, ERR_FATAL, "memory", "no memory for Kafka's properties");
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        properties[i] = (struct kafka_property){.name = settings->kafka_properties.items[i].name,
                                                .value = settings->kafka_properties.items[i].value};
    }
    const struct kafka_publisher_options options = {.brokers = settings->kafka,
                                                    .outstanding_bytes_max = settings->outstanding_bytes,
                                                    .properties = properties,
                                                    .property_count = count,
                                                    .outstanding_count_max = (size_t)settings->outstanding_events,
                                                    .is_single = is_single};
    struct publisher *publisher = kafka_publisher_open(&options, err);
    free(properties);
    return publisher;
}
