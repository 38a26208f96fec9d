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

enum producer_expired { PRODUCER_EXPIRED_RENEW, PRODUCER_EXPIRED_REFUSE };

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
    int64_t peer_connection_count_max;
    size_t head_bytes_max;
    int64_t peer_unknown_tokens_per_s;
    int64_t tenant_calls_per_s;
    int64_t token_calls_per_s;
    bool key_is_required;
    int64_t key_lifetime_s;
    int64_t key_wait_ms;
    int64_t key_waiters_max;
    int64_t tenant_waiters_max;
    int64_t event_wait_max_s;
    int64_t event_waiters_max;
    int64_t tenant_keys_max;
    int expired_keys; /* enum producer_expired */
    int64_t expired_keys_kept_s;
    int64_t reap_interval_s;
    int64_t request_kept_days; /* This and the next three: 0 is for ever. */
    int64_t document_kept_days;
    int64_t open_request_kept_days;
    int64_t submission_kept_days;
};

extern const struct config_program producer_settings_program;

#endif
