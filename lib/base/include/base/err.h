/* SPDX-License-Identifier: Apache-2.0
 *
 * Why an operation failed, as a plain value on the caller's stack. It never
 * allocates and needs no cleanup. The kind decides what a loop does next; the
 * code is for tables, logs and tests; the text is for people.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(format_index, first_index) __attribute__((format(printf, format_index, first_index)))

#define ERR_CODE_SIZE 40
#define ERR_TEXT_SIZE 512

enum err_kind {
    ERR_NONE = 0,
    ERR_TRANSIENT, /* The world is in the way: try again, it never counts as an attempt. */
    ERR_PERMANENT, /* This input will never work: refuse it and say why. */
    ERR_FATAL,     /* This process cannot go on: stop without settling anything. */
};

struct err {
    enum err_kind kind;
    char code[ERR_CODE_SIZE]; /* SQLSTATE, Kafka's error name, or our own snake_case word. */
    char text[ERR_TEXT_SIZE]; /* One line, no newline at the end. Cut at a whole character. */
};

/* clang-format off */
#define ERR_INIT {.kind = ERR_NONE, .code = "", .text = ""}
/* clang-format on */

/* Records a failure. The first error wins: a second call changes nothing.
 * Always returns false, so that `return err_set(…)` reads as the failure it is.
 * Precondition: kind is not ERR_NONE and err is not NULL. */
bool err_set(struct err *err, enum err_kind kind, const char *code, const char *format, ...) PRINTF_LIKE(4, 5);

/* Puts "what: " before the text of a recorded error, as outer layers do. Returns false. */
bool err_prefix(struct err *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* Back to the state of ERR_INIT, for loops that use one value again. */
void err_clear(struct err *err);

/* "transient", "permanent", "fatal" or "none". Static. */
const char *err_kind_name(enum err_kind kind);

#endif
