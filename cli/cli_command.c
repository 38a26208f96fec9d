/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of the program: its commands and its settings. Help comes from
 * here (cli_help.c) and from nowhere else.
 */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"
#include "cli.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NO_FLAGS ((const char *const[]){NULL})

const struct cli_command cli_commands[] = {
    {
        .name = "migrate",
        .arguments = "",
        .summary = "bring the database's schema to this program's version",
        .details =
            "Applies what is missing, each migration in a transaction of its own; a second call finds nothing\n"
            "to do, and calls at the same time wait for each other. Run it as the database's owner. Refuses (6)\n"
            "a database that is not UTF-8, that a newer program has migrated, or whose migrations were changed.\n",
        .flags = LIST("dry_run"),
        .needs_database = true,
        .is_slow = true,
        .run = cli_migrate,
    },
    {
        .name = "topic add",
        .arguments = "NAME",
        .argument_count_min = 1,
        .argument_count_max = 1,
        .summary = "let events go to a topic, and make it on the broker",
        .details = "A topic that the broker has already is left as it is. The greatest event that is accepted for it\n"
                   "is the broker's max.message.bytes for the topic, unless --event-bytes-max says less; for a topic\n"
                   "that is made here, --event-bytes-max sets both. Repeating the command does no harm.\n",
        .flags = LIST("partitions", "replication_factor", "event_bytes_max", "no_broker", "topic."),
        .needs_database = true,
        .needs_schema = true,
        .run = cli_topic_add,
    },
    {
        .name = "topic list",
        .arguments = "",
        .summary = "list the topics that events may go to",
        .details = "",
        .flags = NO_FLAGS,
        .needs_database = true,
        .needs_schema = true,
        .run = cli_topic_list,
    },
    {
        .name = "topic remove",
        .arguments = "NAME",
        .argument_count_min = 1,
        .argument_count_max = 1,
        .summary = "let no more events go to a topic",
        .details = "The broker's topic is left alone. Refused (6) while a route leads to it or events wait for it.\n",
        .flags = LIST("by", "reason", "dry_run"),
        .needs_database = true,
        .needs_schema = true,
        .run = cli_topic_remove,
    },
    {
        .name = "route add",
        .arguments = "TYPE TOPIC",
        .argument_count_min = 2,
        .argument_count_max = 2,
        .summary = "send the events of a type to a topic",
        .details = "Holds for what is submitted from now on. A type that has a route gets the new one.\n",
        .flags = LIST("dataschema"),
        .needs_database = true,
        .needs_schema = true,
        .run = cli_route_add,
    },
    {
        .name = "route list",
        .arguments = "",
        .summary = "list which type goes to which topic",
        .details = "",
        .flags = NO_FLAGS,
        .needs_database = true,
        .needs_schema = true,
        .run = cli_route_list,
    },
    {
        .name = "route remove",
        .arguments = "TYPE",
        .argument_count_min = 1,
        .argument_count_max = 1,
        .summary = "refuse what is submitted with a type",
        .details = "Refused (6) while events of the type came within the last hour, but with --yes.\n",
        .flags = LIST("yes", "by", "reason", "dry_run"),
        .needs_database = true,
        .needs_schema = true,
        .run = cli_route_remove,
    },
    {
        .name = "token create",
        .arguments = "NAME",
        .argument_count_min = 1,
        .argument_count_max = 1,
        .summary = "make a token with which a service may call the producer",
        .details =
            "NAME is the calling service. The token belongs to one tenant (--tenant, \"default\") and has scopes\n"
            "(--scopes, \"submit,read\"): submit, read, operate (events and relays), admin (everything). It is\n"
            "shown this once. Two of a name may live at once: make the new one, hand it out, then revoke the old\n"
            "one. A third is refused (6).\n",
        .flags = LIST("tenant", "scopes", "expires_days"),
        .needs_database = true,
        .needs_schema = true,
        .run = cli_token_create,
    },
    {
        .name = "token revoke",
        .arguments = "TOKEN_ID",
        .argument_count_min = 1,
        .argument_count_max = 1,
        .summary = "end a token",
        .details = "Producers forget it within their token_cache_ms. Repeating the command does no harm.\n",
        .flags = NO_FLAGS,
        .needs_database = true,
        .needs_schema = true,
        .run = cli_token_revoke,
    },
    {
        .name = "token list",
        .arguments = "",
        .summary = "list the tokens, also those that have ended",
        .details = "",
        .flags = LIST("tenant"),
        .needs_database = true,
        .needs_schema = true,
        .run = cli_token_list,
    },
    {
        .name = "status",
        .arguments = "",
        .summary = "show on one screen whether everything flows",
        .details =
            "Outbox, relay lanes, consumers and their lag (with --kafka), inboxes, dead letters. Exit code 3 when\n"
            "something is not well; the notes at the end say what. Counts stop at 100 000.\n",
        .flags = NO_FLAGS,
        .needs_database = true,
        .needs_schema = true,
        .run = cli_status,
    },
    {
        .name = "events",
        .arguments = "[EVENT_ID]",
        .argument_count_max = 1,
        .summary = "list events, the newest first, or show one event's whole way",
        .details =
            "With an id: submitted, where it is in the outbox, where on the topic, and what became of it at each\n"
            "consumer whose inbox is in this database. The next page of a list: --before with its last outbox id.\n",
        .flags = LIST("status", "tenant", "topic", "key", "type", "before", "limit"),
        .needs_database = true,
        .needs_schema = true,
        .run = cli_events,
    },
    {
        .name = "consumer list",
        .arguments = "",
        .summary = "list the consumers whose inbox is in this database",
        .details = "alive: a process of it is connected; gone: none is; retired: none is, and none is to be missed.\n",
        .flags = NO_FLAGS,
        .needs_database = true,
        .needs_schema = true,
        .run = cli_consumer_list,
    },
    {
        .name = "consumer retire",
        .arguments = "NAME",
        .argument_count_min = 1,
        .argument_count_max = 1,
        .summary = "stop missing a consumer that is no more",
        .details = "Status leaves it out, and its dead letters count no more. Nothing of it is deleted: start it "
                   "again, and it\n"
                   "goes on where it was. Refused (6) while a process of it is connected.\n",
        .flags = LIST("by", "reason", "dry_run"),
        .needs_database = true,
        .needs_schema = true,
        .run = cli_consumer_retire,
    },
    {
        .name = "dlq list",
        .arguments = "",
        .summary = "list the dead letters that wait for a person, the newest first",
        .details = "The records that a consumer could not apply, each with its reason. The next page: --before with "
                   "the last id.\n",
        .flags = LIST("consumer", "reason_code", "all", "before", "limit"),
        .needs_database = true,
        .needs_schema = true,
        .run = cli_dlq_list,
    },
    {
        .name = "dlq show",
        .arguments = "DEAD_LETTER_ID",
        .argument_count_min = 1,
        .argument_count_max = 1,
        .summary = "show a dead letter with the record's key, headers and value",
        .details = "",
        .flags = NO_FLAGS,
        .needs_database = true,
        .needs_schema = true,
        .run = cli_dlq_show,
    },
    {
        .name = "dlq acknowledge",
        .arguments = "[DEAD_LETTER_ID]",
        .argument_count_max = 1,
        .summary = "say that nothing is left to be done about dead letters",
        .details =
            "One by its id, or with --consumer all of a consumer that wait, which needs --yes or the --digest that\n"
            "--dry-run shows. They stay in the table, and count no more. --reason says why.\n",
        .flags = LIST("consumer", "reason_code", "reason", "by", "dry_run", "digest", "yes"),
        .needs_database = true,
        .needs_schema = true,
        .run = cli_dlq_acknowledge,
    },
    {
        .name = "erase",
        .arguments = "REQUEST_ID",
        .argument_count_min = 1,
        .argument_count_max = 1,
        .summary = "remove the content of one request, and keep what recognises its repetition",
        .details =
            "Removes the request's data, its documents' bytes and names, what stored answers show of it, and the\n"
            "payload of its event in the outbox. Ids, times, hashes and the submission stay: a repetition is still\n"
            "a duplicate. Out of reach are records on topics, dead letters, what consumers made of them, backups.\n"
            "An open request is removed as a whole. One whose event is not yet published is refused (6). It cannot\n"
            "be undone: without --yes or --dry-run it is refused (6).\n",
        .flags = LIST("tenant", "by", "reason", "dry_run", "yes"),
        .needs_database = true,
        .needs_schema = true,
        .is_slow = true,
        .run = cli_erase,
    },
    {
        .name = "version",
        .arguments = "",
        .summary = "show the versions of this program and of its schema",
        .details = "",
        .flags = NO_FLAGS,
        .run = cli_version,
    },
    {
        .name = "help",
        .arguments = "[COMMAND]",
        .argument_count_max = 2,
        .summary = "explain a command",
        .details = "",
        .flags = NO_FLAGS,
        .run = cli_help,
    },
    {.name = NULL},
};

