/* SPDX-License-Identifier: Apache-2.0
 *
 * Consumers: which there are, and that one is not to be missed any more.
 */
#include "db/db_consumer.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct cli_column COLUMNS[] = {
    {"consumer", "CONSUMER", CLI_TEXT, 0},          {"state", "STATE", CLI_TEXT, 0},
    {"partitions", "PARTITIONS", CLI_COUNT, 0},     {"stopped", "STOPPED", CLI_COUNT, 0},
    {"dead_letters", "DEAD LETTERS", CLI_COUNT, 0}, {"moved_at", "MOVED", CLI_TIME, 0},
    {"retired_at", "RETIRED", CLI_TIME, 0},
};

static const char *state_word(const struct db_consumer *consumer)
{
    return consumer->is_connected ? "alive" : consumer->is_retired ? "retired" : "gone";
}

static void add_consumer(struct cli *cli, const struct db_consumer *consumer, const char *state)
{
    cli_doc_text(&cli->doc, consumer->consumer);
    cli_doc_text(&cli->doc, state);
    cli_doc_number(&cli->doc, consumer->partition_count);
    cli_doc_number(&cli->doc, consumer->stopped_count);
    cli_doc_number(&cli->doc, consumer->dead_letter_count);
    cli_doc_number_if(&cli->doc, consumer->has_moved, consumer->moved_at_us);
    cli_doc_number_if(&cli->doc, consumer->is_retired, consumer->retired_at_us);
}

bool cli_consumer_list(struct cli *cli, struct err *err)
{
    struct db_consumer *consumers = NULL;
    size_t count = 0;
    if (!db_consumer_list(cli->db, &consumers, &count, err)) {
        return false;
    }
    cli_doc_section(&cli->doc, "consumers", NULL, "No consumer yet.", COLUMNS, COUNT(COLUMNS));
    for (size_t i = 0; i < count; i++) {
        add_consumer(cli, &consumers[i], state_word(&consumers[i]));
    }
    free(consumers);
    return true;
}

static const struct cli_column RETIRED_COLUMNS[] = {
    {"consumer", "consumer", CLI_TEXT, 0},          {"state", "state", CLI_TEXT, 0},
    {"partitions", "partitions", CLI_COUNT, 0},     {"stopped", "  of it stopped", CLI_COUNT, 0},
    {"dead_letters", "dead letters", CLI_COUNT, 0}, {"moved_at", "moved", CLI_TIME, 0},
    {"retired_at", "retired before", CLI_TIME, 0},
};

bool cli_consumer_retire(struct cli *cli, struct err *err)
{
    const char *name = cli->arguments[0];
    const struct db_audit audit = cli_audit_of(cli->settings);
    struct db_consumer consumer;
    enum db_consumer_retirement outcome = DB_CONSUMER_UNKNOWN;
    if (!db_consumer_retire(cli->db, name, &audit, cli->settings->dry_run, &consumer, &outcome, err)) {
        return false;
    }
    if (outcome == DB_CONSUMER_UNKNOWN) {
        return err_set(err, ERR_PERMANENT, "consumer_unknown",
                       "no consumer %s has its inbox here; see: onceward consumer list", name);
    }
    if (outcome == DB_CONSUMER_ALIVE) {
        return err_set(err, ERR_PERMANENT, "consumer_alive", "a process of consumer %s is connected: stop it first",
                       name);
    }
    cli_doc_single(&cli->doc, "consumer", NULL, RETIRED_COLUMNS, COUNT(RETIRED_COLUMNS));
    add_consumer(cli, &consumer, cli->settings->dry_run ? state_word(&consumer) : "retired");
    if (outcome == DB_CONSUMER_WAS_RETIRED) {
        cli_doc_note(&cli->doc, "It was retired before.");
    } else if (cli->settings->dry_run) {
        cli_doc_note(&cli->doc, "Nothing was done.");
    } else {
        cli_doc_note(
            &cli->doc,
            "It is not missed any more. Its cursors, inbox and dead letters stay; to start it brings it back.");
    }
    return true;
}
