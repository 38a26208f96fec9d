/* SPDX-License-Identifier: Apache-2.0
 *
 * The relay's settings.
 */
#ifndef RELAY_SETTINGS_H
#define RELAY_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "relay_loop.h"

#define RELAY_NAME_SIZE 256

struct relay_settings {
    const char *database;
    const char *kafka;
    struct config_pairs kafka_properties;
    struct config_address listen;
    struct config_address hint_listen;
    const char *name;
    int log_level;
    size_t window_bytes;
    int64_t window_events;
    size_t bite_bytes;
    int64_t bite_events;
    int64_t outstanding_events;
    size_t outstanding_bytes;
    int64_t settle_interval_ms;
    int64_t poll_min_ms;
    int64_t poll_max_ms;
    int64_t deferred_events;
    int64_t drain_timeout_ms;
    bool is_once;
};

extern const struct config_program relay_settings_program;

/* The options that follow from the settings, without the parts that main makes. name_text has room for the name. */
struct relay_loop_options relay_settings_options(const struct relay_settings *its, char name_text[RELAY_NAME_SIZE]);

#endif
