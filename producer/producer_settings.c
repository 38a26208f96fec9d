/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of settings, and the mistakes that lie between settings.
 */
#include "producer_settings.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "domain/identity.h"

#define AT(member) .offset = offsetof(struct producer_settings, member)
#define MIB (1024 * 1024)
#define DAYS_MAX 36500
#define DAY_S 86400

static const char *const expired_names[] = {"renew", "refuse", NULL};

static const struct config_setting settings[] = {
    {.name = "database",
     .type = CONFIG_CONNINFO,
     AT(database),
     .is_required = true,
     .section = "Postgres",
     .doc = "Where submissions are kept, as libpq takes it. A primary is needed."},
    {.name = "database_is_pooled",
     .type = CONFIG_BOOL,
     AT(database_is_pooled),
     .preset = "off",
     .section = "Postgres",
     .doc = "A pooler in transaction mode stands before the database: nothing is prepared."},
    {.name = "batchers",
     .type = CONFIG_INT,
     AT(batchers),
     .preset = "2",
     .min = 1,
     .max = 16,
     .section = "Postgres",
     .doc = "Connections that write; each puts whatever waits into one transaction."},
    {.name = "large_writers",
     .type = CONFIG_INT,
     AT(large_writers),
     .preset = "2",
     .min = 1,
     .max = 16,
     .section = "Postgres",
     .doc = "Connections that write bodies over 64 KiB, one at a time each."},
    {.name = "readers",
     .type = CONFIG_INT,
     AT(readers),
     .preset = "2",
     .min = 1,
     .max = 64,
     .section = "Postgres",
     .doc = "Connections that read."},
    {.name = "listen",
     .type = CONFIG_ADDRESS,
     AT(listen),
     .preset = "127.0.0.1:8480",
     .section = "HTTP",
     .doc = "Where the HTTP API listens."},
    {.name = "public_url",
     .type = CONFIG_TEXT,
     AT(public_url),
     .min = 1,
     .max = 500,
     .section = "HTTP",
     .doc = "What callers and subscribers put before a path: documents are referred to by it. Without it, the listen "
            "address."},
    {.name = "connection_count_max",
     .type = CONFIG_INT,
     AT(connection_count_max),
     .preset = "4096",
     .min = 1,
     .max = 1000000,
     .section = "HTTP",
     .doc = "Open connections; more are answered 503."},
    {.name = "bodies_bytes_max",
     .type = CONFIG_SIZE,
     AT(bodies_bytes_max),
     .preset = "256MiB",
     .min = MIB,
     .max = INT64_C(1) << 40,
     .section = "HTTP",
     .doc = "Memory for all bodies in flight; beyond it the answer is 503."},
    {.name = "queue_count_max",
     .type = CONFIG_INT,
     AT(queue_count_max),
     .preset = "10000",
     .min = 1,
     .max = 1000000,
     .section = "HTTP",
     .doc = "Calls that may wait for the database; beyond it the answer is 503."},
    {.name = "key_is_required",
     .type = CONFIG_BOOL,
     AT(key_is_required),
     .preset = "off",
     .section = "Idempotency keys",
     .doc = "A call that writes to requests must bring an Idempotency-Key."},
    {.name = "key_lifetime_s",
     .type = CONFIG_INT,
     AT(key_lifetime_s),
     .preset = "86400",
     .min = 1,
     .max = 315360000,
     .section = "Idempotency keys",
     .doc = "How long an answer is kept under its key, by the database's clock."},
    {.name = "key_wait_ms",
     .type = CONFIG_INT,
     AT(key_wait_ms),
     .preset = "5000",
     .min = 0,
     .max = 5000,
     .section = "Idempotency keys",
     .doc = "How long a call waits for another one under its key, before it is answered 409."},
    {.name = "key_waiters_max",
     .type = CONFIG_INT,
     AT(key_waiters_max),
     .preset = "100",
     .min = 0,
     .max = 1000000,
     .section = "Idempotency keys",
     .doc = "Calls that may wait under one key; more are answered 429."},
    {.name = "tenant_waiters_max",
     .type = CONFIG_INT,
     AT(tenant_waiters_max),
     .preset = "1000",
     .min = 0,
     .max = 1000000,
     .section = "Idempotency keys",
     .doc = "The same for all keys of a tenant; and as many of its calls may wait for events."},
    {.name = "expired_keys",
     .type = CONFIG_CHOICE,
     AT(expired_keys),
     .preset = "renew",
     .choices = expired_names,
     .section = "Idempotency keys",
     .doc = "What a call under an expired key is: as if the key were new, or refused."},
    {.name = "expired_keys_kept_s",
     .type = CONFIG_INT,
     AT(expired_keys_kept_s),
     .preset = "2592000",
     .min = 0,
     .max = 315360000,
     .section = "Idempotency keys",
     .doc = "With refuse: how long an expired key is remembered. After that it is as if new."},
    {.name = "reap_interval_s",
     .type = CONFIG_INT,
     AT(reap_interval_s),
     .preset = "60",
     .min = 1,
     .max = 86400,
     .section = "Idempotency keys",
     .doc = "How often expired keys are deleted, and what has been kept long enough is removed."},
    {.name = "request_kept_days",
     .type = CONFIG_INT,
     AT(request_kept_days),
     .preset = "0",
     .min = 0,
     .max = DAYS_MAX,
     .section = "Retention",
     .doc = "How long the data and the documents of a submitted request are kept once its event is published; 0: for "
            "ever. What recognises a repetition stays."},
    {.name = "document_kept_days",
     .type = CONFIG_INT,
     AT(document_kept_days),
     .preset = "0",
     .min = 0,
     .max = DAYS_MAX,
     .section = "Retention",
     .doc = "The same for the documents' bytes alone. Subscribers fetch them: longer than topics keep their records."},
    {.name = "open_request_kept_days",
     .type = CONFIG_INT,
     AT(open_request_kept_days),
     .preset = "0",
     .min = 0,
     .max = DAYS_MAX,
     .section = "Retention",
     .doc = "How long after its creation a request that nobody submits is kept; 0: for ever. Then it is gone."},
    {.name = "submission_kept_days",
     .type = CONFIG_INT,
     AT(submission_kept_days),
     .preset = "0",
     .min = 0,
     .max = DAYS_MAX,
     .section = "Retention",
     .doc = "How long a submission is remembered; 0: for ever. After that a repetition is a new submission, with a "
            "second event and a second effect."},
    {.name = "event_wait_max_s",
     .type = CONFIG_INT,
     AT(event_wait_max_s),
     .preset = "30",
     .min = 0,
     .max = 600,
     .section = "Service",
     .doc = "How long GET /events/{event_id}?wait= may wait; more is answered 400."},
    {.name = "event_waiters_max",
     .type = CONFIG_INT,
     AT(event_waiters_max),
     .preset = "2000",
     .min = 0,
     .max = 100000,
     .section = "Service",
     .doc = "Calls that may wait for events; more are answered 429. They share one connection."},
    {.name = "log_level",
     .type = CONFIG_CHOICE,
     AT(log_level),
     .preset = "info",
     .choices = log_level_names,
     .section = "Service",
     .doc = "The least level that is logged."},
    {.name = "relay_hints",
     .type = CONFIG_LIST,
     AT(relay_hints),
     .preset = "127.0.0.1:8483",
     .section = "Service",
     .doc = "Relays (host:port) that are sent a datagram after each commit, so that they look at once. A lost one "
            "costs nothing."},
    {.name = "tenant",
     .type = CONFIG_TEXT,
     AT(tenant),
     .preset = "default",
     .min = 1,
     .max = IDENTITY_TENANT_SIZE_MAX,
     .section = "Service",
     .doc = "Whose calls those without a token are, where development is on."},
    {.name = "development",
     .type = CONFIG_BOOL,
     AT(is_development),
     .preset = "off",
     .section = "Service",
     .doc = "Takes calls without a token, with every scope. Only where listen is a loopback address."},
    {.name = "token_cache_ms",
     .type = CONFIG_INT,
     AT(token_cache_ms),
     .preset = "5000",
     .min = 0,
     .max = 60000,
     .section = "Service",
     .doc = "How long a token that was looked up is believed. A revoked one ends at most so much later."},
    {.name = "data_bytes_max",
     .type = CONFIG_SIZE,
     AT(data_bytes_max),
     .preset = "1MiB",
     .min = 2,
     .max = 64 * MIB,
     .section = "Limits",
     .doc = "A request's data."},
    {.name = "document_bytes_max",
     .type = CONFIG_SIZE,
     AT(document_bytes_max),
     .preset = "8MiB",
     .min = 1,
     .max = 512 * MIB,
     .section = "Limits",
     .doc = "One document."},
    {.name = "document_count_max",
     .type = CONFIG_INT,
     AT(document_count_max),
     .preset = "1000",
     .min = 1,
     .max = 100000,
     .section = "Limits",
     .doc = "Documents of one request."},
    {.name = "request_bytes_max",
     .type = CONFIG_SIZE,
     AT(request_bytes_max),
     .preset = "64MiB",
     .min = 1,
     .max = INT64_C(1) << 40,
     .section = "Limits",
     .doc = "All documents of one request together."},
    {.name = "submission_bytes_max",
     .type = CONFIG_SIZE,
     AT(submission_bytes_max),
     .preset = "16MiB",
     .min = 1024,
     .max = 512 * MIB,
     .section = "Limits",
     .doc = "The body of POST /submissions, with its documents in base64."},
};

