/* SPDX-License-Identifier: Apache-2.0
 *
 * naive-consumer: the consumer as a team in a hurry writes it, to be run where onceward-consumer runs and fail where
 * that must not. It takes the same settings and runs the same sink's statement. Two things are wrong with it, on
 * purpose:
 *
 *   - the offset is stored first, in a transaction of its own, and the effect follows: a death between the two loses;
 *   - there is no inbox: whatever the topic repeats, and every effect whose commit was not answered, happens twice.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/stop.h"
#include "consumer_settings.h"
#include "db/db_sink.h"
#include "db_private.h"
#include "http/health.h"
#include "http/metrics.h"
#include "kafka/kafka_consumer.h"
#include "sinks/sink_postgres.h"

#define HEARTBEAT_LIMIT_MS 60000
#define POLL_MS 100
#define RETRY_MS 200
#define SESSION_TIMEOUT_MS 10000
#define CLOSE_MS 8000
#define OFFSET_EARLIEST (-2) /* RD_KAFKA_OFFSET_BEGINNING */

struct naive_consumer {
    struct consumer_settings settings;
    struct health *health;
    struct db *db;
    struct kafka_consumer *kafka;
    struct sink *sink;
    struct kafka_message *messages; /* The batch: batch_records_max of each. */
    struct event *events;
    struct db_sink_event *sink_events;
    size_t message_count;
    size_t event_count;
    struct kafka_place *places; /* Of the assignment, with the offset that comes next. */
    size_t place_count;
};

/* ---- The database ---------------------------------------------------------------------------------------------- */

static const struct db_statement READ_OFFSET = {
    .sql = "SELECT coalesce(max(next_offset), 0) FROM naive.consumer_offsets"
           " WHERE consumer = $1 AND topic = $2 AND partition = $3",
    .columns = {DB_INT8},
};

static const struct db_statement STORE_OFFSET = {
    .sql = "INSERT INTO naive.consumer_offsets (consumer, topic, partition, next_offset) VALUES ($1, $2, $3, $4)"
           " ON CONFLICT (consumer, topic, partition) DO UPDATE SET next_offset = excluded.next_offset",
};

static void add_place(struct naive_consumer *consumer, struct db_params *params, const char *topic, int32_t partition)
{
    db_params_text(params, consumer->settings.consumer);
    db_params_text(params, topic);
    db_params_int4(params, partition);
}

static bool connect(struct naive_consumer *consumer, struct err *err)
{
    if (consumer->db != NULL && db_is_usable(consumer->db)) {
        return true;
    }
    if (consumer->db != NULL) {
        return db_reset(consumer->db, err) && consumer->sink->ops->prepare(consumer->sink, consumer->db, err);
    }
    struct db_settings settings = DB_SETTINGS_INIT;
    settings.conninfo = consumer->settings.database;
    settings.application_name = "naive-consumer";
    settings.needs_primary = true;
    settings.stop_fd = stop_fd();
    consumer->db = db_open(&settings, err);
    return consumer->db != NULL && consumer->sink->ops->prepare(consumer->sink, consumer->db, err);
}

/* Of each run of records of one partition the last says it all. */
static bool is_last_of_run(const struct naive_consumer *consumer, size_t i)
{
    const struct kafka_record *record = &consumer->messages[i].record;
    const struct kafka_record *next = i + 1 < consumer->message_count ? &consumer->messages[i + 1].record : NULL;
    return next == NULL || next->topic != record->topic || next->partition != record->partition;
}

static bool store_offsets(struct naive_consumer *consumer, struct err *err)
{
    bool is_good = true;
    for (size_t i = 0; is_good && i < consumer->message_count; i++) {
        const struct kafka_record *record = &consumer->messages[i].record;
        if (is_last_of_run(consumer, i)) {
            DB_PARAMS(params);
            add_place(consumer, &params, record->topic, record->partition);
            db_params_int8(&params, record->offset + 1);
            is_good = db_exec(consumer->db, &STORE_OFFSET, &params, NULL, err);
        }
    }
    return is_good;
}

static bool make_effects(struct naive_consumer *consumer, struct err *err)
{
    DB_TX_AUTO struct db_tx *tx = NULL;
    return db_tx_begin(consumer->db, &tx, err) &&
           consumer->sink->ops->apply(consumer->sink, tx, consumer->sink_events, consumer->event_count, err) &&
           db_tx_commit(&tx, err) == DB_TX_COMMITTED;
}

/* One thing after another, each again and again until it works: what a death cuts off is never taken up again. */
static void until_done(struct naive_consumer *consumer, bool (*act)(struct naive_consumer *consumer, struct err *err))
{
    do { /* At least once, also where a stop was asked for in between. */
        struct err err = ERR_INIT;
        health_heartbeat(consumer->health);
        if (connect(consumer, &err) && act(consumer, &err)) {
            health_set_ready(consumer->health, "database");
            return;
        }
        log_warning("naive_consumer.trouble", LOG_FIELDS(LOG_ERR(&err)), "%s", err.text);
        if (err.kind == ERR_PERMANENT) {
            return; /* The sink refuses the batch: let it go. */
        }
        health_set_unready(consumer->health, "database", "%s", err.text);
    } while (!stop_wait_ms(RETRY_MS));
}

