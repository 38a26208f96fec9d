/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of settings, which is also the help and the documentation.
 */
#include "relay_settings.h"

#include <unistd.h>

#include "base/log.h"
#include "base/stop.h"
#include "base/text.h"

#define LEASE_MS 10000
#define RENEW_MS 3000
#define MARGIN_MS 2000

#define AT(member) .offset = offsetof(struct relay_settings, member)

static const struct config_setting settings[] = {
    {.name = "database",
     .type = CONFIG_CONNINFO,
     AT(database),
     .is_required = true,
     .section = "Postgres",
     .doc = "Where the outbox is, as libpq takes it. A primary is needed."},
    {.name = "kafka",
     .type = CONFIG_TEXT,
     AT(kafka),
     .is_required = true,
     .section = "Kafka",
     .doc = "Brokers to begin with: host:port, separated by commas."},
    {.name = "kafka.",
     .type = CONFIG_PAIRS,
     AT(kafka_properties),
     .section = "Kafka",
     .doc = "Properties that are passed to librdkafka as they are, but for those that delivery depends on."},
    {.name = "outstanding_events",
     .type = CONFIG_INT,
     AT(outstanding_events),
     .preset = "4000",
     .min = 1,
     .max = 1000000,
     .section = "Kafka",
     .doc = "Events that may be on their way to the broker at once."},
    {.name = "outstanding_bytes",
     .type = CONFIG_SIZE,
     AT(outstanding_bytes),
     .preset = "4MiB",
     .min = 1,
     .max = INT64_C(1) << 32,
     .section = "Kafka",
     .doc = "The same in bytes. A larger event goes alone."},
    {.name = "listen",
     .type = CONFIG_ADDRESS,
     AT(listen),
     .preset = "127.0.0.1:8481",
     .section = "HTTP",
     .doc = "Where /livez, /readyz and /metrics are served."},
    {.name = "hint_listen",
     .type = CONFIG_ADDRESS,
     AT(hint_listen),
     .preset = "127.0.0.1:8483",
     .section = "Relay",
     .doc = "Where producers send a datagram (UDP) after a submit, so that it is published at once."},
    {.name = "name",
     .type = CONFIG_TEXT,
     AT(name),
     .min = 1,
     .max = 200,
     .section = "Relay",
     .doc =
         "This relay among its fellows: a process takes over at once from an earlier one of its name. Without it, the"
         " host's name."},
    {.name = "window_events",
     .type = CONFIG_INT,
     AT(window_events),
     .preset = "10000",
     .min = 1,
     .max = 1000000,
     .section = "Relay",
     .doc = "Events of a lane that may be read and not settled."},
    {.name = "window_bytes",
     .type = CONFIG_SIZE,
     AT(window_bytes),
     .preset = "2MiB",
     .min = 1,
     .max = INT64_C(1) << 34,
     .section = "Relay",
     .doc = "The same in bytes of what is not acknowledged; the event that passes it is the last."},
    {.name = "bite_events",
     .type = CONFIG_INT,
     AT(bite_events),
     .preset = "1000",
     .min = 1,
     .max = 100000,
     .section = "Relay",
     .doc = "Events that are read with one statement."},
    {.name = "bite_bytes",
     .type = CONFIG_SIZE,
     AT(bite_bytes),
     .preset = "1MiB",
     .min = 1,
     .max = INT64_C(1) << 30,
     .section = "Relay",
     .doc = "The same in bytes: the event that passes it is the last."},
    {.name = "settle_interval_ms",
     .type = CONFIG_INT,
     AT(settle_interval_ms),
     .preset = "200",
     .min = 1,
     .max = 4000,
     .section = "Relay",
     .doc =
         "How often what was acknowledged is written down, whether or not an earlier event of its lane still waits; a"
         " lane without room, and a relay that has just begun, do it more often. A crash repeats at most what was sent"
         " or acknowledged since."},
    {.name = "poll_min_ms",
     .type = CONFIG_INT,
     AT(poll_min_ms),
     .preset = "20",
     .min = 1,
     .max = 10000,
     .section = "Relay",
     .doc = "Between two looks at the outbox after there was something new."},
    {.name = "poll_max_ms",
     .type = CONFIG_INT,
     AT(poll_max_ms),
     .preset = "500",
     .min = 1,
     .max = 60000,
     .section = "Relay",
     .doc = "The same when nothing has been new for a while."},
    {.name = "deferred_events",
     .type = CONFIG_INT,
     AT(deferred_events),
     .preset = "100000",
     .min = 1,
     .max = INT64_C(100000000),
     .section = "Relay",
     .doc = "Deferred events of a lane, after which the lane waits."},
    {.name = "drain_timeout_ms",
     .type = CONFIG_INT,
     AT(drain_timeout_ms),
     .preset = "5000",
     .min = 0,
     .max = 600000,
     .section = "Relay",
     .doc = "How long a stop waits for the broker's word on what is on its way."},
    {.name = "once",
     .type = CONFIG_BOOL,
     AT(is_once),
     .preset = "off",
     .is_flag_only = true,
     .section = "Relay",
     .doc = "Takes the lanes that are free, publishes what is pending in them, settles, lets go and ends."},
    {.name = "log_level",
     .type = CONFIG_CHOICE,
     AT(log_level),
     .preset = "info",
     .choices = log_level_names,
     .section = "Log",
     .doc = "The least level that is written."},
};

