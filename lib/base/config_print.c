/* SPDX-License-Identifier: Apache-2.0
 *
 * What the table says of itself: the help, the settings in force, the
 * documentation.
 */
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config_private.h"

#define HELP_COLUMN 30
#define HELP_WIDTH 100

static const struct {
    const char *flag;
    const char *doc;
} common_flags[] = {
    {"--config FILE", "Read settings from FILE (key = value)."},
    {"--check", "Check the settings and leave."},
    {"--print-config", "Print the settings in force, secrets masked, with where each comes from."},
    {"--version", "Print the version."},
    {"--help", "Print this."},
};

/* The text in lines of HELP_WIDTH, each from column on; the first line starts where the cursor is. */
static void print_wrapped(const char *text, int column, FILE *out)
{
    int used = column;
    while (*text != '\0') {
        int word_size = (int)strcspn(text, " ");
        if (used > column && used + 1 + word_size > HELP_WIDTH) {
            fprintf(out, "\n%*s", column, "");
            used = column;
        } else if (used > column) {
            fputc(' ', out);
            used++;
        }
        fprintf(out, "%.*s", word_size, text);
        used += word_size;
        text += word_size;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

static void print_flag(const char *flag, const char *doc, FILE *out)
{
    fprintf(out, "  %-*s", HELP_COLUMN - 2, flag);
    if (strlen(flag) > HELP_COLUMN - 3) {
        fprintf(out, "\n%*s", HELP_COLUMN, "");
    }
    print_wrapped(doc, HELP_COLUMN, out);
}

static void print_setting(const struct config_setting *setting, FILE *out)
{
    struct buf flag;
    struct buf doc;
    buf_init(&flag, 256);
    buf_init(&doc, 4096);
    config_value_flag(setting->name, &flag);
    if (setting->type == CONFIG_PAIRS) {
        buf_text(&flag, "NAME=VALUE");
    } else if (setting->type != CONFIG_BOOL) {
        buf_text(&flag, " VALUE");
    }
    buf_format(&doc, "%s (", setting->doc);
    config_value_describe(setting, &doc);
    if (setting->preset != NULL) {
        buf_format(&doc, "; default %s", setting->preset[0] == '\0' ? "empty" : setting->preset);
    } else if (setting->is_required) {
        buf_text(&doc, "; required");
    }
    buf_char(&doc, ')');
    print_flag(flag.data, doc.data, out);
    buf_done(&flag);
    buf_done(&doc);
}

static bool is_new_section(const struct config_program *program, size_t index)
{
    return index == 0 || !text_is_equal(program->settings[index].section, program->settings[index - 1].section);
}

void config_print_help(const struct config_program *program, FILE *out)
{
    fprintf(out, "%s: %s\n\nUsage: %s [FLAG]…\n\n", program->name, program->summary, program->name);
    for (size_t i = 0; i < sizeof common_flags / sizeof common_flags[0]; i++) {
        print_flag(common_flags[i].flag, common_flags[i].doc, out);
    }
    for (size_t i = 0; i < program->setting_count; i++) {
        if (is_new_section(program, i)) {
            fprintf(out, "\n%s\n", program->settings[i].section);
        }
        print_setting(&program->settings[i], out);
    }
    fprintf(out, "\nEach setting can stand in the file as its name with underscores, and in the environment as\n"
                 "ONCEWARD_NAME. Flags win over the environment, the environment over the file.\n");
}

/* A comment that stays one line, whatever the file is called. */
static void print_origin(const char *origin, FILE *out)
{
    fputs("# ", out);
    for (; *origin != '\0'; origin++) {
        fputc(iscntrl((unsigned char)*origin) ? '?' : *origin, out);
    }
    fputc('\n', out);
}

/* Whether a line of a file would lose something of the value. */
static bool needs_quotes(const char *value)
{
    size_t size = strlen(value);
    bool is_needed = size > 0 && (value[0] == '"' || value[0] == ' ' || value[size - 1] == ' ');
    for (size_t i = 0; i < size; i++) {
        is_needed = is_needed || iscntrl((unsigned char)value[i]);
    }
    return is_needed;
}

/* The value as a file may have it. */
static void print_text(const char *value, FILE *out)
{
    if (!needs_quotes(value)) {
        fprintf(out, "%s\n", value);
        return;
    }
    static const char meanings[] = "\"\\\n\r\t";
    static const char letters[] = "\"\\nrt";
    fputc('"', out);
    for (; *value != '\0'; value++) {
        const char *meaning = strchr(meanings, *value);
        if (meaning != NULL) {
            fprintf(out, "\\%c", letters[meaning - meanings]);
        } else {
            fputc(*value, out);
        }
    }
    fputs("\"\n", out);
}

static void print_pairs(const struct config_setting *setting, const void *settings, FILE *out)
{
    const struct config_pairs *pairs = (const void *)((const char *)settings + setting->offset);
    if (pairs->count == 0) {
        fprintf(out, "# not set\n# %s… =\n", setting->name);
    }
    for (size_t i = 0; i < pairs->count; i++) {
        const struct config_pair *pair = &pairs->items[i];
        bool is_masked = setting->is_secret || config_pair_is_secret(pair->name, pair->value);
        print_origin(pair->origin, out);
        fprintf(out, "%s%s = ", setting->name, pair->name);
        print_text(is_masked ? CONFIG_MASK : pair->value, out);
    }
}

static void print_value(const struct config_setting *setting, const struct config_slot *slot, FILE *out)
{
    if (slot->text == NULL) {
        fprintf(out, "# not set\n# %s =\n", setting->name);
        return;
    }
    char *masked = setting->type == CONFIG_CONNINFO ? config_mask_conninfo(slot->text) : NULL;
    const char *shown = masked != NULL ? masked : slot->text;
    print_origin(slot->origin, out);
    fprintf(out, "%s = ", setting->name);
    print_text(setting->is_secret ? CONFIG_MASK : shown, out);
    free(masked);
}

void config_print_values(const struct config_report *report, FILE *out)
{
    const struct config_program *program = report->program;
    for (size_t i = 0; i < program->setting_count; i++) {
        const struct config_setting *setting = &program->settings[i];
        if (setting->is_flag_only) {
            continue;
        }
        if (is_new_section(program, i)) {
            fprintf(out, "%s# == %s ==\n", i == 0 ? "" : "\n", setting->section);
        }
        if (setting->type == CONFIG_PAIRS) {
            print_pairs(setting, report->settings, out);
        } else {
            print_value(setting, &report->slots[i], out);
        }
    }
}

static void print_docs_row(const struct config_setting *setting, FILE *out)
{
    struct buf type;
    buf_init(&type, 4096);
    config_value_describe(setting, &type);
    const char *preset = setting->is_required ? "*required*" : "*none*";
    bool is_shown = setting->preset != NULL;
    fprintf(out, "| `%s%s` | %s | %s%s%s | %s%s |\n", setting->name, setting->type == CONFIG_PAIRS ? "…" : "",
            type.data, is_shown ? "`" : "", is_shown ? setting->preset : preset, is_shown ? "`" : "", setting->doc,
            setting->is_secret ? " *Secret: never printed.*" : "");
    buf_done(&type);
}

void config_print_docs(const struct config_program *program, FILE *out)
{
    fprintf(out, "## %s\n\n%s\n", program->name, program->summary);
    const char *section = NULL;
    for (size_t i = 0; i < program->setting_count; i++) {
        const struct config_setting *setting = &program->settings[i];
        if (setting->is_flag_only) {
            continue;
        }
        if (!text_is_equal(section, setting->section)) {
            section = setting->section;
            fprintf(out, "\n### %s\n\n| setting | type | default | meaning |\n|---|---|---|---|\n", section);
        }
        print_docs_row(setting, out);
    }
}