#define TARGET(member) .offset = offsetof(struct cli_settings, member)

static const struct config_setting settings[] = {
    {.name = "database",
     .type = CONFIG_CONNINFO,
     TARGET(database),
     .section = "Everywhere",
     .doc = "Where Postgres is, as a libpq conninfo or URI; what it leaves out comes from libpq's own variables."},
    {.name = "kafka",
     .type = CONFIG_TEXT,
     TARGET(kafka),
     .section = "Everywhere",
     .doc = "Kafka's bootstrap servers, as host:port,host:port."},
    {.name = "kafka.",
     .type = CONFIG_PAIRS,
     TARGET(kafka_properties),
     .section = "Everywhere",
     .doc = "Properties that go to librdkafka as they are, as in kafka.security.protocol."},
    {.name = "json",
     .type = CONFIG_BOOL,
     TARGET(json),
     .preset = "off",
     .is_flag_only = true,
     .section = "Everywhere",
     .doc = "Writes one JSON object instead of text, also for errors."},
    {.name = "dry_run",
     .type = CONFIG_BOOL,
     TARGET(dry_run),
     .preset = "off",
     .is_flag_only = true,
     .section = "Commands",
     .doc = "Shows what would be done and does nothing."},
    {.name = "yes",
     .type = CONFIG_BOOL,
     TARGET(yes),
     .preset = "off",
     .is_flag_only = true,
     .section = "Commands",
     .doc = "Does it although a guard asks."},
    {.name = "by",
     .type = CONFIG_TEXT,
     TARGET(by),
     .is_flag_only = true,
     .section = "Commands",
     .doc = "Who does it, for the audit; the default is the USER of the environment."},
    {.name = "reason",
     .type = CONFIG_TEXT,
     TARGET(reason),
     .is_flag_only = true,
     .section = "Commands",
     .doc = "Why, for the audit."},
    {.name = "consumer",
     .type = CONFIG_TEXT,
     TARGET(consumer),
     .is_flag_only = true,
     .section = "Commands",
     .doc = "Only dead letters of this consumer."},
    {.name = "reason_code",
     .type = CONFIG_TEXT,
     TARGET(reason_code),
     .is_flag_only = true,
     .section = "Commands",
     .doc = "Only dead letters with this code."},
    {.name = "digest",
     .type = CONFIG_TEXT,
     TARGET(digest),
     .is_flag_only = true,
     .section = "Commands",
     .doc = "Does it only if these are the dead letters that --dry-run showed with this digest."},
    {.name = "all",
     .type = CONFIG_BOOL,
     TARGET(all),
     .preset = "off",
     .is_flag_only = true,
     .section = "Commands",
     .doc = "Also the dead letters that were acknowledged."},
    {.name = "partitions",
     .type = CONFIG_INT,
     TARGET(partitions),
     .preset = "0",
     .max = 100000,
     .is_flag_only = true,
     .section = "Commands",
     .doc = "Number of partitions of a topic that is made; 0 leaves it to the broker."},
    {.name = "replication_factor",
     .type = CONFIG_INT,
     TARGET(replication_factor),
     .preset = "0",
     .max = 100,
     .is_flag_only = true,
     .section = "Commands",
     .doc = "Number of replicas of a topic that is made; 0 leaves it to the broker."},
    {.name = "event_bytes_max",
     .type = CONFIG_INT,
     TARGET(event_bytes_max),
     .preset = "0",
     .max = 1073741824,
     .is_flag_only = true,
     .section = "Commands",
     .doc = "The greatest event that is accepted for the topic, in bytes; 0 takes the broker's limit."},
    {.name = "no_broker",
     .type = CONFIG_BOOL,
     TARGET(no_broker),
     .preset = "off",
     .is_flag_only = true,
     .section = "Commands",
     .doc = "Leaves the broker alone: the topic is made by somebody else."},
    {.name = "topic.",
     .type = CONFIG_PAIRS,
     TARGET(topic_settings),
     .is_flag_only = true,
     .section = "Commands",
     .doc = "The new topic's own settings on the broker, as in --topic.retention.ms=86400000."},
    {.name = "dataschema",
     .type = CONFIG_TEXT,
     TARGET(dataschema),
     .min = 1,
     .max = 255,
     .is_flag_only = true,
     .section = "Commands",
     .doc = "URI of the schema of these events' data; it travels with them."},
    {.name = "status",
     .type = CONFIG_TEXT,
     TARGET(status),
     .is_flag_only = true,
     .section = "Commands",
     .doc = "Only events that are pending, claimed, completed or failed."},
    {.name = "tenant",
     .type = CONFIG_TEXT,
     TARGET(tenant),
     .is_flag_only = true,
     .section = "Commands",
     .doc = "Only events or tokens of this tenant; whose a new token, or a request to be erased, is."},
    {.name = "scopes",
     .type = CONFIG_LIST,
     TARGET(scopes),
     .is_flag_only = true,
     .section = "Commands",
     .doc = "What a new token allows: submit, read, operate, admin, separated by commas."},
    {.name = "expires_days",
     .type = CONFIG_INT,
     TARGET(expires_days),
     .preset = "0",
     .max = 3650,
     .is_flag_only = true,
     .section = "Commands",
     .doc = "When a new token ends by itself, in days from now; 0: when it is revoked."},
    {.name = "topic",
     .type = CONFIG_TEXT,
     TARGET(topic),
     .is_flag_only = true,
     .section = "Commands",
     .doc = "Only events for this topic."},
    {.name = "key",
     .type = CONFIG_TEXT,
     TARGET(key),
     .is_flag_only = true,
     .section = "Commands",
     .doc = "Only events with this key, which for submissions is the request's id."},
    {.name = "type",
     .type = CONFIG_TEXT,
     TARGET(type),
     .is_flag_only = true,
     .section = "Commands",
     .doc = "Only events of this type."},
    {.name = "before",
     .type = CONFIG_INT,
     TARGET(before),
     .preset = "0",
     .max = INT64_MAX,
     .is_flag_only = true,
     .section = "Commands",
     .doc = "Only events with a lower outbox id, or dead letters with a lower id."},
    {.name = "limit",
     .type = CONFIG_INT,
     TARGET(limit),
     .preset = "50",
     .min = 1,
     .max = 1000,
     .is_flag_only = true,
     .section = "Commands",
     .doc = "How many are listed."},
};

