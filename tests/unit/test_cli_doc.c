/* SPDX-License-Identifier: Apache-2.0
 *
 * One document as text and as JSON: units, alignment, and bytes that must not
 * reach a terminal.
 */
#include "cmocka_all.h"

#include <stdlib.h>

#include "cli_doc.h"
#include "wire/wire_json.h"

struct unit_case {
    const char *name;
    void (*write)(int64_t number, char *text, size_t size);
    int64_t number;
    const char *expected;
};

static const struct unit_case unit_cases[] = {
    {"count 0", cli_text_count, 0, "0"},
    {"count 999", cli_text_count, 999, "999"},
    {"count 1000", cli_text_count, 1000, "1 000"},
    {"count -1234567", cli_text_count, -1234567, "-1 234 567"},
    {"count -123", cli_text_count, -123, "-123"},
    {"the least count", cli_text_count, INT64_MIN, "-9 223 372 036 854 775 808"},
    {"size 0", cli_text_size, 0, "0 B"},
    {"size 2000", cli_text_size, 2000, "2 000 B"},
    {"size 1 KiB", cli_text_size, 1024, "1 KiB"},
    {"size 1 MiB and a little", cli_text_size, 1048588, "1.0 MiB"},
    {"size 1.5 MiB", cli_text_size, 1572864, "1.5 MiB"},
    {"size 3 GiB", cli_text_size, INT64_C(3) << 30, "3 GiB"},
    {"age 0", cli_text_age, 0, "0 ms"},
    {"age under a second", cli_text_age, 999999, "999 ms"},
    {"age of seconds", cli_text_age, 2100000, "2.1 s"},
    {"age just under a minute", cli_text_age, 59990000, "59.9 s"},
    {"age of minutes", cli_text_age, INT64_C(125) * 1000000, "2 min 5 s"},
    {"age of hours", cli_text_age, INT64_C(7500) * 1000000, "2 h 5 min"},
    {"age of days", cli_text_age, INT64_C(180000) * 1000000, "2 d 2 h"},
    {"age below 0", cli_text_age, -1, "in the future"},
};

static void test_cli_text_writes_units(void **state)
{
    const struct unit_case *row = *state;
    char text[64];
    row->write(row->number, text, sizeof text);
    assert_string_equal(text, row->expected);
}

static char *render(const struct cli_doc *doc, void (*write)(const struct cli_doc *doc, FILE *out))
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    assert_non_null(memory);
    write(doc, memory);
    fclose(memory);
    return text;
}

static const struct cli_column COLUMNS[] = {
    {"name", "NAME", CLI_TEXT, 8},
    {"count", "COUNT", CLI_COUNT, 0},
    {"hidden", NULL, CLI_BOOL, 0},
    {"at", "AT", CLI_TIME, 0},
};

static void fill(struct cli_doc *doc)
{
    cli_doc_section(doc, "rows", "Rows", "none", COLUMNS, COUNT_OF(COLUMNS));
    cli_doc_text(doc, "Zürich");
    cli_doc_number(doc, 1234);
    cli_doc_bool(doc, true);
    cli_doc_number(doc, INT64_C(1700000000123456));
    cli_doc_text(doc, "a long name");
    cli_doc_number(doc, 5);
    cli_doc_bool(doc, false);
    cli_doc_null(doc);
}

static void test_cli_text_aligns_and_cuts(void **state)
{
    (void)state;
    struct cli_doc doc = {.section_count = 0};
    fill(&doc);
    cli_doc_note(&doc, "Note %d.", 1);
    char *text = render(&doc, cli_text_write);
    assert_string_equal(text, "Rows\n"
                              "  NAME      COUNT  AT\n"
                              "  Zürich    1 234  2023-11-14T22:13:20.123Z\n"
                              "  a long …      5  -\n"
                              "\n"
                              "Note 1.\n");
    free(text);
    cli_doc_done(&doc);
}

static void test_cli_json_gives_everything_whole(void **state)
{
    (void)state;
    struct cli_doc doc = {.section_count = 0};
    fill(&doc);
    char *text = render(&doc, cli_json_write);
    struct err err = ERR_INIT;
    struct wire_value root;
    assert_true(wire_json_check(text, strlen(text), &root, &err));
    struct wire_value name = wire_json_at(&root, "rows.1.name");
    assert_true(wire_json_is_text(&name, "a long name"));
    struct wire_value at = wire_json_at(&root, "rows.1.at");
    assert_int_equal(at.kind, WIRE_NULL);
    struct wire_value hidden = wire_json_at(&root, "rows.0.hidden");
    assert_int_equal(hidden.kind, WIRE_BOOL);
    free(text);
    cli_doc_done(&doc);
}

struct byte_case {
    const char *name;
    const char *text;
    const char *shown;
};

static const struct byte_case byte_cases[] = {
    {"an escape sequence", "\033[31mred", "\\x1B[31mred"},
    {"a C1 control",
     "a\xC2\x9B"
     "b",
     "a\\x9Bb"},
    {"a newline", "a\nb", "a\\x0Ab"},
    {"bytes that are no UTF-8",
     "a\xFF"
     "b",
     "a\\xFFb"},
    {"a quote and a backslash", "\"\\", "\"\\"},
    {"characters of four bytes", "\xF0\x9F\x99\x82", "\xF0\x9F\x99\x82"},
    {"half a character at the end", "a\xC3", "a\\xC3"},
    {"half a C1 control at the end", "a\xC2", "a\\xC2"},
};

static void test_cli_doc_keeps_bytes_from_the_terminal(void **state)
{
    static const struct cli_column ONE[] = {{"key", "KEY", CLI_TEXT, 0}};
    const struct byte_case *row = *state;
    struct cli_doc doc = {.section_count = 0};
    cli_doc_single(&doc, "one", NULL, ONE, 1);
    cli_doc_text(&doc, row->text);
    char *text = render(&doc, cli_text_write);
    char expected[128];
    assert_in_range(snprintf(expected, sizeof expected, "KEY  %s\n", row->shown), 1, sizeof expected - 1);
    assert_string_equal(text, expected);
    free(text);
    text = render(&doc, cli_json_write);
    struct err err = ERR_INIT;
    struct wire_value root;
    if (!wire_json_check(text, strlen(text), &root, &err)) {
        fail_msg("%s: %s", err.text, text);
    }
    free(text);
    cli_doc_done(&doc);
}

static void test_cli_doc_says_that_there_is_nothing(void **state)
{
    (void)state;
    struct cli_doc doc = {.section_count = 0};
    cli_doc_section(&doc, "rows", NULL, "No row.", COLUMNS, COUNT_OF(COLUMNS));
    char *text = render(&doc, cli_text_write);
    assert_string_equal(text, "No row.\n");
    free(text);
    text = render(&doc, cli_json_write);
    assert_string_equal(text, "{\n  \"format\": 1,\n  \"rows\": [],\n  \"notes\": []\n}\n");
    free(text);
    cli_doc_done(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_text_aligns_and_cuts),
        cmocka_unit_test(test_cli_json_gives_everything_whole),
        cmocka_unit_test(test_cli_doc_says_that_there_is_nothing),
    };
    int failed = RUN_CASES("test_cli_doc units", test_cli_text_writes_units, unit_cases);
    failed += RUN_CASES("test_cli_doc bytes", test_cli_doc_keeps_bytes_from_the_terminal, byte_cases);
    return failed + cmocka_run_group_tests_name("test_cli_doc", tests, NULL, NULL);
}
