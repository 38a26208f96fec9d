/* SPDX-License-Identifier: Apache-2.0
 *
 * The help, made from the tables of commands and settings.
 */
#include <assert.h>
#include <string.h>

#include "base/text.h"
#include "cli.h"

static const struct config_setting *find_setting(const char *name)
{
    for (size_t i = 0; i < cli_program.setting_count; i++) {
        if (strcmp(cli_program.settings[i].name, name) == 0) {
            return &cli_program.settings[i];
        }
    }
    assert(!"a command names a setting that is none");
    return NULL;
}

static const char *value_word(enum config_type type)
{
    switch (type) {
    case CONFIG_INT: return " N";
    case CONFIG_SIZE: return " SIZE";
    case CONFIG_CONNINFO: return " CONNINFO";
    case CONFIG_ADDRESS: return " HOST:PORT";
    case CONFIG_PAIRS: return "NAME=VALUE";
    case CONFIG_BOOL: return "";
    case CONFIG_TEXT:
    case CONFIG_CHOICE:
    case CONFIG_LIST: return " TEXT";
    }
    return "";
}

/* A text of any length behind an indent, in lines of at most 100 characters. */
static void write_wrapped(FILE *out, const char *text, size_t indent)
{
    const size_t width = 100 - indent;
    while (strlen(text) > width) {
        size_t cut = width;
        while (cut > 0 && text[cut] != ' ') {
            cut--;
        }
        assert(cut > 0);
        fprintf(out, "%.*s\n%*s", (int)cut, text, (int)indent, "");
        text += cut + 1;
    }
    fprintf(out, "%s\n", text);
}

static void write_flag(FILE *out, const struct config_setting *setting)
{
    char flag[64];
    bool fits = text_format(flag, sizeof flag, "--%s%s", setting->name, value_word(setting->type));
    assert(fits);
    (void)fits;
    for (char *at = flag; *at != '\0' && *at != '.' && *at != ' '; at++) {
        *at = *at == '_' ? '-' : *at;
    }
    fprintf(out, "  %-24s", flag);
    write_wrapped(out, setting->doc, 26);
}

static void write_common_flags(FILE *out)
{
    for (size_t i = 0; i < cli_program.setting_count; i++) {
        if (strcmp(cli_program.settings[i].section, "Everywhere") == 0) {
            write_flag(out, &cli_program.settings[i]);
        }
    }
    fputs("  --config FILE           A file of settings, one \"key = value\" a line.\n"
          "  --help, --version, --check, --print-config\n",
          out);
}

static void write_command_help(FILE *out, const struct cli_command *command)
{
    fprintf(out, "Usage: onceward %s%s%s%s\n\n", command->name, command->arguments[0] == '\0' ? "" : " ",
            command->arguments, command->flags[0] == NULL ? "" : " [--FLAG VALUE]...");
    fprintf(out, "%c%s.\n", command->summary[0] - 'a' + 'A', command->summary + 1);
    if (command->details[0] != '\0') {
        fprintf(out, "\n%s", command->details);
    }
    if (command->flags[0] != NULL) {
        fputs("\nFlags:\n", out);
    }
    for (size_t i = 0; command->flags[i] != NULL; i++) {
        write_flag(out, find_setting(command->flags[i]));
    }
    fputs("\nFlags of every command:\n", out);
    write_common_flags(out);
}

/* Each command of the table, or with a word those that begin with it. */
static void write_commands(FILE *out, const char *word)
{
    for (const struct cli_command *command = cli_commands; command->name != NULL; command++) {
        char usage[64];
        bool fits = text_format(usage, sizeof usage, "%s%s%s", command->name, command->arguments[0] == '\0' ? "" : " ",
                                command->arguments);
        assert(fits);
        (void)fits;
        if (word == NULL || cli_command_is_of_family(command, word)) {
            fprintf(out, "  %-34s%s\n", usage, command->summary);
        }
    }
}

static void write_family_help(FILE *out, const char *word)
{
    fprintf(out, "Usage: onceward %s WORD [ARGUMENT]... [--FLAG VALUE]...\n\nCommands:\n", word);
    write_commands(out, word);
    fprintf(out, "\n`onceward help %s WORD` explains a command and its flags.\n", word);
}

static void write_program_help(FILE *out)
{
    fputs("Usage: onceward COMMAND [ARGUMENT]... [--FLAG VALUE]...\n\n"
          "Looks after a deployment of Onceward: its schema, topics and routes, and what becomes of events.\n\n"
          "Commands:\n",
          out);
    write_commands(out, NULL);
    fputs("\nFlags of every command (also as ONCEWARD_DATABASE, ONCEWARD_KAFKA and so on in the environment):\n", out);
    write_common_flags(out);
    fputs("\nExit codes:\n"
          "  0 done                          4 not authorised\n"
          "  1 failed                        5 not reachable: try again\n"
          "  2 wrong usage                   6 refused by a guard\n"
          "  3 done, but something is not well\n\n"
          "`onceward help COMMAND` explains a command and its flags.\n",
          out);
}

void cli_help_write(FILE *out, const char *const *words)
{
    int word_count = 0;
    bool is_help = words[0] != NULL && strcmp(words[0], "help") == 0;
    const char *const *about = words + (is_help ? 1 : 0);
    const struct cli_command *command = cli_command_find(about, &word_count);
    if (command != NULL) {
        write_command_help(out, command);
    } else if (about[0] != NULL && about[1] == NULL && cli_command_is_family(about[0])) {
        write_family_help(out, about[0]);
    } else {
        write_program_help(out);
    }
}