static void apply_batch(struct naive_consumer *consumer)
{
    if (consumer->message_count > 0) {
        until_done(consumer, store_offsets);
    }
    if (consumer->event_count > 0) {
        until_done(consumer, make_effects);
    }
    for (size_t i = 0; i < consumer->message_count; i++) {
        kafka_message_done(&consumer->messages[i]);
    }
    consumer->message_count = 0;
    consumer->event_count = 0;
}

/* ---- The topic -------------------------------------------------------------------------------------------------- */

static bool read_offsets(struct naive_consumer *consumer, struct err *err)
{
    for (size_t i = 0; i < consumer->place_count; i++) {
        struct kafka_place *place = &consumer->places[i];
        DB_PARAMS(params);
        DB_RESULT(result);
        add_place(consumer, &params, place->topic, place->partition);
        if (!db_exec_row(consumer->db, &READ_OFFSET, &params, &result, err)) {
            return false;
        }
        place->offset = db_get_int8(result, 0, 0);
    }
    return true;
}

static bool on_assigned(struct naive_consumer *consumer, const struct kafka_consumer_event *event, struct err *err)
{
    free(consumer->places);
    consumer->place_count = 0;
    consumer->places = calloc(event->place_count + 1, sizeof *consumer->places);
    if (consumer->places == NULL) {
        return err_set(err, ERR_FATAL, "out_of_memory", "%zu partitions", event->place_count);
    }
    for (size_t i = 0; i < event->place_count; i++) {
        consumer->places[consumer->place_count++] = event->places[i];
    }
    until_done(consumer, read_offsets);
    health_set_ready(consumer->health, "kafka");
    return kafka_consumer_assign(consumer->kafka, consumer->places, consumer->place_count, err);
}

static struct kafka_place *find_place(struct naive_consumer *consumer, const char *topic, int32_t partition)
{
    for (size_t i = 0; i < consumer->place_count; i++) {
        if (consumer->places[i].topic == topic && consumer->places[i].partition == partition) {
            return &consumer->places[i];
        }
    }
    return NULL;
}

/* As auto.offset.reset=earliest does. */
static bool on_out_of_range(struct naive_consumer *consumer, const struct kafka_place *lost, struct err *err)
{
    struct kafka_place *place = find_place(consumer, lost->topic, lost->partition);
    if (place == NULL) {
        return true;
    }
    log_warning("naive_consumer.reset", LOG_FIELDS(LOG_INT("partition", lost->partition)), "to the earliest record");
    place->offset = OFFSET_EARLIEST;
    return kafka_consumer_assign(consumer->kafka, consumer->places, consumer->place_count, err);
}

static void on_message(struct naive_consumer *consumer, struct kafka_message *message)
{
    size_t i = consumer->message_count++;
    consumer->messages[i] = *message;
    const struct kafka_record *record = &consumer->messages[i].record;
    struct kafka_place *place = find_place(consumer, record->topic, record->partition);
    if (place != NULL) {
        place->offset = record->offset + 1;
    }
    struct err why = ERR_INIT;
    struct event *event = &consumer->events[consumer->event_count];
    if (!kafka_message_decode(&consumer->messages[i], event, &why)) {
        log_warning("naive_consumer.no_event", LOG_FIELDS(LOG_ERR(&why)), "%s", why.text);
        return;
    }
    consumer->sink_events[consumer->event_count++] =
        (struct db_sink_event){.event = event, .partition = record->partition, .offset = record->offset};
}

static bool on_event(struct naive_consumer *consumer, struct kafka_consumer_event *event, struct err *err)
{
    switch (event->kind) {
    case KAFKA_CONSUMER_NOTHING: return true;
    case KAFKA_CONSUMER_MESSAGE: on_message(consumer, &event->message); return true;
    case KAFKA_CONSUMER_ASSIGNED: return on_assigned(consumer, event, err);
    case KAFKA_CONSUMER_REVOKED:
    case KAFKA_CONSUMER_LOST: return kafka_consumer_unassign(consumer->kafka, err);
    case KAFKA_CONSUMER_OUT_OF_RANGE: return on_out_of_range(consumer, &event->places[0], err);
    case KAFKA_CONSUMER_TROUBLE: log_warning("naive_consumer.kafka", LOG_NO_FIELDS, "%s", event->err.text); return true;
    }
    assert(!"no such event");
    return false;
}

