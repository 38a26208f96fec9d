/* SPDX-License-Identifier: Apache-2.0
 *
 * The consumer's settings: one table gives the parser, the help and the
 * documentation.
 */
#ifndef CONSUMER_SETTINGS_H
#define CONSUMER_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/config.h"

enum consumer_start { CONSUMER_START_EARLIEST, CONSUMER_START_LATEST, CONSUMER_START_TIME };

struct consumer_settings {
    const char *database;
    const char *kafka;
    struct config_pairs kafka_properties;
    struct config_address listen;
    int log_level;
    const char *name;
    const char *consumer;
    struct config_list topics;
    const char *start;
    const char *sink_table;
    struct config_list sink_key;
    struct config_list sink_columns;
    const char *sink_sql;
    int64_t batch_records_max;
    size_t memory;
    int64_t checkpoint_ms;
    int64_t dead_letters_in_a_row_max;
    int64_t dead_letters_percent_max;
};

extern const struct config_program consumer_settings_program;

/* What `start` says; the time in milliseconds of Unix time. False if it says nothing that we know. */
bool consumer_settings_start(const char *text, enum consumer_start *ret_start, int64_t *ret_unix_ms) MUST_CHECK;

#endif
