/* SPDX-License-Identifier: Apache-2.0 */
#include "cli_kit.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

void cli_call_done(struct cli_call *call)
{
    free(call->out);
    free(call->errors);
}

struct cli_call cli_call(const char *const *arguments)
{
    struct cli_call call = {.code = -1};
    size_t out_size = 0;
    size_t errors_size = 0;
    FILE *out = open_memstream(&call.out, &out_size);
    FILE *errors = open_memstream(&call.errors, &errors_size);
    char *argv[CLI_CALL_ARGUMENT_COUNT_MAX + 2] = {"onceward"};
    int argc = 1;
    for (; arguments[argc - 1] != NULL; argc++) {
        assert_true(argc <= CLI_CALL_ARGUMENT_COUNT_MAX);
        argv[argc] = (char *)(uintptr_t)arguments[argc - 1];
    }
    call.code = cli_main(argc, argv, out, errors);
    fclose(out);
    fclose(errors);
    return call;
}

void cli_call_assert_part(const char *what, const char *text, const char *part)
{
    if (part == NULL ? text[0] != '\0' : strstr(text, part) == NULL) {
        fail_msg("%s is \"%s\", expected was \"%s\"", what, text, part == NULL ? "" : part);
    }
}

struct wire_value cli_call_member(const struct cli_call *call, const char *path)
{
    struct err err = ERR_INIT;
    struct wire_value root;
    if (!wire_json_check(call->out, strlen(call->out), &root, &err)) {
        fail_msg("%s: %s %s", err.text, call->out, call->errors);
    }
    return wire_json_at(&root, path);
}

int64_t cli_call_number(const struct cli_call *call, const char *path)
{
    struct wire_value value = cli_call_member(call, path);
    int64_t number = INT64_MIN;
    if (!wire_json_int64(&value, &number)) {
        fail_msg("%s is no number in %s", path, call->out);
    }
    return number;
}

char *cli_call_text(const struct cli_call *call, const char *path)
{
    struct wire_value value = cli_call_member(call, path);
    assert_int_equal(value.kind, WIRE_STRING);
    char *text = strndup(value.text + 1, value.size - 2); /* Without the quotes; nothing in it is escaped. */
    assert_non_null(text);
    return text;
}

void cli_call_assert_member(const struct cli_call *call, const char *path, const char *text)
{
    struct wire_value value = cli_call_member(call, path);
    if (!wire_json_is_text(&value, text)) {
        fail_msg("%s is not \"%s\" in %s", path, text, call->out);
    }
}
