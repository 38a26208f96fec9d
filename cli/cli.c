/* SPDX-License-Identifier: Apache-2.0
 *
 * One call from arguments to exit code. Protects the contract with scripts:
 * with --json there is exactly one object on standard output, whatever happens.
 */
#include "cli.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "db/db.h"
#include "db/db_migrate.h"
#include "kafka/kafka_admin.h"

#define QUESTION_TIMEOUT_MS 15000
#define MIGRATE_TIMEOUT_MS (60 * 60 * 1000)
#define KAFKA_TIMEOUT_MS 5000

/* ---- Errors ------------------------------------------------------------------------------------------------- */

struct exit_row {
    const char *code; /* Of the error; a SQLSTATE's class where it has two characters. */
    enum cli_exit exit;
};

static const struct exit_row EXITS[] = {
    {"usage", CLI_USAGE},
    {"conninfo_invalid", CLI_USAGE},
    {"kafka_missing", CLI_USAGE},
    {"kafka_property_invalid", CLI_USAGE},
    {"kafka_property_fixed", CLI_USAGE},
    {"28", CLI_NOT_AUTHORISED},
    {"42501", CLI_NOT_AUTHORISED},
    {"password_missing", CLI_NOT_AUTHORISED},
    {"TOPIC_AUTHORIZATION_FAILED", CLI_NOT_AUTHORISED},
    {"GROUP_AUTHORIZATION_FAILED", CLI_NOT_AUTHORISED},
    {"CLUSTER_AUTHORIZATION_FAILED", CLI_NOT_AUTHORISED},
    {"_AUTHENTICATION", CLI_NOT_AUTHORISED},
    {"schema_missing", CLI_REFUSED},
    {"schema_older", CLI_REFUSED},
    {"schema_newer", CLI_REFUSED},
    {"migration_changed", CLI_REFUSED},
    {"encoding_not_utf8", CLI_REFUSED},
    {"commits_not_durable", CLI_REFUSED},
    {"server_too_old", CLI_REFUSED},
    {"topic_limit_too_high", CLI_REFUSED},
    {"tokens_two_live", CLI_REFUSED},
    {"consumer_alive", CLI_REFUSED},
    {"topic_in_use", CLI_REFUSED},
    {"route_in_use", CLI_REFUSED},
    {"not_confirmed", CLI_REFUSED},
    {"digest_differs", CLI_REFUSED},
    {"event_not_published", CLI_REFUSED},
};

enum cli_exit cli_exit_of(const struct err *err)
{
    assert(err->kind != ERR_NONE);
    for (size_t i = 0; i < sizeof EXITS / sizeof EXITS[0]; i++) {
        bool is_class = strlen(EXITS[i].code) == 2 && strlen(err->code) == 5;
        if (is_class ? strncmp(EXITS[i].code, err->code, 2) == 0 : strcmp(EXITS[i].code, err->code) == 0) {
            return EXITS[i].exit;
        }
    }
    return err->kind == ERR_TRANSIENT ? CLI_NOT_REACHABLE : CLI_FAILED;
}

static void write_error_json(const struct err *err, enum cli_exit code, FILE *out)
{
    fprintf(out, "{\n  \"format\": %d,\n  \"error\": {\"kind\": ", CLI_DOC_FORMAT);
    cli_json_string(err_kind_name(err->kind), out);
    fputs(", \"code\": ", out);
    cli_json_string(err->code, out);
    fputs(", \"text\": ", out);
    cli_json_string(err->text, out);
    fprintf(out, ", \"exit_code\": %d}\n}\n", (int)code);
}

static int report_error(const struct err *err, bool is_json, FILE *out, FILE *errors)
{
    enum cli_exit code = cli_exit_of(err);
    if (is_json) {
        write_error_json(err, code, out);
    } else {
        fprintf(errors, "onceward: %s\n", err->text);
    }
    return (int)code;
}

/* ---- Services ----------------------------------------------------------------------------------------------- */