static void check(const void *context, struct config_report *report)
{
    const struct relay_settings *its = context;
    if (its->poll_min_ms > its->poll_max_ms) {
        config_mistake(report, "poll_min_ms", "%lld is more than poll_max_ms, %lld", (long long)its->poll_min_ms,
                       (long long)its->poll_max_ms);
    }
}

const struct config_program relay_settings_program = {
    .name = "outbox-relay",
    .summary =
        "Publishes what was submitted: from the outbox in Postgres to Kafka, in order, each event at least once.",
    .settings = settings,
    .setting_count = sizeof settings / sizeof settings[0],
    .check = check,
};

static void make_name(const struct relay_settings *its, char text[RELAY_NAME_SIZE])
{
    char host[128] = "relay";
    if (its->name == NULL && gethostname(host, sizeof host - 1) != 0) {
        (void)text_copy(host, sizeof host, "relay");
    }
    const char *name = its->name != NULL ? its->name : host;
    if (its->is_once) { /* Beside a service of the same name, not in its place. */
        (void)text_format(text, RELAY_NAME_SIZE, "%s.once.%ld", name, (long)getpid());
    } else {
        (void)text_copy(text, RELAY_NAME_SIZE, name);
    }
}

struct relay_loop_options relay_settings_options(const struct relay_settings *its, char name_text[RELAY_NAME_SIZE])
{
    make_name(its, name_text);
    struct relay_loop_options options = {.database = DB_SETTINGS_INIT,
                                         .name = name_text,
                                         .limits = relay_limits_default,
                                         .lease_ms = LEASE_MS,
                                         .renew_ms = RENEW_MS,
                                         .margin_ms = MARGIN_MS,
                                         .drain_timeout_ms = its->drain_timeout_ms,
                                         .is_once = its->is_once};
    options.database.conninfo = its->database;
    options.database.application_name = "onceward-relay";
    options.database.needs_primary = true;
    options.database.stop_fd = stop_fd();
    options.limits.window_events = (size_t)its->window_events;
    options.limits.window_bytes = its->window_bytes;
    options.limits.bite_events = (int32_t)its->bite_events;
    options.limits.bite_bytes = (int64_t)its->bite_bytes;
    options.limits.outstanding_events = (size_t)its->outstanding_events;
    options.limits.settle_interval_ms = its->settle_interval_ms;
    options.limits.poll_min_ms = its->poll_min_ms;
    options.limits.poll_max_ms = its->poll_max_ms;
    options.limits.deferred_max = its->deferred_events;
    if (!its->is_once) { /* A pass of its own needs no hints, and the service beside it has the address. */
        options.hint_listen = its->hint_listen;
    }
    return options;
}
