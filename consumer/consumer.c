/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop: collect, apply, tend. It alone decides to wait, to try again or to
 * stop. The invariant: whatever goes wrong with the database or the sink, what
 * is in memory is given up and read again from the cursors that the database
 * has.
 */
#include "consumer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/rand.h"
#include "base/stop.h"
#include "base/text.h"
#include "consumer_private.h"
#include "db/db.h"
#include "db/db_migrate.h"
#include "http/health.h"
#include "sinks/sink_postgres.h"

#define IDLE_WAIT_MS 100
#define CLOSE_MS 8000
#define SCOPE_LIVE "live"

static const struct backoff first_backoff = {.first_ms = 100, .max_ms = 5000};

/* ---- Life ----------------------------------------------------------------------------------------------------- */

static struct kafka_consumer_options kafka_options(const struct consumer_settings *settings)
{
    return (struct kafka_consumer_options){
        .brokers = settings->kafka,
        .group = settings->consumer,
        .instance = settings->name,
        .topics = (const char *const *)settings->topics.items,
        .topic_count = settings->topics.count,
        .memory_size_max = settings->memory,
        .session_timeout_ms = CONSUMER_SESSION_TIMEOUT_MS,
    };
}

static bool open_kafka(struct consumer *consumer, struct err *err)
{
    const struct config_pairs *pairs = &consumer->settings->kafka_properties;
    struct kafka_consumer_options options = kafka_options(consumer->settings);
    struct kafka_property *properties = calloc(pairs->count + 1, sizeof *properties);
    if (properties == NULL) {
        return err_set(err, ERR_FATAL, "out_of_memory", "%zu properties", pairs->count);
    }
    for (size_t i = 0; i < pairs->count; i++) {
        properties[i] = (struct kafka_property){.name = pairs->items[i].name, .value = pairs->items[i].value};
    }
    options.properties = properties;
    options.property_count = pairs->count;
    consumer->reader = kafka_reader_open(&options, err);
    if (consumer->reader != NULL) {
        consumer->kafka = kafka_consumer_open(&options, err);
    }
    free(properties);
    return consumer->kafka != NULL;
}

static bool open_sink(struct consumer *consumer, struct err *err)
{
    const struct consumer_settings *settings = consumer->settings;
    struct sink_postgres_options options = {
        .statement = settings->sink_sql,
        .mapping =
            {
                .table = settings->sink_table,
                .keys = (const char *const *)settings->sink_key.items,
                .key_count = settings->sink_key.count,
                .pairs = (const char *const *)settings->sink_columns.items,
                .pair_count = settings->sink_columns.count,
            },
    };
    consumer->sink = sink_postgres_new(&options, err);
    consumer->apply.sink = consumer->sink;
    return consumer->sink != NULL;
}

struct consumer *consumer_new(const struct consumer_settings *settings, struct health *health, struct metrics *metrics,
                              struct err *err)
{
    struct consumer *consumer = calloc(1, sizeof *consumer);
    if (consumer == NULL) {
        err_set(err, ERR_FATAL, "out_of_memory", "consumer");
        return NULL;
    }
    consumer->settings = settings;
    consumer->health = health;
    consumer->metrics = metrics;
    consumer->self =
        (struct db_progress_self){.consumer = settings->consumer, .scope = SCOPE_LIVE, .owner = settings->name};
    rand_bytes(consumer->self.incarnation.bytes, sizeof consumer->self.incarnation.bytes);
    consumer->sources.consumer = settings->consumer;
    consumer->backoff = first_backoff;
    consumer->is_suspended = true;
    consumer->is_unreachable = true;
    consumer->apply.self = &consumer->self;
    consumer->apply.breaker = (struct consumer_breaker){.consecutive_max = settings->dead_letters_in_a_row_max,
                                                        .percent_max = settings->dead_letters_percent_max};
    size_t count_max = (size_t)settings->batch_records_max;
    consumer_measure_init(consumer);
    if (!consumer_batch_init(&consumer->batch, count_max, settings->memory / 8, err) ||
        !consumer_apply_init(&consumer->apply, count_max, err) || !open_sink(consumer, err) ||
        !open_kafka(consumer, err)) {
        consumer_free(&consumer);
        return NULL;
    }
    consumer_measure_step(consumer);
    health_set_unready(health, "database", "not connected yet");
    log_info("consumer.started",
             LOG_FIELDS(LOG_TEXT("consumer", settings->consumer), LOG_TEXT("name", settings->name),
                        LOG_TEXT("kafka", settings->kafka), LOG_INT("port", health_port(health))),
             "version %s", ONCEWARD_VERSION);
    return consumer;
}