static bool open_database(struct cli *cli, const struct cli_command *command, struct err *err)
{
    int timeout_ms = command->is_slow ? MIGRATE_TIMEOUT_MS : QUESTION_TIMEOUT_MS;
    struct db_settings settings = {
        .conninfo = cli->settings->database == NULL ? "" : cli->settings->database,
        .application_name = "onceward",
        .needs_primary = true,
        .lock_timeout_ms = timeout_ms,
        .statement_timeout_ms = timeout_ms,
        .idle_in_transaction_timeout_ms = timeout_ms,
        .answer_timeout_ms = timeout_ms + 5000,
        .stop_fd = -1,
    };
    cli->db = db_open(&settings, err);
    if (cli->db == NULL) {
        return err_prefix(err, "database");
    }
    return !command->needs_schema || db_migrate_check_version(cli->db, err);
}

struct db_audit cli_audit_of(const struct cli_settings *settings)
{
    const char *user = getenv("USER");
    return (struct db_audit){.by = settings->by == NULL ? user : settings->by, .reason = settings->reason};
}

bool cli_has_kafka(const struct cli_settings *settings)
{
    return settings->kafka != NULL && settings->kafka[0] != '\0';
}

struct kafka_admin *cli_kafka_open(const struct cli_settings *settings, struct err *err)
{
    if (!cli_has_kafka(settings)) {
        (void)err_set(err, ERR_PERMANENT, "kafka_missing", "the broker is not known: set --kafka (or ONCEWARD_KAFKA)");
        return NULL;
    }
    size_t count = settings->kafka_properties.count;
    struct kafka_property *properties = calloc(count + 1, sizeof *properties);
    assert(properties != NULL);
    for (size_t i = 0; i < count; i++) {
        properties[i].name = settings->kafka_properties.items[i].name;
        properties[i].value = settings->kafka_properties.items[i].value;
    }
    struct kafka_admin_options options = {
        .brokers = settings->kafka,
        .properties = properties,
        .property_count = count,
        .timeout_ms = KAFKA_TIMEOUT_MS,
    };
    struct kafka_admin *admin = kafka_admin_open(&options, err);
    free(properties);
    return admin;
}

/* ---- Usage -------------------------------------------------------------------------------------------------- */

static bool is_given(const struct config_setting *setting, const struct cli_settings *settings)
{
    const char *target = (const char *)settings + setting->offset;
    int64_t preset = 0;
    switch (setting->type) {
    case CONFIG_TEXT:
    case CONFIG_CONNINFO: return *(const char *const *)(const void *)target != NULL;
    case CONFIG_BOOL: return *(const bool *)(const void *)target;
    case CONFIG_PAIRS: return ((const struct config_pairs *)(const void *)target)->count > 0;
    case CONFIG_INT: return text_to_int64(setting->preset, &preset) && *(const int64_t *)(const void *)target != preset;
    case CONFIG_LIST: return ((const struct config_list *)(const void *)target)->count > 0;
    case CONFIG_SIZE:
    case CONFIG_CHOICE:
    case CONFIG_ADDRESS: break;
    }
    assert(!"no flag of a command has this type");
    return false;
}

static bool takes(const struct cli_command *command, const char *flag)
{
    for (size_t i = 0; command->flags[i] != NULL; i++) {
        if (strcmp(command->flags[i], flag) == 0) {
            return true;
        }
    }
    return false;
}

static bool check_flags(const struct cli_command *command, const struct cli_settings *settings, struct err *err)
{
    for (size_t i = 0; i < cli_program.setting_count; i++) {
        const struct config_setting *setting = &cli_program.settings[i];
        bool is_own = strcmp(setting->section, "Commands") == 0;
        if (is_own && is_given(setting, settings) && !takes(command, setting->name)) {
            return err_set(err, ERR_PERMANENT, "usage", "%s does not take the flag for %s; see: onceward help %s",
                           command->name, setting->name, command->name);
        }
    }
    return true;
}

/* The commands that begin with this word, as "topic add, topic list". False when there are none. */
static bool list_family(const char *word, char *ret_text, size_t size)
{
    size_t length = strlen(word);
    ret_text[0] = '\0';
    for (const struct cli_command *command = cli_commands; command->name != NULL; command++) {
        if (strncmp(command->name, word, length) == 0 && command->name[length] == ' ') {
            size_t used = strlen(ret_text);
            (void)text_format(ret_text + used, size - used, "%s%s", used == 0 ? "" : ", ", command->name);
        }
    }
    return ret_text[0] != '\0';
}

