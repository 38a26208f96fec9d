/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties of librdkafka, ours and the user's. The invariant: a property that
 * carries a guarantee cannot be changed from outside.
 */
#include "kafka_private.h"

#include <assert.h>
#include <string.h>

bool kafka_conf_set(rd_kafka_conf_t *conf, const char *name, const char *value, struct err *err)
{
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK) {
        return err_set(err, ERR_PERMANENT, "kafka_property_invalid", "kafka.%s: %s", name, why);
    }
    return true;
}

static bool is_fixed(const char *name, const char *const *fixed)
{
    for (size_t i = 0; fixed[i] != NULL; i++) {
        if (strcmp(fixed[i], name) == 0) {
            return true;
        }
    }
    return false;
}

bool kafka_conf_set_all(rd_kafka_conf_t *conf, const struct kafka_property *properties, size_t property_count,
                        const char *const *fixed, struct err *err)
{
    assert(properties != NULL || property_count == 0);
    for (size_t i = 0; i < property_count; i++) {
        if (is_fixed(properties[i].name, fixed)) {
            return err_set(err, ERR_PERMANENT, "kafka_property_fixed", "kafka.%s cannot be set: delivery depends on it",
                           properties[i].name);
        }
        if (!kafka_conf_set(conf, properties[i].name, properties[i].value, err)) {
            return false;
        }
    }
    return true;
}