void consumer_free(struct consumer **consumerp)
{
    struct consumer *consumer = *consumerp;
    *consumerp = NULL;
    if (consumer == NULL) {
        return;
    }
    if (consumer->batch.items != NULL) {
        consumer_batch_done(&consumer->batch);
    }
    bool is_closed = kafka_consumer_close(&consumer->kafka, CLOSE_MS);
    is_closed = kafka_reader_close(&consumer->reader, CLOSE_MS / 4) && is_closed;
    if (!is_closed) {
        log_warning("consumer.close_timeout", LOG_NO_FIELDS, "Kafka's library did not end in time; leaving it behind");
    }
    db_close(&consumer->db);
    if (consumer->sink != NULL) {
        consumer->sink->ops->free(consumer->sink);
    }
    consumer_apply_done(&consumer->apply);
    consumer_cursors_done(&consumer->cursors);
    free(consumer);
}

/* ---- The database ---------------------------------------------------------------------------------------------- */

/* By its session's name `onceward status` sees that the consumer lives. Postgres keeps 63 bytes. */
static bool connect(struct consumer *consumer, struct err *err)
{
    if (consumer->db == NULL) {
        char session_name[64];
        (void)text_format(session_name, sizeof session_name, "onceward-consumer %s", consumer->self.consumer);
        struct db_settings settings = DB_SETTINGS_INIT;
        settings.conninfo = consumer->settings->database;
        settings.application_name = session_name;
        settings.needs_primary = true;
        settings.plans_once = consumer->settings->sink_sql == NULL; /* Of somebody else's statement we know nothing. */
        /* All below the group's session timeout, so that a frozen rival cannot hold a cursor. */
        settings.connect_timeout_ms = 3000;
        settings.lock_timeout_ms = 3000;
        settings.statement_timeout_ms = 6000;
        settings.idle_in_transaction_timeout_ms = 6000;
        settings.answer_timeout_ms = 8000;
        settings.stop_fd = stop_fd();
        settings.stop_grace_ms = 5000;
        consumer->db = db_open(&settings, err);
        return consumer->db != NULL;
    }
    return db_reset(consumer->db, err);
}

/* What has to be known of a server before anything is applied to it. */
static bool meet(struct consumer *consumer, struct err *err)
{
    struct db *db = consumer->db;
    return db_migrate_check_version(db, err) &&
           db_inbox_scope(db, consumer->self.consumer, consumer->self.scope, &consumer->apply.claim.scope_id, err) &&
           consumer_sources_load(&consumer->sources, db, err) && consumer->sink->ops->prepare(consumer->sink, db, err);
}

bool consumer_suspend(struct consumer *consumer, const struct err *why, struct err *err)
{
    if (why->kind == ERR_FATAL) {
        *err = *why;
        return false;
    }
    int64_t wait_ms = backoff_next_ms(&consumer->backoff, rand_uint32());
    backoff_fail(&consumer->backoff);
    consumer->retry_at_ms = clock_monotonic_ms() + wait_ms;
    consumer->is_suspended = true;
    consumer_batch_clear(&consumer->batch);
    consumer_verify_cancel(consumer);
    if (strcmp(consumer->suspended_code, why->code) != 0) {
        log_warning("consumer.suspended", LOG_FIELDS(LOG_ERR(why)), "%s; trying again until it passes", why->text);
        (void)text_copy(consumer->suspended_code, sizeof consumer->suspended_code, why->code);
    } else {
        log_debug("consumer.suspended_again", LOG_FIELDS(LOG_ERR(why)), "%s; trying again in %lld ms", why->text,
                  (long long)wait_ms);
    }
    health_set_unready(consumer->health, "database", "%s", why->text);
    return consumer_place_pause_all(consumer, err);
}

/* Says that it runs, once that is certain. */
static void tell_running(struct consumer *consumer)
{
    consumer->is_doubtful = false;
    consumer->suspended_code[0] = '\0';
    health_set_ready(consumer->health, "database");
    log_info("consumer.running", LOG_FIELDS(LOG_TEXT("database", db_where(consumer->db))),
             "database and sink are there");
}

/* From suspended to running: a new connection always, since its settings and its server must be known again. */
static bool restore(struct consumer *consumer, struct err *err)
{
    if (!connect(consumer, err) || !meet(consumer, err) || !consumer_place_look(consumer, err)) {
        return false;
    }
    consumer->is_suspended = false;
    consumer->doubt_until_ms = clock_monotonic_ms() + CONSUMER_DOUBT_MS;
    if (!consumer->is_doubtful) {
        tell_running(consumer);
    }
    return true;
}

/* ---- Applying -------------------------------------------------------------------------------------------------- */

static bool halt(struct consumer *consumer, struct err *err)
{
    consumer->is_halted = true;
    log_error("consumer.halted",
              LOG_FIELDS(LOG_INT("in_a_row_max", consumer->settings->dead_letters_in_a_row_max),
                         LOG_INT("percent_max", consumer->settings->dead_letters_percent_max)),
              "so many records are refused that something else must be wrong; nothing is applied any more. Mend it, "
              "then start this process again");
    return consumer_place_pause_all(consumer, err);
}

static bool look_after_fence(struct consumer *consumer, struct err *err)
{
    for (size_t i = 0; i < consumer->cursors.count; i++) {
        if (consumer->cursors.items[i].state == CONSUMER_CURSOR_FENCED && consumer->cursors.items[i].until_ms == 0) {
            return consumer_place_look(consumer, err);
        }
    }
    return true;
}

