/* SPDX-License-Identifier: Apache-2.0
 *
 * One line per call, written with a single write(2):
 *
 *   2026-11-30T06:13:13.123Z warning outbox-relay relay.publish_failed topic=orders partition=3 text to the end
 *
 * The event is a constant that a runbook can search for. Values with blanks,
 * quotes or control characters are quoted; control characters never reach the
 * output. lib below the services logs nothing above debug.
 *
 *   log_warning("relay.publish_failed", LOG_FIELDS(LOG_TEXT("topic", topic), LOG_INT("partition", 3), LOG_ERR(&err)),
 *               "%s; trying again in %d ms", err.text, wait_ms);
 *   log_info("relay.stopped", LOG_NO_FIELDS, "asked to");
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

#define LOG_LINE_SIZE_MAX 4096 /* Longer lines are cut, so that a pipe takes them whole. */

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };

/* Their names in this order, NULL behind them: the choices of a setting. */
extern const char *const log_level_names[];

/* A subject of the line. text wins where it is set; NULL text is written as "-". Made by LOG_TEXT and LOG_INT. */
struct log_field {
    const char *name; /* NULL ends a list. */
    bool is_text;
    const char *text;
    int64_t number;
};

/* clang-format off */
#define LOG_TEXT(field_name, value) {.name = (field_name), .is_text = true, .text = (value)}
#define LOG_INT(field_name, value) {.name = (field_name), .number = (int64_t)(value)}
#define LOG_ERR(err) LOG_TEXT("kind", err_kind_name((err)->kind)), LOG_TEXT("code", (err)->code)
#define LOG_FIELDS(...) ((const struct log_field[]){__VA_ARGS__, {.name = NULL}})
#define LOG_NO_FIELDS ((const struct log_field *)NULL)
/* clang-format on */

/* prog and file are borrowed for the life of the process. Before this call everything from LOG_INFO on goes to stderr.
 */
void log_init(const char *prog, enum log_level level, FILE *file);

/* Whether a line of this level would be written. */
bool log_is_on(enum log_level level);

void log_debug(const char *event, const struct log_field *fields, const char *format, ...) PRINTF_LIKE(3, 4);
void log_info(const char *event, const struct log_field *fields, const char *format, ...) PRINTF_LIKE(3, 4);
void log_warning(const char *event, const struct log_field *fields, const char *format, ...) PRINTF_LIKE(3, 4);
void log_error(const char *event, const struct log_field *fields, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
