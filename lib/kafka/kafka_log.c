/* SPDX-License-Identifier: Apache-2.0
 *
 * The bridge from librdkafka's log to ours. Its lines come from the library's
 * own threads; base/log takes lines from any thread.
 */
#include "kafka/kafka_log.h"

#include "kafka_private.h"

/* Of syslog(3), whose header has names that collide with base/log. */
#define SYSLOG_WARNING 4

enum log_level kafka_log_level(int syslog_level)
{
    return syslog_level <= SYSLOG_WARNING ? LOG_WARNING : LOG_DEBUG;
}

static void on_log(const rd_kafka_t *handle, int level, const char *facility, const char *text)
{
    const struct log_field *fields =
        LOG_FIELDS(LOG_TEXT("client", handle == NULL ? NULL : rd_kafka_name(handle)), LOG_TEXT("facility", facility));
    if (kafka_log_level(level) == LOG_WARNING) {
        log_warning("kafka.library", fields, "%s", text);
    } else {
        log_debug("kafka.library", fields, "%s", text);
    }
}

void kafka_log_attach(rd_kafka_conf_t *conf)
{
    rd_kafka_conf_set_log_cb(conf, on_log);
}
