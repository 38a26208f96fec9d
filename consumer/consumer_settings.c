/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of settings, and the mistakes that lie between settings.
 */
#include "consumer_settings.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "sinks/sink_mapping.h"
#include "sinks/sink_statement.h"

#define AT(member) offsetof(struct consumer_settings, member)

static const struct config_setting settings[] = {
    {.name = "database",
     .type = CONFIG_CONNINFO,
     .offset = AT(database),
     .is_required = true,
     .section = "Connections",
     .doc = "Postgres with the inbox and the sink's table: a libpq conninfo or URI."},
    {.name = "kafka",
     .type = CONFIG_TEXT,
     .offset = AT(kafka),
     .preset = "127.0.0.1:29092",
     .section = "Connections",
     .doc = "Kafka's bootstrap servers."},
    {.name = "kafka.",
     .type = CONFIG_PAIRS,
     .offset = AT(kafka_properties),
     .section = "Connections",
     .doc = "Passed to librdkafka as it is. Offsets, commits, the group and fetched memory cannot be changed so."},
    {.name = "listen",
     .type = CONFIG_ADDRESS,
     .offset = AT(listen),
     .preset = "127.0.0.1:8482",
     .section = "Service",
     .doc = "Where /livez, /readyz and /metrics are served."},
    {.name = "log_level",
     .type = CONFIG_CHOICE,
     .offset = AT(log_level),
     .preset = "info",
     .choices = log_level_names,
     .section = "Service",
     .doc = "The least level that is logged."},
    {.name = "name",
     .type = CONFIG_TEXT,
     .offset = AT(name),
     .preset = "consumer-1",
     .min = 1,
     .max = 200,
     .section = "Service",
     .doc = "Name of this process among those of its consumer. A restart under it gets its partitions back at once."},
    {.name = "consumer",
     .type = CONFIG_TEXT,
     .offset = AT(consumer),
     .min = 1,
     .max = 200,
     .is_required = true,
     .section = "Consumption",
     .doc = "Whose inbox and cursors these are, and Kafka's group. An event has one effect per consumer."},
    {.name = "topics",
     .type = CONFIG_LIST,
     .offset = AT(topics),
     .is_required = true,
     .section = "Consumption",
     .doc = "Topics to consume."},
    {.name = "start",
     .type = CONFIG_TEXT,
     .offset = AT(start),
     .preset = "earliest",
     .section = "Consumption",
     .doc = "Where a consumer begins that never saw the topic: earliest, latest, or a time (RFC 3339). Partitions "
            "that are added later begin at 0."},
    {.name = "batch_records_max",
     .type = CONFIG_INT,
     .offset = AT(batch_records_max),
     .preset = "1000",
     .min = 1,
     .max = 10000,
     .section = "Consumption",
     .doc = "Most records in one transaction."},
    {.name = "memory",
     .type = CONFIG_SIZE,
     .offset = AT(memory),
     .preset = "16MiB",
     .min = 1048576,
     .max = 17179869184,
     .section = "Consumption",
     .doc = "Bytes for records that are fetched ahead or wait to be applied."},
    {.name = "checkpoint_ms",
     .type = CONFIG_INT,
     .offset = AT(checkpoint_ms),
     .preset = "3000",
     .min = 100,
     .max = 600000,
     .section = "Consumption",
     .doc = "How often the last applied record is read again and compared: a topic that was deleted and made anew is "
            "found so."},
    {.name = "sink_table",
     .type = CONFIG_TEXT,
     .offset = AT(sink_table),
     .section = "Sink",
     .doc = "The table that events are written to. Either this with sink_columns, or sink_sql."},
    {.name = "sink_columns",
     .type = CONFIG_LIST,
     .offset = AT(sink_columns),
     .section = "Sink",
     .doc = "What goes where: column=path, … with a path of ce_id, ce_source, ce_type, ce_subject, ce_time, "
            "ce_sequence, ce_dataschema, ce_tenantid, content_type, traceparent, kafka_topic, kafka_partition, "
            "kafka_offset, kafka_key, value (the whole), or a JSON pointer into the value as /data/name."},
    {.name = "sink_key",
     .type = CONFIG_LIST,
     .offset = AT(sink_key),
     .section = "Sink",
     .doc = "The table's unique key among those columns: a row is replaced if the event's ce_sequence is greater. "
            "Empty: every event adds a row."},
    {.name = "sink_sql",
     .type = CONFIG_TEXT,
     .offset = AT(sink_sql),
     .section = "Sink",
     .doc = "A statement of your own instead, over the fresh events as the table expression `events` (ce_id, …, "
            "kafka_key, value as jsonb, value_bytes as bytea)."},
    {.name = "dead_letters_in_a_row_max",
     .type = CONFIG_INT,
     .offset = AT(dead_letters_in_a_row_max),
     .preset = "100",
     .min = 1,
     .max = 1000000000,
     .section = "Dead letters",
     .doc = "More dead letters than this in a row halt the consumer."},
    {.name = "dead_letters_percent_max",
     .type = CONFIG_INT,
     .offset = AT(dead_letters_percent_max),
     .preset = "50",
     .min = 1,
     .max = 100,
     .section = "Dead letters",
     .doc = "A greater part of the last thousand deliveries halts the consumer."},
};

