/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading settings from environment and flags, and all of it together. The
 * invariant: every mistake of every source is collected, and nothing is decided
 * by which of them was met first.
 */
#include "base/config.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "config_private.h"

#define NAME_SIZE 256
#define MISTAKES_SIZE_MAX (1 << 20)

/* What the flags ask for besides settings. */
struct request {
    bool wants_help;
    bool wants_version;
    bool wants_check;
    bool wants_values;
    bool wants_docs;
    const char *file; /* Borrowed from argv. */
};

static void add_mistake(struct config_report *report, const char *place, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* Appends one line: what is quoted in it cannot look like another. */
static void add_mistake(struct config_report *report, const char *place, const char *format, va_list args)
{
    struct buf *mistakes = &report->mistakes;
    size_t begin = mistakes->size;
    report->mistake_count++;
    buf_format(mistakes, "  %s: ", place);
    buf_vformat(mistakes, format, args);
    for (size_t i = begin; i < mistakes->size; i++) {
        mistakes->data[i] = iscntrl((unsigned char)mistakes->data[i]) ? '?' : mistakes->data[i];
    }
    buf_char(mistakes, '\n');
}

void config_report_mistake(struct config_report *report, const char *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_mistake(report, place, format, args);
    va_end(args);
}

void config_mistake(struct config_report *report, const char *name, const char *format, ...)
{
    char place[CONFIG_PLACE_SIZE];
    const char *origin = NULL;
    for (size_t i = 0; i < report->program->setting_count; i++) {
        if (strcmp(report->program->settings[i].name, name) == 0) {
            origin = report->slots[i].origin;
        }
    }
    text_format(place, sizeof place, "%s (%s)", name, origin == NULL ? "not set" : origin);
    va_list args;
    va_start(args, format);
    add_mistake(report, place, format, args);
    va_end(args);
}

const struct config_setting *config_find(const struct config_program *program, const char *name)
{
    for (size_t i = 0; i < program->setting_count; i++) {
        const struct config_setting *setting = &program->settings[i];
        bool matches = setting->type == CONFIG_PAIRS
                           ? text_has_prefix(name, setting->name) && strlen(name) > strlen(setting->name)
                           : strcmp(setting->name, name) == 0;
        if (matches) {
            return setting;
        }
    }
    return NULL;
}

void config_report_unknown(struct config_report *report, const char *place, const char *name)
{
    if (config_find(report->program, name) != NULL) {
        config_report_mistake(report, place, "%s can only be given as a flag", name);
        return;
    }
    const char *nearest = config_names_nearest(report->program, name);
    config_report_mistake(report, place, "no setting is called \"%s\"%s%s%s", name,
                          nearest == NULL ? "" : "; did you mean \"", nearest == NULL ? "" : nearest,
                          nearest == NULL ? "" : "\"?");
}

void config_set(struct config_report *report, const struct config_setting *setting, const char *name, const char *text,
                const char *place)
{
    struct err why = ERR_INIT;
    if (setting->type == CONFIG_PAIRS) {
        if (!config_value_set_pair(setting, report->settings, name + strlen(setting->name), text, place, &why)) {
            config_report_mistake(report, place, "%s: %s", name, why.text);
        }
        return;
    }
    struct config_slot *slot = &report->slots[setting - report->program->settings];
    if (!config_value_set(setting, report->settings, text, &why)) {
        if (setting->is_secret || setting->type == CONFIG_CONNINFO) {
            config_report_mistake(report, place, "%s: %s", setting->name, why.text);
        } else {
            config_report_mistake(report, place, "%s \"%s\": %s", setting->name, text, why.text);
        }
        return;
    }
    free(slot->text);
    free(slot->origin);
    slot->text = config_copy(text);
    slot->origin = config_copy(place);
}

static void read_presets(struct config_report *report)
{
    for (size_t i = 0; i < report->program->setting_count; i++) {
        const struct config_setting *setting = &report->program->settings[i];
        if (setting->preset != NULL) {
            config_set(report, setting, setting->name, setting->preset, "default");
        }
    }
    assert(report->mistake_count == 0);
}

/* The setting that a variable is for: the text behind ONCEWARD_ in lower case, and behind a prefix with full stops. */
static const struct config_setting *find_variable(const struct config_program *program, char *name)
{
    const struct config_setting *setting = config_find(program, name);
    for (size_t i = 0; i < program->setting_count && setting == NULL; i++) {
        const struct config_setting *pairs = &program->settings[i];
        size_t prefix_size = strlen(pairs->name) - 1;
        if (pairs->type == CONFIG_PAIRS && strncmp(name, pairs->name, prefix_size) == 0 && name[prefix_size] == '_' &&
            name[prefix_size + 1] != '\0') {
            setting = pairs;
            for (char *at = name + prefix_size; *at != '\0'; at++) {
                *at = *at == '_' ? '.' : *at;
            }
        }
    }
    return setting == NULL || setting->is_flag_only ? NULL : setting;
}

static void read_variable(struct config_report *report, const char *variable)
{
    static const char prefix[] = "ONCEWARD_";
    const char *equals = strchr(variable, '=');
    if (equals == NULL || !text_has_prefix(variable, prefix)) {
        return;
    }
    char place[CONFIG_PLACE_SIZE];
    char name[NAME_SIZE];
    text_format(place, sizeof place, "environment %.*s", (int)(equals - variable), variable);
    size_t name_size = (size_t)(equals - variable) - strlen(prefix);
    if (name_size >= sizeof name) {
        config_report_mistake(report, place, "the name is too long");
        return;
    }
    for (size_t i = 0; i < name_size; i++) {
        name[i] = (char)tolower((unsigned char)variable[strlen(prefix) + i]);
    }
    name[name_size] = '\0';
    const struct config_setting *setting = find_variable(report->program, name);
    if (setting != NULL) {
        config_set(report, setting, name, equals + 1, place);
    } else if (!config_names_has(name)) {
        config_report_unknown(report, place, name);
    }
}

/* True when the flag is one of those that every program has. */
static bool read_common_flag(struct request *request, const char *name)
{
    const struct {
        const char *name;
        bool *is_wanted;
    } flags[] = {
        {"help", &request->wants_help},
        {"version", &request->wants_version},
        {"check", &request->wants_check},
        {"print-config", &request->wants_values},
        {"print-config-docs", &request->wants_docs},
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (strcmp(name, flags[i].name) == 0) {
            *flags[i].is_wanted = true;
            return true;
        }
    }
    return false;
}

/* A flag's name as the table has it. Property names behind a prefix keep their dashes. */
static const struct config_setting *find_flag(const struct config_program *program, char *name)
{
    if (strchr(name, '.') == NULL) {
        for (char *at = name; *at != '\0'; at++) {
            *at = *at == '-' ? '_' : *at;
        }
    }
    return config_find(program, name);
}

/* Reads the flag at argv[index] and gives the index of the last argument that it used. */
static int read_flag(struct config_report *report, struct request *request, int argc, char *const *argv, int index)
{
    const char *argument = argv[index];
    const char *equals = strchr(argument, '=');
    size_t name_size = equals == NULL ? strlen(argument) - 2 : (size_t)(equals - argument) - 2;
    char name[NAME_SIZE];
    char place[CONFIG_PLACE_SIZE];
    text_format(place, sizeof place, "flag --%.*s", (int)name_size, argument + 2);
    if (name_size >= sizeof name) {
        config_report_mistake(report, place, "the name is too long");
        return index;
    }
    memcpy(name, argument + 2, name_size);
    name[name_size] = '\0';
    if (equals == NULL && read_common_flag(request, name)) {
        return index;
    }
    bool is_file = strcmp(name, "config") == 0;
    const struct config_setting *setting = is_file ? NULL : find_flag(report->program, name);
    if (!is_file && setting == NULL) {
        config_report_unknown(report, place, name);
        return index;
    }
    const char *value = equals == NULL ? NULL : equals + 1;
    if (value == NULL && !is_file && setting->type == CONFIG_BOOL) {
        value = "on";
    } else if (value == NULL && index + 1 < argc) {
        value = argv[++index];
    } else if (value == NULL) {
        config_report_mistake(report, place, "needs a value");
        return index;
    }
    if (is_file) {
        request->file = value;
    } else {
        config_set(report, setting, name, value, place);
    }
    return index;
}

static void read_flags(struct config_report *report, struct request *request, int argc, char *const *argv,
                       const char **ret_words)
{
    size_t word_count = 0;
    bool is_behind_flags = false;
    for (int i = 1; i < argc; i++) {
        if (!is_behind_flags && strcmp(argv[i], "--") == 0) {
            is_behind_flags = true;
        } else if (!is_behind_flags && strcmp(argv[i], "-h") == 0) {
            request->wants_help = true;
        } else if (!is_behind_flags && text_has_prefix(argv[i], "--")) {
            i = read_flag(report, request, argc, argv, i);
        } else if (!is_behind_flags && argv[i][0] == '-' && argv[i][1] != '\0') {
            config_report_mistake(report, "flags", "there is no flag %s; try --help", argv[i]);
        } else if (word_count < report->program->word_count_max) {
            ret_words[word_count++] = argv[i];
        } else {
            config_report_mistake(report, "arguments", "\"%s\" is one too many; try --help", argv[i]);
        }
    }
    if (ret_words != NULL) {
        ret_words[word_count] = NULL;
    }
}

static void check_complete(struct config_report *report)
{
    for (size_t i = 0; i < report->program->setting_count; i++) {
        const struct config_setting *setting = &report->program->settings[i];
        if (setting->is_required && report->slots[i].text == NULL) {
            config_mistake(report, setting->name, "must be set");
        }
    }
    if (report->mistake_count == 0 && report->program->check != NULL) {
        report->program->check(report->settings, report);
    }
}

static enum config_outcome answer(const struct config_report *report, const struct request *request, FILE *out,
                                  FILE *errors)
{
    const struct config_program *program = report->program;
    if (report->mistake_count > 0) {
        fprintf(errors, "%s: %zu mistake%s in the settings:\n%s", program->name, report->mistake_count,
                report->mistake_count == 1 ? "" : "s", report->mistakes.data);
        return CONFIG_WRONG;
    }
    if (request->wants_values) {
        config_print_values(report, out);
    } else if (request->wants_check) {
        fprintf(out, "%s: the settings are right\n", program->name);
    } else {
        return CONFIG_RUN;
    }
    return CONFIG_DONE;
}

/* What can be answered without looking at any setting. */
static bool answer_at_once(const struct config_program *program, const struct request *request,
                           const char *const *words, FILE *out)
{
    if (request->wants_help && program->help != NULL) {
        program->help(out, words);
    } else if (request->wants_help) {
        config_print_help(program, out);
    } else if (request->wants_version) {
        fprintf(out, "%s %s\n", program->name, ONCEWARD_VERSION);
    } else if (request->wants_docs) {
        config_print_docs(program, out);
    } else {
        return false;
    }
    return true;
}

static void report_done(struct config_report *report)
{
    for (size_t i = 0; i < report->program->setting_count; i++) {
        free(report->slots[i].text);
        free(report->slots[i].origin);
    }
    free(report->slots);
    buf_done(&report->mistakes);
}

/* What the first reading of the flags has set: the second would find it there. */
static void forget_pairs(struct config_report *report)
{
    for (size_t i = 0; i < report->program->setting_count; i++) {
        if (report->program->settings[i].type == CONFIG_PAIRS) {
            config_value_done(&report->program->settings[i], report->settings);
        }
    }
}

/* The flags come last but say where the file is, so they are read twice: first for what they ask, then for values. */
enum config_outcome config_load(const struct config_program *program, int argc, char *const *argv, void *settings,
                                const char **ret_words, FILE *out, FILE *errors)
{
    assert(program != NULL && settings != NULL && (ret_words != NULL || program->word_count_max == 0));
    struct config_report report = {.program = program, .settings = settings};
    report.slots = calloc(program->setting_count + 1, sizeof *report.slots);
    assert(report.slots != NULL);
    buf_init(&report.mistakes, MISTAKES_SIZE_MAX);
    struct request request = {0};
    read_presets(&report);
    read_flags(&report, &request, argc, argv, ret_words);
    enum config_outcome outcome = CONFIG_DONE;
    if (!answer_at_once(program, &request, ret_words, out)) {
        report.mistake_count = 0;
        buf_reset(&report.mistakes);
        forget_pairs(&report);
        if (request.file != NULL) {
            config_file_read(&report, request.file);
        }
        for (char **variable = environ; variable != NULL && *variable != NULL; variable++) {
            read_variable(&report, *variable);
        }
        read_flags(&report, &request, argc, argv, ret_words);
        check_complete(&report);
        outcome = answer(&report, &request, out, errors);
    }
    report_done(&report);
    if (outcome != CONFIG_RUN) {
        config_done(program, settings);
    }
    return outcome;
}

void config_done(const struct config_program *program, void *settings)
{
    for (size_t i = 0; i < program->setting_count; i++) {
        config_value_done(&program->settings[i], settings);
    }
}
