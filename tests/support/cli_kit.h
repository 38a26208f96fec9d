/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of the command line inside the test's own process, and what is read of
 * their JSON.
 */
#ifndef SUPPORT_CLI_KIT_H
#define SUPPORT_CLI_KIT_H

#include <stdint.h>

#include "wire/wire_json.h"

#define CLI_CALL_ARGUMENT_COUNT_MAX 16
#define ARGUMENTS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* What one call came to. */
struct cli_call {
    int code;
    char *out;
    char *errors;
};

/* Calls with these arguments, which end in NULL. */
struct cli_call cli_call(const char *const *arguments);
void cli_call_done(struct cli_call *call);

/* The value at a path of the answer, as in "consumers.0.lag"; the test fails where the answer is no JSON. */
struct wire_value cli_call_member(const struct cli_call *call, const char *path);
/* The same where it must be a number. */
int64_t cli_call_number(const struct cli_call *call, const char *path);
/* A copy of a text without escapes; free() it. */
char *cli_call_text(const struct cli_call *call, const char *path);
void cli_call_assert_member(const struct cli_call *call, const char *path, const char *text);

/* Fails unless the part is in the text; with NULL, unless the text is empty. */
void cli_call_assert_part(const char *what, const char *text, const char *part);

#endif
