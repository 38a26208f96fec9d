/* SPDX-License-Identifier: Apache-2.0
 *
 * `onceward`: one command per call. The table of commands (cli_command.c) yields
 * dispatch and help; each command fills a document and says how it went.
 */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/config.h"
#include "base/err.h"
#include "cli_doc.h"
#include "db/db_audit.h"

struct db;
struct kafka_admin;

/* A contract with scripts: see the help. */
enum cli_exit {
    CLI_DONE = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_UNWELL = 3,
    CLI_NOT_AUTHORISED = 4,
    CLI_NOT_REACHABLE = 5,
    CLI_REFUSED = 6,
};

#define CLI_WORD_COUNT_MAX 4

struct cli_settings {
    const char *database;
    const char *kafka;
    struct config_pairs kafka_properties;
    bool json;
    int64_t partitions;
    int64_t replication_factor;
    int64_t event_bytes_max;
    bool no_broker;
    struct config_pairs topic_settings;
    const char *dataschema;
    bool dry_run;
    bool yes;
    const char *by;
    const char *reason;
    const char *consumer;
    const char *reason_code;
    const char *digest;
    bool all;
    const char *status;
    const char *tenant;
    struct config_list scopes;
    int64_t expires_days;
    const char *topic;
    const char *key;
    const char *type;
    int64_t before;
    int64_t limit;
};

/* One call. */
struct cli {
    const struct cli_settings *settings;
    const char *const *arguments; /* The words behind the command's name, ends in NULL. */
    struct db *db;                /* Open where the command needs it. */
    FILE *out;                    /* For what is no document: the help. */
    struct cli_doc doc;
    bool is_unwell; /* Done, but something is not as it should be: exit code 3. */
};

struct cli_command {
    const char *name;      /* One or two words. */
    const char *arguments; /* As the help shows them; "" for none. */
    int argument_count_min;
    int argument_count_max;
    const char *summary;
    const char *details;      /* Whole lines. */
    const char *const *flags; /* Names of the settings that are its own; ends in NULL. */
    bool needs_database;
    bool needs_schema; /* Of exactly this program's version. */
    bool is_slow;      /* May take minutes in the database. */
    bool (*run)(struct cli *cli, struct err *err);
};

extern const struct cli_command cli_commands[]; /* Ends in a row without a name. */
extern const struct config_program cli_program;

/* Settings, command, output, exit code: all but main(). */
int cli_main(int argc, char *const *argv, FILE *out, FILE *errors);

/* The command that the words begin with, NULL for none. *ret_word_count: how many words its name took. */
const struct cli_command *cli_command_find(const char *const *words, int *ret_word_count);

/* Whether the command has two words and begins with this one; whether any does. */
bool cli_command_is_of_family(const struct cli_command *command, const char *word);
bool cli_command_is_family(const char *word);

/* The help of a command, of the commands that begin with a word, or else of the program. */
void cli_help_write(FILE *out, const char *const *words);

/* The exit code of an error. */
enum cli_exit cli_exit_of(const struct err *err);

/* Whether a broker is named. */
bool cli_has_kafka(const struct cli_settings *settings);

/* The handle to the broker by the settings; NULL with err where kafka is not set or wrong. */
struct kafka_admin *cli_kafka_open(const struct cli_settings *settings, struct err *err) MUST_CHECK;

/* Who changes something and why: --by, or else who is logged in at this machine, and --reason. */
struct db_audit cli_audit_of(const struct cli_settings *settings);

/* The part of cli_status() that is about consumers. */
bool cli_status_consumers(struct cli *cli, struct err *err);

/* The commands. */
bool cli_migrate(struct cli *cli, struct err *err);
bool cli_topic_add(struct cli *cli, struct err *err);
bool cli_topic_list(struct cli *cli, struct err *err);
bool cli_topic_remove(struct cli *cli, struct err *err);
bool cli_route_add(struct cli *cli, struct err *err);
bool cli_route_list(struct cli *cli, struct err *err);
bool cli_route_remove(struct cli *cli, struct err *err);
bool cli_token_create(struct cli *cli, struct err *err);
bool cli_token_revoke(struct cli *cli, struct err *err);
bool cli_token_list(struct cli *cli, struct err *err);
bool cli_erase(struct cli *cli, struct err *err);
bool cli_status(struct cli *cli, struct err *err);
bool cli_consumer_list(struct cli *cli, struct err *err);
bool cli_consumer_retire(struct cli *cli, struct err *err);
bool cli_dlq_list(struct cli *cli, struct err *err);
bool cli_dlq_show(struct cli *cli, struct err *err);
bool cli_dlq_acknowledge(struct cli *cli, struct err *err);
bool cli_events(struct cli *cli, struct err *err);
bool cli_version(struct cli *cli, struct err *err);
bool cli_help(struct cli *cli, struct err *err);

#endif