static bool run(struct naive_consumer *consumer, struct err *err)
{
    while (!stop_requested()) {
        int timeout_ms = POLL_MS;
        health_heartbeat(consumer->health);
        while (consumer->message_count < (size_t)consumer->settings.batch_records_max) {
            struct kafka_consumer_event event;
            if (!kafka_consumer_poll(consumer->kafka, timeout_ms, &event, err) || !on_event(consumer, &event, err)) {
                return false;
            }
            if (event.kind == KAFKA_CONSUMER_NOTHING) {
                break;
            }
            timeout_ms = 0;
        }
        apply_batch(consumer);
    }
    return true;
}

/* ---- Life -------------------------------------------------------------------------------------------------------- */

static bool open_kafka(struct naive_consumer *consumer, struct err *err)
{
    const struct consumer_settings *its = &consumer->settings;
    struct kafka_property *properties = calloc(its->kafka_properties.count + 1, sizeof *properties);
    if (properties == NULL) {
        return err_set(err, ERR_FATAL, "out_of_memory", "properties");
    }
    for (size_t i = 0; i < its->kafka_properties.count; i++) {
        properties[i] = (struct kafka_property){.name = its->kafka_properties.items[i].name,
                                                .value = its->kafka_properties.items[i].value};
    }
    const struct kafka_consumer_options options = {.brokers = its->kafka,
                                                   .group = its->consumer,
                                                   .instance = its->name,
                                                   .topics = (const char *const *)its->topics.items,
                                                   .topic_count = its->topics.count,
                                                   .memory_size_max = its->memory,
                                                   .session_timeout_ms = SESSION_TIMEOUT_MS,
                                                   .properties = properties,
                                                   .property_count = its->kafka_properties.count};
    consumer->kafka = kafka_consumer_open(&options, err);
    free(properties);
    return consumer->kafka != NULL;
}

static bool open_sink(struct naive_consumer *consumer, struct err *err)
{
    const struct consumer_settings *its = &consumer->settings;
    const struct sink_postgres_options options = {
        .statement = its->sink_sql,
        .mapping = {.table = its->sink_table,
                    .keys = (const char *const *)its->sink_key.items,
                    .key_count = its->sink_key.count,
                    .pairs = (const char *const *)its->sink_columns.items,
                    .pair_count = its->sink_columns.count},
    };
    consumer->sink = sink_postgres_new(&options, err);
    return consumer->sink != NULL;
}

static bool open_batch(struct naive_consumer *consumer, struct err *err)
{
    size_t count = (size_t)consumer->settings.batch_records_max;
    consumer->messages = calloc(count, sizeof *consumer->messages);
    consumer->events = calloc(count, sizeof *consumer->events);
    consumer->sink_events = calloc(count, sizeof *consumer->sink_events);
    return (consumer->messages != NULL && consumer->events != NULL && consumer->sink_events != NULL) ||
           err_set(err, ERR_FATAL, "out_of_memory", "a batch of %zu records", count);
}

static bool start_and_run(struct naive_consumer *consumer, struct err *err)
{
    char listen[CONFIG_ADDRESS_TEXT_SIZE];
    config_address_to_text(&consumer->settings.listen, listen);
    if (!stop_init(err) || !open_batch(consumer, err) || !open_sink(consumer, err) || !open_kafka(consumer, err)) {
        return false;
    }
    health_set_unready(consumer->health, "kafka", "no partitions yet");
    return health_start(consumer->health, listen, err) && run(consumer, err);
}

static void close_all(struct naive_consumer *consumer)
{
    for (size_t i = 0; i < consumer->message_count; i++) {
        kafka_message_done(&consumer->messages[i]);
    }
    (void)kafka_consumer_close(&consumer->kafka, CLOSE_MS);
    db_close(&consumer->db);
    if (consumer->sink != NULL) {
        consumer->sink->ops->free(consumer->sink);
    }
    free(consumer->messages);
    free(consumer->events);
    free(consumer->sink_events);
    free(consumer->places);
}

int main(int argc, char **argv)
{
    struct naive_consumer consumer = {.db = NULL};
    struct err err = ERR_INIT;
    struct config_program program = consumer_settings_program;
    program.name = "naive-consumer";
    enum config_outcome outcome = config_load(&program, argc, argv, &consumer.settings, NULL, stdout, stderr);
    if (outcome != CONFIG_RUN) {
        return outcome == CONFIG_DONE ? EXIT_SUCCESS : 2;
    }
    log_init(program.name, (enum log_level)consumer.settings.log_level, stderr);
    struct metrics *metrics = metrics_new(&err);
    consumer.health = metrics == NULL ? NULL : health_new(program.name, metrics, HEARTBEAT_LIMIT_MS, &err);
    bool is_good = consumer.health != NULL && start_and_run(&consumer, &err);
    if (!is_good) {
        log_error("naive_consumer.failed", LOG_FIELDS(LOG_ERR(&err)), "%s", err.text);
    }
    close_all(&consumer);
    health_free(&consumer.health);
    metrics_free(&metrics);
    config_done(&program, &consumer.settings);
    return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