static const struct cli_command *find_command(const char *const *words, struct cli *cli, struct err *err)
{
    int word_count = 0;
    const struct cli_command *command = cli_command_find(words, &word_count);
    if (words[0] == NULL) {
        (void)err_set(err, ERR_PERMANENT, "usage", "no command; see: onceward --help");
        return NULL;
    }
    char family[256];
    if (command == NULL && list_family(words[0], family, sizeof family)) {
        (void)err_set(err, ERR_PERMANENT, "usage", "%s %s; there is: %s", words[0],
                      words[1] == NULL ? "needs a second word" : "knows no such word", family);
        return NULL;
    }
    if (command == NULL) {
        (void)err_set(err, ERR_PERMANENT, "usage", "no command is called \"%s%s%s\"; see: onceward --help", words[0],
                      words[1] == NULL ? "" : " ", words[1] == NULL ? "" : words[1]);
        return NULL;
    }
    cli->arguments = words + word_count;
    int count = 0;
    while (cli->arguments[count] != NULL) {
        count++;
    }
    if (count < command->argument_count_min || count > command->argument_count_max) {
        (void)err_set(err, ERR_PERMANENT, "usage", "usage: onceward %s%s%s", command->name,
                      command->arguments[0] == '\0' ? "" : " ", command->arguments);
        return NULL;
    }
    return check_flags(command, cli->settings, err) ? command : NULL;
}

/* ---- One call ----------------------------------------------------------------------------------------------- */

static int run(const struct cli_settings *settings, const char *const *words, FILE *out, FILE *errors)
{
    struct err err = ERR_INIT;
    struct cli cli = {.settings = settings, .out = out};
    const struct cli_command *command = find_command(words, &cli, &err);
    bool ok =
        command != NULL && (!command->needs_database || open_database(&cli, command, &err)) && command->run(&cli, &err);
    int code = ok && cli.is_unwell ? CLI_UNWELL : CLI_DONE;
    if (!ok) {
        code = report_error(&err, settings->json, out, errors);
    } else if (settings->json) {
        cli_json_write(&cli.doc, out);
    } else {
        cli_text_write(&cli.doc, out);
    }
    cli_doc_done(&cli.doc);
    db_close(&cli.db);
    return code;
}

static bool wants_json(int argc, char *const *argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            return true;
        }
    }
    return false;
}

/* The mistakes in the settings, as they were told, in the one object. */
static int report_mistakes(const char *mistakes, bool is_json, FILE *out, FILE *errors)
{
    if (is_json) {
        struct err err = ERR_INIT;
        size_t size = strlen(mistakes);
        char *line = strdup(mistakes);
        assert(line != NULL);
        for (size_t i = 0; i < size; i++) {
            line[i] = line[i] == '\n' ? ' ' : line[i];
        }
        (void)err_set(&err, ERR_PERMANENT, "usage", "%s", line);
        free(line);
        write_error_json(&err, CLI_USAGE, out);
    } else {
        fputs(mistakes, errors);
    }
    return CLI_USAGE;
}

int cli_main(int argc, char *const *argv, FILE *out, FILE *errors)
{
    struct cli_settings settings = {.database = NULL};
    const char *words[CLI_WORD_COUNT_MAX + 1] = {NULL};
    char *mistakes = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&mistakes, &size);
    assert(memory != NULL);
    enum config_outcome outcome = config_load(&cli_program, argc, argv, &settings, words, out, memory);
    bool is_told = !ferror(memory) && fclose(memory) == 0;
    assert(is_told);
    int code = CLI_DONE;
    if (outcome == CONFIG_RUN) {
        code = run(&settings, words, out, errors);
        config_done(&cli_program, &settings);
    } else if (outcome == CONFIG_WRONG) {
        code = report_mistakes(mistakes, wants_json(argc, argv), out, errors);
    }
    free(mistakes);
    bool is_written = fflush(out) == 0 && !ferror(out);
    if (!is_written && (code == CLI_DONE || code == CLI_UNWELL)) {
        fputs("onceward: what was found could not be written\n", errors);
        return CLI_FAILED;
    }
    return code;
}
