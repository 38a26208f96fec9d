/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of base/config share.
 */
#ifndef CONFIG_PRIVATE_H
#define CONFIG_PRIVATE_H

#include "base/buf.h"
#include "base/config.h"

#define CONFIG_MASK "***"
#define CONFIG_PLACE_SIZE 512

/* What is known of one setting while it is being read. */
struct config_slot {
    char *text;   /* As it was written; NULL when absent. */
    char *origin; /* "default", "FILE:LINE", "environment NAME", "flag --name". */
    bool is_in_file;
};

struct config_report {
    const struct config_program *program;
    void *settings;
    struct config_slot *slots; /* One per setting. */
    struct buf mistakes;       /* One line each. */
    size_t mistake_count;
};

/* One mistake with its place. */
void config_report_mistake(struct config_report *report, const char *place, const char *format, ...) PRINTF_LIKE(3, 4);

/* The setting of this name, or the pass-through whose prefix it has; NULL when there is none. */
const struct config_setting *config_find(const struct config_program *program, const char *name);

/* A name that no setting has, or that is a flag only. */
void config_report_unknown(struct config_report *report, const char *place, const char *name);

/* Reads text into the setting, or reports why not. name is the whole name, which of a pass-through is longer. */
void config_set(struct config_report *report, const struct config_setting *setting, const char *name, const char *text,
                const char *place);

/* Reads the settings file. */
void config_file_read(struct config_report *report, const char *path);

/* Reads text into its place in settings and frees what was there. False with the reason in ret_why; then nothing
 * changed. Not for CONFIG_PAIRS. */
bool config_value_set(const struct config_setting *setting, void *settings, const char *text, struct err *ret_why);

/* Frees what the setting holds in settings. */
void config_value_done(const struct config_setting *setting, void *settings);

/* Adds or replaces a pair; false with the reason, which never quotes the value. Line breaks and tabs may stand in a
 * value, since certificates have them. */
bool config_value_set_pair(const struct config_setting *setting, void *settings, const char *name, const char *value,
                           const char *origin, struct err *ret_why);

/* "integer from 1 to 10", "text", "one of a, b". */
void config_value_describe(const struct config_setting *setting, struct buf *out);

/* The flag's name: "--log-level". */
void config_value_flag(const char *name, struct buf *out);

void config_print_help(const struct config_program *program, FILE *out);
void config_print_values(const struct config_report *report, FILE *out);
void config_print_docs(const struct config_program *program, FILE *out);

/* The known name nearest to name, or NULL when none is near. */
const char *config_names_nearest(const struct config_program *program, const char *name);

/* Whether a variable of this setting's name (lower case, without ONCEWARD_) belongs to some program or is reserved. */
bool config_names_has(const char *name);

/* strdup and malloc for the start of a program, where there is nothing to do without memory. */
char *config_copy(const char *text);

#endif