static bool is_loopback(const char *host)
{
    struct in_addr four;
    struct in6_addr six;
    return (inet_pton(AF_INET, host, &four) == 1 && ntohl(four.s_addr) >> 24 == 127) ||
           (inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six));
}

static void check(const void *target, struct config_report *report)
{
    const struct producer_settings *given = target;
    if (!identity_tenant_is_valid(given->tenant, strlen(given->tenant))) {
        config_mistake(report, "tenant", "letters, digits and . _ ~ - only");
    }
    for (size_t i = 0; i < given->relay_hints.count; i++) {
        struct config_address address;
        if (!config_address_from_text(given->relay_hints.items[i], &address)) {
            config_mistake(report, "relay_hints", "\"%s\" is not host:port", given->relay_hints.items[i]);
        }
    }
    if (given->is_development && !is_loopback(given->listen.host)) {
        config_mistake(report, "development", "calls without a token are taken on a loopback address only, not on %s",
                       given->listen.host);
    }
    if (given->request_kept_days > 0 && given->request_kept_days * DAY_S < given->key_lifetime_s) {
        config_mistake(report, "request_kept_days", "stored answers would show the request longer (key_lifetime_s)");
    }
    if (given->submission_kept_days > 0 && given->submission_kept_days * DAY_S < given->key_lifetime_s) {
        config_mistake(report, "submission_kept_days",
                       "a key would outlive what its answer speaks of (key_lifetime_s)");
    }
    const char *url = given->public_url;
    if (url != NULL && !text_has_prefix(url, "http://") && !text_has_prefix(url, "https://")) {
        config_mistake(report, "public_url", "it must begin with http:// or https://");
    }
    if (url != NULL && text_has_suffix(url, "/")) {
        config_mistake(report, "public_url", "it must not end in a slash");
    }
}

const struct config_program producer_settings_program = {
    .name = "onceward-producer",
    .summary = "Takes requests over HTTP and submits them, each once.",
    .settings = settings,
    .setting_count = sizeof settings / sizeof *settings,
    .check = check,
};