bool consumer_apply_now(struct consumer *consumer, struct err *err)
{
    if (consumer->batch.count == 0) {
        return true;
    }
    assert(!consumer->is_suspended && !consumer->is_halted);
    struct err why = ERR_INIT;
    enum consumer_apply_outcome outcome = CONSUMER_APPLIED;
    bool is_good =
        consumer_sources_settle(&consumer->sources, consumer->db, &consumer->batch, &why) &&
        consumer_apply_batch(&consumer->apply, consumer->db, &consumer->batch, &consumer->cursors, &outcome, &why) &&
        look_after_fence(consumer, &why);
    consumer_batch_clear(&consumer->batch);
    FAILPOINT("consumer.after_commit_before_hint");
    if (!is_good) {
        consumer->is_doubtful = true;
        return consumer_suspend(consumer, &why, err);
    }
    if (consumer->is_doubtful) {
        tell_running(consumer);
    }
    backoff_reset(&consumer->backoff);
    return outcome == CONSUMER_APPLIED || halt(consumer, err);
}

/* ---- Tending --------------------------------------------------------------------------------------------------- */

static bool is_due(int64_t *at_ms, int64_t now_ms, int64_t every_ms)
{
    if (now_ms < *at_ms) {
        return false;
    }
    *at_ms = now_ms + every_ms;
    return true;
}

static bool tend_database(struct consumer *consumer, int64_t now_ms, struct err *err)
{
    if (!consumer_place_tell_stops(consumer, err)) {
        return false;
    }
    if (is_due(&consumer->take_at_ms, now_ms, CONSUMER_LOOK_MS / 4) && !consumer_place_take(consumer, err)) {
        return false;
    }
    if (is_due(&consumer->look_at_ms, now_ms, CONSUMER_LOOK_MS) && !consumer_place_look(consumer, err)) {
        return false;
    }
    return !is_due(&consumer->prune_at_ms, now_ms, CONSUMER_PRUNE_MS) || consumer_place_prune(consumer, err);
}

/* A broker that does not answer is no reason to give up what the database has. */
static bool is_of_broker(const struct err *why)
{
    return why->kind == ERR_TRANSIENT && (why->code[0] == '_' || strcmp(why->code, "cluster_unreachable") == 0 ||
                                          strcmp(why->code, "topic_unknown") == 0);
}

static bool tend(struct consumer *consumer, struct err *err)
{
    int64_t now_ms = clock_monotonic_ms();
    struct err why = ERR_INIT;
    if (consumer->is_suspended && now_ms >= consumer->retry_at_ms && !restore(consumer, &why)) {
        return consumer_suspend(consumer, &why, err);
    }
    if (consumer->is_halted && is_due(&consumer->look_at_ms, now_ms, CONSUMER_LOOK_MS) &&
        !consumer_place_tell_stops(consumer, &why)) {
        log_debug("consumer.stop_not_told", LOG_FIELDS(LOG_ERR(&why)), "%s; telling it again", why.text);
        err_clear(&why);
    }
    if (!consumer->is_suspended && !consumer->is_halted && !tend_database(consumer, now_ms, &why)) {
        if (!is_of_broker(&why)) {
            return consumer_suspend(consumer, &why, err);
        }
        log_warning("consumer.kafka_silent", LOG_FIELDS(LOG_ERR(&why)), "%s; asking again", why.text);
        consumer->take_at_ms = now_ms + CONSUMER_LOOK_MS;
        err_clear(&why);
    }
    if (!consumer->is_suspended && !consumer->is_halted && !consumer_verify_step(consumer, now_ms, &why)) {
        if (why.kind == ERR_FATAL) {
            *err = why;
            return false;
        }
        log_warning("consumer.check_failed", LOG_FIELDS(LOG_ERR(&why)), "%s; checking again", why.text);
    }
    if (is_due(&consumer->hint_at_ms, now_ms, CONSUMER_HINT_MS)) {
        consumer_place_hint(consumer);
    }
    if (consumer->is_doubtful && !consumer->is_suspended && now_ms >= consumer->doubt_until_ms) {
        tell_running(consumer);
    }
    consumer_collect_tend(consumer, now_ms);
    consumer_measure_probe(consumer, now_ms);
    consumer_measure_step(consumer);
    return true;
}

bool consumer_step(struct consumer *consumer, struct err *err)
{
    health_heartbeat(consumer->health);
    int timeout_ms = consumer->checkpoint.is_active ? IDLE_WAIT_MS / 10 : IDLE_WAIT_MS;
    return consumer_collect(consumer, timeout_ms, err) && consumer_apply_now(consumer, err) && tend(consumer, err);
}

bool consumer_run(struct consumer *consumer, struct err *err)
{
    while (!stop_requested()) {
        if (!consumer_step(consumer, err)) {
            consumer_batch_clear(&consumer->batch);
            return false;
        }
    }
    consumer_place_hint(consumer);
    consumer_measure_step(consumer);
    return true;
}