bool consumer_settings_start(const char *text, enum consumer_start *ret_start, int64_t *ret_unix_ms)
{
    *ret_unix_ms = 0;
    if (strcmp(text, "earliest") == 0 || strcmp(text, "latest") == 0) {
        *ret_start = text[0] == 'e' ? CONSUMER_START_EARLIEST : CONSUMER_START_LATEST;
        return true;
    }
    int64_t unix_us = 0;
    *ret_start = CONSUMER_START_TIME;
    if (!clock_from_text(text, &unix_us) || unix_us < 0) {
        return false;
    }
    *ret_unix_ms = unix_us / 1000;
    return true;
}

static void check_sink(const struct consumer_settings *own, struct config_report *report)
{
    bool has_mapping = own->sink_table != NULL;
    bool has_statement = own->sink_sql != NULL;
    if (has_mapping == has_statement) {
        config_mistake(report, has_mapping ? "sink_sql" : "sink_table", "set one of sink_table and sink_sql");
        return;
    }
    struct err err = ERR_INIT;
    if (!has_mapping) {
        if (!sink_statement_check(own->sink_sql, &err)) {
            config_mistake(report, "sink_sql", "%s", err.text);
        }
        if (own->sink_columns.count > 0 || own->sink_key.count > 0) {
            config_mistake(report, "sink_columns", "means nothing beside sink_sql");
        }
        return;
    }
    struct sink_mapping mapping = {
        .table = own->sink_table,
        .keys = (const char *const *)own->sink_key.items,
        .key_count = own->sink_key.count,
        .pairs = (const char *const *)own->sink_columns.items,
        .pair_count = own->sink_columns.count,
    };
    if (!sink_mapping_check(&mapping, &err)) {
        config_mistake(report, "sink_columns", "%s", err.text);
    }
}

static void check(const void *all, struct config_report *report)
{
    const struct consumer_settings *own = all;
    enum consumer_start start;
    int64_t unix_ms = 0;
    if (!consumer_settings_start(own->start, &start, &unix_ms)) {
        config_mistake(report, "start", "\"%s\" is not earliest, latest or a time as 2026-11-30T06:00:00Z", own->start);
    }
    check_sink(own, report);
}

const struct config_program consumer_settings_program = {
    .name = "onceward-consumer",
    .summary = "Applies the events of Kafka topics, each once, to a table in Postgres.",
    .settings = settings,
    .setting_count = sizeof settings / sizeof settings[0],
    .check = check,
};
