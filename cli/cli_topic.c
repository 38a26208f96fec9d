/* SPDX-License-Identifier: Apache-2.0
 *
 * Topics and routes. The broker comes first and the table last, so that no
 * submit is accepted for a topic that nobody has made.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli.h"
#include "db/db.h"
#include "db/db_topic.h"
#include "kafka/kafka_admin.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- topic add ---------------------------------------------------------------------------------------------- */

static const struct cli_column ADDED_COLUMNS[] = {
    {"topic", "topic", CLI_TEXT, 0},
    {"table", "in the database", CLI_TEXT, 0},
    {"broker", "on the broker", CLI_TEXT, 0},
    {"partitions", "partitions", CLI_COUNT, 0},
    {"replication_factor", "replicas", CLI_COUNT, 0},
    {"event_bytes_max", "greatest event", CLI_SIZE, 0},
};

static bool has_setting(const struct config_pairs *pairs, const char *name)
{
    for (size_t i = 0; i < pairs->count; i++) {
        if (strcmp(pairs->items[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The topic's own settings: what --topic.* says, and the limit where only --event-bytes-max does. */
static size_t fill_settings(const struct cli_settings *settings, struct kafka_property *properties, char *limit,
                            size_t limit_size)
{
    size_t count = 0;
    for (; count < settings->topic_settings.count; count++) {
        properties[count].name = settings->topic_settings.items[count].name;
        properties[count].value = settings->topic_settings.items[count].value;
    }
    if (settings->event_bytes_max > 0 && !has_setting(&settings->topic_settings, "max.message.bytes")) {
        bool fits = text_format(limit, limit_size, "%" PRId64, settings->event_bytes_max);
        assert(fits);
        (void)fits;
        properties[count].name = "max.message.bytes";
        properties[count].value = limit;
        count++;
    }
    return count;
}

static bool make_on_broker(struct kafka_admin *admin, const struct cli *cli, enum kafka_admin_outcome *ret_outcome,
                           struct kafka_admin_facts *ret_facts, struct err *err)
{
    const struct cli_settings *settings = cli->settings;
    char limit[24];
    struct kafka_property *properties = calloc(settings->topic_settings.count + 1, sizeof *properties);
    assert(properties != NULL);
    struct kafka_admin_topic topic = {
        .topic = cli->arguments[0],
        .partition_count = (int)settings->partitions,
        .replication_factor = (int)settings->replication_factor,
        .settings = properties,
        .setting_count = fill_settings(settings, properties, limit, sizeof limit),
    };
    bool ok = kafka_admin_topic_make(admin, &topic, ret_outcome, err) &&
              kafka_admin_topic_await(admin, topic.topic, ret_facts, err);
    free(properties);
    return ok;
}

/* What of an existing topic is not as it was asked for: said, not changed. */
static void compare(struct cli *cli, const struct kafka_admin_facts *facts)
{
    const struct cli_settings *settings = cli->settings;
    if (settings->partitions > 0 && settings->partitions != facts->partition_count) {
        cli_doc_note(&cli->doc, "The broker's topic has %d partition%s, not %" PRId64 ": it was left as it is.",
                     (int)facts->partition_count, facts->partition_count == 1 ? "" : "s", settings->partitions);
        cli->is_unwell = true;
    }
    if (settings->replication_factor > 0 && settings->replication_factor != facts->replication_factor) {
        cli_doc_note(&cli->doc, "The broker's topic has %d replica%s, not %" PRId64 ": it was left as it is.",
                     (int)facts->replication_factor, facts->replication_factor == 1 ? "" : "s",
                     settings->replication_factor);
        cli->is_unwell = true;
    }
    if (settings->topic_settings.count > 0) {
        cli_doc_note(&cli->doc, "The broker had the topic already: its settings were left as they are.");
        cli->is_unwell = true;
    }
}

static const char *topic_word(enum db_topic_outcome outcome)
{
    switch (outcome) {
    case DB_TOPIC_ADDED: return "added";
    case DB_TOPIC_CHANGED: return "changed";
    case DB_TOPIC_UNCHANGED: return "unchanged";
    }
    return "";
}

static void add_row(struct cli *cli, enum db_topic_outcome outcome, const char *broker_word,
                    const struct kafka_admin_facts *facts, int64_t event_bytes_max)
{
    cli_doc_single(&cli->doc, "topic", NULL, ADDED_COLUMNS, COUNT(ADDED_COLUMNS));
    cli_doc_text(&cli->doc, cli->arguments[0]);
    cli_doc_text(&cli->doc, topic_word(outcome));
    cli_doc_text(&cli->doc, broker_word);
    if (facts->exists) {
        cli_doc_number(&cli->doc, facts->partition_count);
        cli_doc_number(&cli->doc, facts->replication_factor);
    } else {
        cli_doc_null(&cli->doc);
        cli_doc_null(&cli->doc);
    }
    cli_doc_number(&cli->doc, event_bytes_max);
}

/* The limit that the table now has. */
static bool find_limit(struct cli *cli, int64_t *ret_limit, struct err *err)
{
    struct db_topic *topics = NULL;
    size_t count = 0;
    if (!db_topic_list(cli->db, &topics, &count, err)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(topics[i].topic, cli->arguments[0]) == 0) {
            *ret_limit = topics[i].event_bytes_max;
        }
    }
    free(topics);
    return true;
}

static bool add_to_table(struct cli *cli, int64_t limit, const char *broker_word, const struct kafka_admin_facts *facts,
                         struct err *err)
{
    enum db_topic_outcome outcome;
    int64_t limit_now = 0;
    if (!db_topic_add(cli->db, cli->arguments[0], (int32_t)limit, &outcome, err) || !find_limit(cli, &limit_now, err)) {
        return false;
    }
    add_row(cli, outcome, broker_word, facts, limit_now);
    return true;
}

static bool add_with_broker(struct cli *cli, struct kafka_admin *admin, struct err *err)
{
    enum kafka_admin_outcome outcome;
    struct kafka_admin_facts facts;
    if (!make_on_broker(admin, cli, &outcome, &facts, err)) {
        return err_prefix(err, "broker");
    }
    int64_t limit = cli->settings->event_bytes_max > 0 ? cli->settings->event_bytes_max : facts.message_bytes_max;
    if (limit > facts.message_bytes_max) {
        return err_set(err, ERR_PERMANENT, "topic_limit_too_high",
                       "the broker's topic %s takes %" PRId64 " bytes, not %" PRId64
                       ": raise its max.message.bytes first",
                       cli->arguments[0], facts.message_bytes_max, limit);
    }
    bool was_there = outcome == KAFKA_ADMIN_EXISTED;
    if (!add_to_table(cli, limit, was_there ? "was there" : "made", &facts, err)) {
        return false;
    }
    if (was_there) {
        compare(cli, &facts);
    }
    return true;
}

bool cli_topic_add(struct cli *cli, struct err *err)
{
    if (cli->settings->no_broker) {
        const struct kafka_admin_facts none = {.exists = false};
        return add_to_table(cli, cli->settings->event_bytes_max, "left alone", &none, err);
    }
    struct kafka_admin *admin = cli_kafka_open(cli->settings, err);
    if (admin == NULL) {
        return false;
    }
    bool ok = add_with_broker(cli, admin, err);
    kafka_admin_close(&admin);
    return ok;
}

/* ---- Lists and routes --------------------------------------------------------------------------------------- */

static const struct cli_column TOPIC_COLUMNS[] = {
    {"topic", "TOPIC", CLI_TEXT, 0},
    {"event_bytes_max", "GREATEST EVENT", CLI_SIZE, 0},
    {"in_flight_per_key", "IN FLIGHT PER KEY", CLI_COUNT, 0},
    {"created_at", "SINCE", CLI_TIME, 0},
};

bool cli_topic_list(struct cli *cli, struct err *err)
{
    struct db_topic *topics = NULL;
    size_t count = 0;
    if (!db_topic_list(cli->db, &topics, &count, err)) {
        return false;
    }
    cli_doc_section(&cli->doc, "topics", NULL, "No topic yet. Add one with: onceward topic add NAME", TOPIC_COLUMNS,
                    COUNT(TOPIC_COLUMNS));
    for (size_t i = 0; i < count; i++) {
        cli_doc_text(&cli->doc, topics[i].topic);
        cli_doc_number(&cli->doc, topics[i].event_bytes_max);
        cli_doc_number(&cli->doc, topics[i].in_flight_per_key);
        cli_doc_number(&cli->doc, topics[i].created_at_us);
    }
    free(topics);
    return true;
}

static const struct cli_column ROUTE_ADDED_COLUMNS[] = {
    {"type", "type", CLI_TEXT, 0},
    {"topic", "topic", CLI_TEXT, 0},
    {"route", "route", CLI_TEXT, 0},
};

static const char *route_word(enum db_topic_route_outcome outcome)
{
    switch (outcome) {
    case DB_TOPIC_ROUTE_ADDED: return "added";
    case DB_TOPIC_ROUTE_CHANGED: return "changed";
    case DB_TOPIC_ROUTE_UNCHANGED: return "unchanged";
    case DB_TOPIC_ROUTE_UNKNOWN_TOPIC: break;
    }
    return "";
}

bool cli_route_add(struct cli *cli, struct err *err)
{
    const char *type = cli->arguments[0];
    const char *topic = cli->arguments[1];
    enum db_topic_route_outcome outcome;
    for (const char *at = type; *at != '\0'; at++) {
        if ((unsigned char)*at <= ' ' || *at == 0x7f) {
            return err_set(err, ERR_PERMANENT, "usage", "the type \"%s\" has a blank or a control character in it",
                           type);
        }
    }
    if (!db_topic_route_add(cli->db, type, topic, cli->settings->dataschema, &outcome, err)) {
        return false;
    }
    if (outcome == DB_TOPIC_ROUTE_UNKNOWN_TOPIC) {
        return err_set(err, ERR_PERMANENT, "topic_unknown",
                       "topic %s is not known here; add it first: onceward topic add %s", topic, topic);
    }
    cli_doc_single(&cli->doc, "route", NULL, ROUTE_ADDED_COLUMNS, COUNT(ROUTE_ADDED_COLUMNS));
    cli_doc_text(&cli->doc, type);
    cli_doc_text(&cli->doc, topic);
    cli_doc_text(&cli->doc, route_word(outcome));
    return true;
}

static const struct cli_column ROUTE_COLUMNS[] = {
    {"type", "TYPE", CLI_TEXT, 0},
    {"topic", "TOPIC", CLI_TEXT, 0},
    {"dataschema", "SCHEMA", CLI_TEXT, 0},
    {"created_at", "SINCE", CLI_TIME, 0},
};

bool cli_route_list(struct cli *cli, struct err *err)
{
    struct db_topic_route *routes = NULL;
    size_t count = 0;
    if (!db_topic_route_list(cli->db, &routes, &count, err)) {
        return false;
    }
    cli_doc_section(&cli->doc, "routes", NULL, "No route yet. Add one with: onceward route add TYPE TOPIC",
                    ROUTE_COLUMNS, COUNT(ROUTE_COLUMNS));
    for (size_t i = 0; i < count; i++) {
        cli_doc_text(&cli->doc, routes[i].type);
        cli_doc_text(&cli->doc, routes[i].topic);
        cli_doc_text(&cli->doc, routes[i].dataschema[0] == '\0' ? NULL : routes[i].dataschema);
        cli_doc_number(&cli->doc, routes[i].created_at_us);
    }
    free(routes);
    return true;
}

/* ---- Removal ------------------------------------------------------------------------------------------------ */

static const struct cli_column REMOVED_COLUMNS[] = {
    {"topic", "topic", CLI_TEXT, 0},
    {"table", "in the database", CLI_TEXT, 0},
    {"broker", "on the broker", CLI_TEXT, 0},
};

static const struct cli_column ROUTE_REMOVED_COLUMNS[] = {
    {"type", "type", CLI_TEXT, 0},
    {"route", "route", CLI_TEXT, 0},
};

bool cli_topic_remove(struct cli *cli, struct err *err)
{
    const char *topic = cli->arguments[0];
    const struct db_topic_removal_options options = {.audit = cli_audit_of(cli->settings),
                                                     .is_dry = cli->settings->dry_run};
    struct db_topic_uses uses;
    enum db_topic_removal outcome;
    if (!db_topic_remove(cli->db, topic, &options, &uses, &outcome, err)) {
        return false;
    }
    if (outcome == DB_TOPIC_UNKNOWN) {
        return err_set(err, ERR_PERMANENT, "topic_unknown", "topic %s is not known here; see: onceward topic list",
                       topic);
    }
    if (outcome == DB_TOPIC_IN_USE) {
        return err_set(err, ERR_PERMANENT, "topic_in_use",
                       "topic %s is in use: routes to it: %" PRId64
                       " (onceward route remove TYPE), its events that are not "
                       "published yet: %" PRId64,
                       topic, uses.route_count, uses.waiting_count);
    }
    cli_doc_single(&cli->doc, "topic", NULL, REMOVED_COLUMNS, COUNT(REMOVED_COLUMNS));
    cli_doc_text(&cli->doc, topic);
    cli_doc_text(&cli->doc, cli->settings->dry_run ? "would be removed" : "removed");
    cli_doc_text(&cli->doc, "left alone");
    return true;
}

bool cli_route_remove(struct cli *cli, struct err *err)
{
    const char *type = cli->arguments[0];
    const struct cli_settings *settings = cli->settings;
    const struct db_topic_removal_options options = {
        .audit = cli_audit_of(settings), .is_forced = settings->yes, .is_dry = settings->dry_run};
    struct db_topic_uses uses;
    enum db_topic_removal outcome;
    if (!db_topic_route_remove(cli->db, type, &options, &uses, &outcome, err)) {
        return false;
    }
    if (outcome == DB_TOPIC_UNKNOWN) {
        return err_set(err, ERR_PERMANENT, "route_unknown", "type %s has no route; see: onceward route list", type);
    }
    if (outcome == DB_TOPIC_IN_USE) {
        return err_set(err, ERR_PERMANENT, "route_in_use",
                       "type %s is in use, events of it within the last hour: %" PRId64
                       "; what is submitted with it would be refused; --yes removes the route all the same",
                       type, uses.recent_count);
    }
    cli_doc_single(&cli->doc, "route", NULL, ROUTE_REMOVED_COLUMNS, COUNT(ROUTE_REMOVED_COLUMNS));
    cli_doc_text(&cli->doc, type);
    cli_doc_text(&cli->doc, settings->dry_run ? "would be removed" : "removed");
    return true;
}
