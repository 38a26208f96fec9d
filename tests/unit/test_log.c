/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/thread.h"
#include "cmocka_all.h"

#define TEXT_SIZE 8192

/* A log that goes to a file without a name. */
static int setup(void **state)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    log_init("prog", LOG_INFO, file);
    *state = file;
    return 0;
}

static int teardown(void **state)
{
    fclose(*state);
    return 0;
}

/* All that was written, NUL behind it. */
static const char *written(FILE *file)
{
    static char text[TEXT_SIZE * 16];
    ssize_t size = pread(fileno(file), text, sizeof text - 1, 0);
    assert_true(size >= 0);
    text[size] = '\0';
    return text;
}

/* What stands behind the time. */
static const char *line_of(FILE *file)
{
    const char *text = written(file);
    assert_int_equal(strcspn(text, " "), strlen("2026-11-30T06:13:13.123Z"));
    return strchr(text, ' ') + 1;
}

static void test_log_writes_fields_in_order_and_quotes_what_needs_it(void **state)
{
    struct err err = ERR_INIT;
    err_set(&err, ERR_TRANSIENT, "08006", "gone");
    log_warning("relay.failed",
                LOG_FIELDS(LOG_TEXT("topic", "orders"), LOG_INT("partition", -3), LOG_TEXT("name", "a \"b\"\n"),
                           LOG_TEXT("none", NULL), LOG_TEXT("empty", ""), LOG_ERR(&err)),
                "%s; again in %d ms", err.text, 50);
    assert_string_equal(line_of(*state),
                        "warning prog relay.failed topic=orders partition=-3 name=\"a \\\"b\\\"\\n\" none=- empty=\"\" "
                        "kind=transient code=08006 gone; again in 50 ms\n");
}

static void test_log_lets_no_control_character_through(void **state)
{
    log_info("x", LOG_NO_FIELDS, "%s", "a\nb\x1b[1m\x7f");
    assert_string_equal(line_of(*state), "info prog x a\\nb\\x1b[1m\\x7f\n");
}

static void test_log_is_silent_below_its_level(void **state)
{
    log_debug("x", LOG_NO_FIELDS, "not seen");
    assert_string_equal(written(*state), "");
    assert_true(log_is_on(LOG_ERROR));
    assert_false(log_is_on(LOG_DEBUG));
}

static void test_log_cuts_a_long_line_at_a_character(void **state)
{
    char text[TEXT_SIZE];
    for (size_t i = 0; i + 1 < sizeof text; i += 2) {
        memcpy(text + i, "\xc3\xa9", 2);
    }
    text[sizeof text - 2] = '\0';
    log_error("x", LOG_FIELDS(LOG_TEXT("a", "b")), "%s", text);
    const char *line = written(*state);
    assert_in_range(strlen(line), LOG_LINE_SIZE_MAX - 16, LOG_LINE_SIZE_MAX);
    assert_string_equal(line + strlen(line) - 6, "\xc3\xa9\xe2\x80\xa6\n");
    assert_int_equal(strcspn(line, "\n"), strlen(line) - 1);
}

static void write_lines(void *context)
{
    (void)context;
    for (int i = 0; i < 100; i++) {
        log_info("thread.line", LOG_FIELDS(LOG_INT("i", i)), "a text that is the same in all of them");
    }
}

static void test_log_keeps_the_lines_of_threads_whole(void **state)
{
    struct thread threads[4] = {0};
    struct err err = ERR_INIT;
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        assert_true(thread_start(&threads[i], "writer", write_lines, NULL, &err));
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        thread_join(&threads[i]);
    }
    int count = 0;
    for (const char *line = written(*state); *line != '\0'; line = strchr(line, '\n') + 1) {
        assert_non_null(strstr(line, " info prog thread.line i="));
        assert_true(strcspn(line, "\n") < 100);
        count++;
    }
    assert_int_equal(count, 400);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_log_writes_fields_in_order_and_quotes_what_needs_it),
        TEST(test_log_lets_no_control_character_through),
        TEST(test_log_is_silent_below_its_level),
        TEST(test_log_cuts_a_long_line_at_a_character),
        TEST(test_log_keeps_the_lines_of_threads_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
