/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of all settings of all programs. They share one environment, so
 * each must know which variables belong to a sister and which to nobody. A
 * test compares this list with the programs' tables.
 */
#include <assert.h>
#include <string.h>

#include "base/text.h"
#include "config_private.h"

#define NAME_SIZE_MAX 64

static const char *const names[] = {
    "batch_records_max",
    "batchers",
    "bite_bytes",
    "bite_events",
    "bodies_bytes_max",
    "checkpoint_ms",
    "connection_count_max",
    "consumer",
    "data_bytes_max",
    "database",
    "database_is_pooled",
    "dead_letters_in_a_row_max",
    "dead_letters_percent_max",
    "deferred_events",
    "development",
    "document_bytes_max",
    "document_count_max",
    "document_kept_days",
    "drain_timeout_ms",
    "event_wait_max_s",
    "event_waiters_max",
    "expired_keys",
    "expired_keys_kept_s",
    "head_bytes_max",
    "hint_listen",
    "kafka",
    "kafka.",
    "key_is_required",
    "key_lifetime_s",
    "key_wait_ms",
    "key_waiters_max",
    "large_writers",
    "listen",
    "log_level",
    "memory",
    "name",
    "once",
    "open_request_kept_days",
    "outstanding_bytes",
    "outstanding_events",
    "peer_connection_count_max",
    "peer_unknown_tokens_per_s",
    "poll_max_ms",
    "poll_min_ms",
    "public_url",
    "queue_count_max",
    "readers",
    "reap_interval_s",
    "relay_hints",
    "request_bytes_max",
    "request_kept_days",
    "settle_interval_ms",
    "sink_columns",
    "sink_key",
    "sink_sql",
    "sink_table",
    "start",
    "submission_bytes_max",
    "submission_kept_days",
    "tenant",
    "tenant_calls_per_s",
    "tenant_keys_max",
    "tenant_waiters_max",
    "token_cache_ms",
    "token_calls_per_s",
    "topics",
    "window_bytes",
    "window_events",
    NULL,
};

/* Variables that belong to scripts and tests. A full stop at the end: every name that begins so. */
static const char *const reserved[] = {
    "cache", "failpoints", "state", "test.", "url", "source_dir", NULL,
};

const char *const *config_names(void)
{
    return names;
}

/* name is in the environment's form: with underscores where a prefix has its full stop. */
static bool list_has(const char *const *list, const char *name)
{
    for (; *list != NULL; list++) {
        size_t size = strlen(*list);
        bool is_prefix = (*list)[size - 1] == '.';
        if (is_prefix ? strncmp(*list, name, size - 1) == 0 && name[size - 1] == '_' : strcmp(*list, name) == 0) {
            return true;
        }
    }
    return false;
}

bool config_names_has(const char *name)
{
    return list_has(names, name) || list_has(reserved, name);
}

static size_t least(size_t a, size_t b, size_t c)
{
    size_t smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
}

/* Levenshtein's distance. */
static size_t distance(const char *left, const char *right)
{
    size_t row[NAME_SIZE_MAX + 1];
    size_t right_size = strlen(right);
    assert(right_size <= NAME_SIZE_MAX);
    for (size_t j = 0; j <= right_size; j++) {
        row[j] = j;
    }
    for (size_t i = 1; left[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= right_size; j++) {
            size_t above = row[j];
            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (left[i - 1] != right[j - 1]));
            diagonal = above;
        }
    }
    return row[right_size];
}

const char *config_names_nearest(const struct config_program *program, const char *name)
{
    const char *nearest = NULL;
    size_t nearest_distance = strlen(name) / 3 + 1;
    if (strlen(name) > NAME_SIZE_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < program->setting_count; i++) {
        size_t here = distance(name, program->settings[i].name);
        if (here <= nearest_distance) {
            nearest_distance = here - (here > 0);
            nearest = program->settings[i].name;
        }
    }
    return nearest;
}
