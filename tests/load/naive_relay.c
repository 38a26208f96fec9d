/* SPDX-License-Identifier: Apache-2.0
 *
 * naive-relay: the relay as a team in a hurry writes it, to be run where outbox-relay runs and fail where that must
 * not. It takes the same settings and makes the same records. Two things are wrong with it, on purpose:
 *
 *   - what is new is decided by ids (`WHERE id > last ORDER BY id`): a transaction that took a low id and commits late
 *     is never seen;
 *   - the cursor is moved when the records were handed to Kafka's library, and nobody waits for the broker's word: a
 *     death between the two repeats, a death after both loses what was still in memory.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/stop.h"
#include "db/db_outbox.h"
#include "db_private.h"
#include "domain/publisher.h"
#include "http/health.h"
#include "http/metrics.h"
#include "kafka/kafka_publisher.h"
#include "relay_broker.h"
#include "relay_settings.h"

#define HEARTBEAT_LIMIT_MS 60000
#define RETRY_MS 200
#define REPORT_COUNT 256

/* Snapshots to which nothing, and everything that the statement itself can see, is visible. */
#define SEES_NOTHING "3:3:"
#define SEES_ALL "9000000000000000000:9000000000000000000:"

struct naive_relay {
    struct relay_settings settings;
    struct health *health;
    struct db *db;
    struct publisher *publisher;
};

static const struct db_statement READ_CURSOR = {
    .sql = "SELECT last FROM naive.relay_cursor",
    .columns = {DB_INT8},
};

static const struct db_statement MOVE_CURSOR = {.sql = "UPDATE naive.relay_cursor SET last = $1"};

static bool read_new(struct naive_relay *relay, struct db_outbox_bite *ret_bite, struct err *err)
{
    DB_RESULT(result);
    if (!db_exec_row(relay->db, &READ_CURSOR, NULL, &result, err)) {
        return false;
    }
    const struct db_outbox_range range = {.from_text = SEES_NOTHING,
                                          .to_text = SEES_ALL,
                                          .lanes = (1U << EVENT_LANE_COUNT) - 1,
                                          .row_count_max = (int32_t)relay->settings.bite_events,
                                          .bytes_max = (int64_t)relay->settings.bite_bytes};
    return db_outbox_read_window(relay->db, &range, db_get_int8(result, 0, 0), INT64_MAX, ret_bite, err);
}

static bool move_cursor(struct naive_relay *relay, int64_t last, struct err *err)
{
    DB_PARAMS(params);
    db_params_int8(&params, last);
    return db_exec(relay->db, &MOVE_CURSOR, &params, NULL, err);
}

/* Reports are looked at for the log only: this is the acknowledgement that nobody waits for. */
static void drop_reports(struct naive_relay *relay, int timeout_ms)
{
    struct publish_report reports[REPORT_COUNT];
    size_t count = relay->publisher->ops->collect(relay->publisher, reports, REPORT_COUNT, timeout_ms);
    for (size_t i = 0; i < count; i++) {
        if (!reports[i].was_acknowledged) {
            log_warning("naive_relay.not_published", LOG_FIELDS(LOG_ERR(&reports[i].err)), "%s", reports[i].err.text);
        }
    }
}

/* Until the library has taken it, refused it for good, or is spent. */
static bool publish(struct naive_relay *relay, const struct event *event, struct err *err)
{
    while (!stop_requested()) {
        enum publish_outcome outcome = PUBLISH_FULL;
        struct err why = ERR_INIT;
        bool is_good = relay->publisher->ops->publish(relay->publisher, event, 0, &outcome, &why);
        if (is_good && outcome == PUBLISH_QUEUED) {
            return true;
        }
        if (!is_good && why.kind == ERR_FATAL) {
            *err = why;
            return false;
        }
        if (!is_good && why.kind == ERR_PERMANENT) {
            log_warning("naive_relay.refused", LOG_FIELDS(LOG_TEXT("event_id", event->event_id)), "%s", why.text);
            return true;
        }
        health_heartbeat(relay->health);
        drop_reports(relay, RETRY_MS);
    }
    return err_set(err, ERR_TRANSIENT, "stopped", "asked to stop");
}