static bool is_one_of(const char *text, const char *const *list)
{
    while (*list != NULL && strcmp(*list, text) != 0) {
        list++;
    }
    return *list != NULL;
}

static void check_settings(const void *values, struct config_report *report)
{
    const struct cli_settings *given = values;
    if (given->status != NULL && !is_one_of(given->status, LIST("pending", "claimed", "completed", "failed"))) {
        config_mistake(report, "status", "must be pending, claimed, completed or failed, not \"%s\"", given->status);
    }
}

const struct config_program cli_program = {
    .name = "onceward",
    .summary = "Looks after a deployment of Onceward.",
    .settings = settings,
    .setting_count = sizeof settings / sizeof settings[0],
    .word_count_max = CLI_WORD_COUNT_MAX,
    .check = check_settings,
    .help = cli_help_write,
};

const struct cli_command *cli_command_find(const char *const *words, int *ret_word_count)
{
    char two[64];
    bool has_two = words[0] != NULL && words[1] != NULL && text_format(two, sizeof two, "%s %s", words[0], words[1]);
    for (const struct cli_command *command = cli_commands; command->name != NULL && words[0] != NULL; command++) {
        bool is_two = strchr(command->name, ' ') != NULL;
        if (is_two ? has_two && strcmp(command->name, two) == 0 : strcmp(command->name, words[0]) == 0) {
            *ret_word_count = is_two ? 2 : 1;
            return command;
        }
    }
    return NULL;
}

bool cli_command_is_of_family(const struct cli_command *command, const char *word)
{
    size_t length = strlen(word);
    return strncmp(command->name, word, length) == 0 && command->name[length] == ' ';
}

bool cli_command_is_family(const char *word)
{
    for (const struct cli_command *command = cli_commands; command->name != NULL; command++) {
        if (cli_command_is_of_family(command, word)) {
            return true;
        }
    }
    return false;
}
