/* SPDX-License-Identifier: Apache-2.0
 *
 * The producer's settings: one table gives the parser, the help and the
 * documentation.
 */
#ifndef PRODUCER_SETTINGS_H
#define PRODUCER_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"

struct producer_settings {
    const char *database;
    bool database_is_pooled;
    struct config_address listen;
    const char *public_url; /* NULL: made from listen. */
    const char *tenant;
    bool is_development;
    int64_t token_cache_ms;
    struct config_list relay_hints;
    int log_level;
    int64_t batchers;
    int64_t large_writers;
    int64_t readers;
    int64_t queue_count_max;
    size_t data_bytes_max;
    size_t document_bytes_max;
    int64_t document_count_max;
    size_t request_bytes_max;
    size_t submission_bytes_max;
    size_t bodies_bytes_max;
    int64_t connection_count_max;
};

extern const struct config_program producer_settings_program;

#endif