/* One look at the outbox. */
static bool step(struct naive_relay *relay, size_t *ret_count, struct err *err)
{
    struct db_outbox_bite bite = {.count = 0};
    *ret_count = 0;
    if (!read_new(relay, &bite, err)) {
        return false;
    }
    bool is_good = true;
    for (size_t i = 0; is_good && i < bite.count; i++) {
        is_good = publish(relay, &bite.events[i], err);
    }
    if (is_good && bite.count > 0) {
        *ret_count = bite.count;
        is_good = move_cursor(relay, bite.events[bite.count - 1].outbox_id, err);
    }
    db_outbox_bite_done(&bite);
    drop_reports(relay, 0);
    return is_good;
}

static bool connect(struct naive_relay *relay, struct err *err)
{
    if (relay->publisher == NULL) {
        relay->publisher = relay_broker_open(&relay->settings, false, err);
    }
    if (relay->publisher == NULL || (relay->db != NULL && db_is_usable(relay->db))) {
        return relay->publisher != NULL;
    }
    if (relay->db != NULL) {
        return db_reset(relay->db, err);
    }
    struct db_settings settings = DB_SETTINGS_INIT;
    settings.conninfo = relay->settings.database;
    settings.application_name = "naive-relay";
    settings.needs_primary = true;
    settings.stop_fd = stop_fd();
    relay->db = db_open(&settings, err);
    return relay->db != NULL;
}

static void tell_trouble(struct naive_relay *relay, const struct err *err)
{
    log_warning("naive_relay.trouble", LOG_FIELDS(LOG_ERR(err)), "%s; trying again", err->text);
    health_set_unready(relay->health, "database", "%s", err->text);
    if (err->kind == ERR_FATAL && relay->publisher != NULL) {
        relay->publisher->ops->close(relay->publisher); /* With it goes what it still held. */
        relay->publisher = NULL;
    }
    stop_wait_ms(RETRY_MS);
}

static void run(struct naive_relay *relay)
{
    while (!stop_requested()) {
        struct err err = ERR_INIT;
        size_t count = 0;
        health_heartbeat(relay->health);
        if (!connect(relay, &err) || !step(relay, &count, &err)) {
            tell_trouble(relay, &err);
            continue;
        }
        health_set_ready(relay->health, "database");
        if (kafka_publisher_is_reachable(relay->publisher)) {
            health_set_ready(relay->health, "kafka");
        } else {
            health_set_unready(relay->health, "kafka", "no broker answers");
        }
        stop_wait_ms(count > 0 ? 0 : relay->settings.poll_min_ms);
    }
    for (int64_t left_ms = relay->settings.drain_timeout_ms; relay->publisher != NULL && left_ms > 0;
         left_ms -= RETRY_MS) {
        if (relay->publisher->ops->outstanding_count(relay->publisher) == 0) {
            break;
        }
        drop_reports(relay, RETRY_MS);
    }
}

static bool start(struct naive_relay *relay, struct err *err)
{
    char listen[CONFIG_ADDRESS_TEXT_SIZE];
    config_address_to_text(&relay->settings.listen, listen);
    return stop_init(err) && health_start(relay->health, listen, err);
}

int main(int argc, char **argv)
{
    struct naive_relay relay = {.db = NULL};
    struct err err = ERR_INIT;
    struct config_program program = relay_settings_program;
    program.name = "naive-relay";
    enum config_outcome outcome = config_load(&program, argc, argv, &relay.settings, NULL, stdout, stderr);
    if (outcome != CONFIG_RUN) {
        return outcome == CONFIG_DONE ? EXIT_SUCCESS : 2;
    }
    log_init(program.name, (enum log_level)relay.settings.log_level, stderr);
    struct metrics *metrics = metrics_new(&err);
    relay.health = metrics == NULL ? NULL : health_new(program.name, metrics, HEARTBEAT_LIMIT_MS, &err);
    bool is_started = relay.health != NULL && start(&relay, &err);
    if (is_started) {
        health_set_unready(relay.health, "kafka", "not connected yet");
        run(&relay);
    } else {
        log_error("naive_relay.failed", LOG_FIELDS(LOG_ERR(&err)), "%s", err.text);
    }
    if (relay.publisher != NULL) {
        relay.publisher->ops->close(relay.publisher);
    }
    db_close(&relay.db);
    health_free(&relay.health);
    metrics_free(&metrics);
    config_done(&program, &relay.settings);
    return is_started ? EXIT_SUCCESS : EXIT_FAILURE;
}
