/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings. A program has one table; the table yields the reader of its file,
 * environment and flags, the help, the masked print-out and the documentation.
 *
 *   file         key = value           whole-line comments with #; --config FILE. A value between quotation marks may
 *                                      have blanks at its ends and the escapes \" \\ \n \r \t
 *   environment  ONCEWARD_KEY=value
 *   flags        --key-with-dashes value, or =value; a switch (bool) needs no value
 *
 * Later lines of this list win. All mistakes are reported at once. Unknown
 * names are mistakes; a variable that belongs to a sister program is ignored.
 *
 *   static const struct config_setting settings[] = {
 *       {.name = "listen", .type = CONFIG_ADDRESS, .offset = offsetof(struct producer_settings, listen),
 *        .preset = "127.0.0.1:8480", .section = "HTTP", .doc = "Where the HTTP API listens."},
 *       {.name = "kafka.", .type = CONFIG_PAIRS, .offset = offsetof(struct producer_settings, kafka_properties),
 *        .section = "Kafka", .doc = "Passed to librdkafka as it is."},
 *   };
 */
#ifndef BASE_CONFIG_H
#define BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

#define CONFIG_HOST_SIZE 256
#define CONFIG_ADDRESS_TEXT_SIZE (CONFIG_HOST_SIZE + 8)

enum config_type {
    CONFIG_TEXT,     /* const char *; NULL when absent. min and max bound its size in bytes where max > 0. */
    CONFIG_INT,      /* int64_t between min and max. */
    CONFIG_BOOL,     /* bool: on, off, true, false, yes, no. */
    CONFIG_SIZE,     /* size_t between min and max: bytes, with KiB, MiB or GiB where wanted. */
    CONFIG_CHOICE,   /* int (or an enum): the index in choices. */
    CONFIG_ADDRESS,  /* struct config_address: host:port, [::1]:port. */
    CONFIG_CONNINFO, /* const char *: a libpq conninfo or URI, whose passwords are masked. */
    CONFIG_LIST,     /* struct config_list: separated by commas, blanks around them dropped. */
    CONFIG_PAIRS,    /* struct config_pairs: every name that begins with this name, which ends in a full stop.
                      * In the environment the full stops are underscores. */
};

struct config_address {
    char host[CONFIG_HOST_SIZE]; /* "" when absent. Without the brackets of IPv6. */
    uint16_t port;
};

struct config_list {
    char **items;
    size_t count;
};

struct config_pair {
    char *name; /* Without the prefix. */
    char *value;
    char *origin;
};

struct config_pairs {
    struct config_pair *items;
    size_t count;
};

struct config_setting {
    const char *name; /* snake_case, units in the name. */
    enum config_type type;
    size_t offset;      /* Of the target in the program's struct of settings. */
    const char *preset; /* The default, as text. NULL: absent. */
    int64_t min;
    int64_t max;                /* max = min = 0 for a text: no bounds. */
    const char *const *choices; /* Ends in NULL. */
    bool is_secret;             /* Never printed. */
    bool is_required;
    bool is_flag_only; /* Neither in files nor in the environment: what says how one call is to behave. */
    const char *section;
    const char *doc; /* One sentence or two. */
};

struct config_report;

struct config_program {
    const char *name; /* The binary's. */
    const char *summary;
    const struct config_setting *settings;
    size_t setting_count;
    size_t word_count_max; /* Arguments that are no flags. */
    /* Mistakes that lie between settings; may be NULL. Runs when each setting by itself is right. */
    void (*check)(const void *settings, struct config_report *report);
    /* Writes the help instead of the table's own; may be NULL. words as in config_load. */
    void (*help)(FILE *out, const char *const *words);
};

enum config_outcome {
    CONFIG_RUN,  /* Settings are complete: go on, and config_done in the end. */
    CONFIG_DONE, /* --help, --version, --check, --print-config were answered on out: leave with 0. */
    CONFIG_WRONG /* All mistakes were told on errors: leave with 2. */
};

/* Fills *settings (zeroed by the caller) from the table's presets, the file, the environment and the flags.
 * ret_words has room for word_count_max + 1 pointers, borrows from argv and ends in NULL; it may be NULL when that is
 * 0. After CONFIG_DONE and CONFIG_WRONG nothing needs to be freed. */
enum config_outcome config_load(const struct config_program *program, int argc, char *const *argv, void *settings,
                                const char **ret_words, FILE *out, FILE *errors) MUST_CHECK;

/* Frees what the settings hold. */
void config_done(const struct config_program *program, void *settings);

/* For a program's check: a mistake with the setting it is about. */
void config_mistake(struct config_report *report, const char *name, const char *format, ...) PRINTF_LIKE(3, 4);

/* "host:port" or "[v6]:port"; an empty host ("*:port" and ":port") is written as "0.0.0.0". */
bool config_address_from_text(const char *text, struct config_address *ret_address) MUST_CHECK;

/* The form that config_address_from_text reads. */
void config_address_to_text(const struct config_address *address, char ret_text[CONFIG_ADDRESS_TEXT_SIZE]);

/* The text with every password in it replaced by ***; keyword form and URI form. Of a text that libpq would refuse,
 * what may be part of a password is replaced too. Free it. */
char *config_mask_conninfo(const char *conninfo) MUST_CHECK;

/* Whether a property passed through to another library must not be printed. */
bool config_pair_is_secret(const char *name, const char *value);

/* The names of all settings of all programs, sorted, ends in NULL. */
const char *const *config_names(void);

#endif
