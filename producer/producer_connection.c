/* SPDX-License-Identifier: Apache-2.0
 *
 * Reconnecting. The schema's version is compared on every new connection, so a
 * program never writes into tables that it does not know.
 */
#include "producer_connection.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/rand.h"
#include "db/db_migrate.h"
#include "db/db_partition.h"
#include "http/health.h"

#define RETRY_FIRST_MS 100
#define RETRY_MAX_MS 2000
#define CHECK_AFTER_MS 1000
#define PARTITIONS_EVERY_MS 60000
#define PARTITIONS_RETRY_MS 1000
#define CONNECT_TIMEOUT_MS 5000
#define ANSWER_TIMEOUT_MS 15000

void producer_connection_init(struct producer_connection *connection, const struct producer_settings *settings,
                              struct health *health, const char *role, bool tells_health)
{
    *connection = (struct producer_connection){
        .settings = settings,
        .health = health,
        .role = role,
        .tells_health = tells_health,
        .backoff = {.first_ms = RETRY_FIRST_MS, .max_ms = RETRY_MAX_MS},
    };
}

void producer_connection_done(struct producer_connection *connection)
{
    db_close(&connection->db);
}

static bool open_or_reset(struct producer_connection *connection, struct err *err)
{
    if (connection->db != NULL) {
        return db_reset(connection->db, err);
    }
    struct db_settings settings = DB_SETTINGS_INIT;
    settings.conninfo = connection->settings->database;
    settings.application_name = connection->role;
    settings.needs_primary = true;
    settings.is_pooled = connection->settings->database_is_pooled;
    settings.plans_once = connection->plans_once;
    settings.connect_timeout_ms = CONNECT_TIMEOUT_MS;
    settings.answer_timeout_ms = ANSWER_TIMEOUT_MS;
    connection->db = db_open(&settings, err);
    return connection->db != NULL;
}

static void tell(struct producer_connection *connection, const struct err *err)
{
    if (err == NULL && connection->was_down) {
        log_info("producer.database_back", LOG_FIELDS(LOG_TEXT("role", connection->role)), "connected to %s",
                 db_where(connection->db));
    }
    if (err != NULL && !connection->was_down) {
        log_warning("producer.database_away", LOG_FIELDS(LOG_TEXT("role", connection->role), LOG_ERR(err)),
                    "%s; answering 503 and trying again", err->text);
    }
    connection->was_down = err != NULL;
    if (!connection->tells_health) {
        return;
    }
    if (err == NULL) {
        health_set_ready(connection->health, "database");
    } else {
        health_set_unready(connection->health, "database", "%s: %s", err->code, err->text);
    }
}

struct db *producer_connection_get(struct producer_connection *connection, struct err *err)
{
    if (connection->db != NULL && db_is_usable(connection->db)) {
        connection->used_ms = clock_monotonic_ms();
        return connection->db;
    }
    if (clock_monotonic_ms() < connection->retry_at_ms) {
        err_set(err, ERR_TRANSIENT, "database_unavailable", "the database is not available");
        return NULL;
    }
    struct err why = ERR_INIT;
    if (open_or_reset(connection, &why) && db_migrate_check_version(connection->db, &why)) {
        backoff_reset(&connection->backoff);
        tell(connection, NULL);
        connection->used_ms = clock_monotonic_ms();
        return connection->db;
    }
    db_close(&connection->db);
    tell(connection, &why);
    connection->retry_at_ms = clock_monotonic_ms() + backoff_next_ms(&connection->backoff, rand_uint32());
    backoff_fail(&connection->backoff);
    err_set(err, ERR_TRANSIENT, "database_unavailable", "the database is not available");
    return NULL;
}

void producer_connection_keep_partitions(struct producer_connection *connection)
{
    int64_t now_ms = clock_monotonic_ms();
    if (!connection->tells_health || now_ms < connection->partitions_at_ms || connection->db == NULL ||
        !db_is_usable(connection->db)) {
        return;
    }
    int made = 0;
    int64_t ids_ahead = 0;
    int64_t ids_a_day = 0;
    struct err err = ERR_INIT;
    connection->partitions_at_ms = now_ms + PARTITIONS_EVERY_MS;
    if (!db_partition_make(connection->db, &made, &ids_ahead, &ids_a_day, &err)) {
        /* Soon: until the first look has succeeded the producer is not ready. */
        connection->partitions_at_ms = now_ms + PARTITIONS_RETRY_MS;
        log_warning("producer.partitions_failed", LOG_FIELDS(LOG_ERR(&err)), "%s; trying again", err.text);
    } else if (ids_ahead < ids_a_day) {
        health_set_unready(connection->health, "partitions", "%lld ids are left, a day takes %lld",
                           (long long)ids_ahead, (long long)ids_a_day);
    } else {
        health_set_ready(connection->health, "partitions");
    }
    if (made > 0) {
        log_info("producer.partitions_made", LOG_FIELDS(LOG_INT("count", made)), "%lld ids are ahead",
                 (long long)ids_ahead);
    }
}

void producer_connection_check(struct producer_connection *connection)
{
    if (clock_monotonic_ms() - connection->used_ms < CHECK_AFTER_MS) {
        return;
    }
    struct err err = ERR_INIT;
    struct db *db = producer_connection_get(connection, &err);
    struct db_server server;
    if (db != NULL && !db_server_read(db, &server, &err)) {
        (void)producer_connection_get(connection, &(struct err)ERR_INIT);
    }
}
