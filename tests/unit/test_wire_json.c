/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/wire_json.h"

#include <stdlib.h>

#include "cmocka_all.h"
#include "wire/wire_canonical.h"

struct check_case {
    const char *name;
    const char *text;
    const char *expected; /* NULL: accepted. */
    size_t size;          /* 0: up to the NUL. */
};

#define TEN(x) x x x x x x x x x x
#define SIXTY_FOUR(x) TEN(x) TEN(x) TEN(x) TEN(x) TEN(x) TEN(x) x x x x

static const struct check_case check_cases[] = {
    {"an object", "{\"a\":1}", NULL, 0},
    {"white space around", " \t\r\n{}\n", NULL, 0},
    {"a lone scalar", "1", NULL, 0},
    {"nothing", "", "near byte 0: the text ends too early", 0},
    {"a duplicate member", "{\"a\":1,\"a\":2}", "near byte 9: a member's name for the second time", 0},
    {"a duplicate member through an escape", "{\"a\":1,\"\\u0061\":2}",
     "near byte 14: a member's name for the second time", 0},
    {"an escaped NUL", "{\"a\":\"\\u0000\"}", "near byte 12: a NUL character", 0},
    {"an escaped NUL in a name", "{\"\\u0000\":1}", "near byte 8: a NUL character in a member's name", 0},
    {"a raw NUL", "{\"a\":\"\0\"}", "at byte 6: a NUL character", 9},
    {"a NUL behind the value", "{}\0", "at byte 2: a NUL character", 3},
    {"a NUL behind a number", "{\"a\":1\0}", "at byte 6: a NUL character", 8},
    {"a NUL behind a number and nothing else", "2\0", "at byte 1: a NUL character", 2},
    {"a NUL behind a word", "[true\0,1]", "at byte 5: a NUL character", 9},
    {"bad UTF-8", "{\"a\":\"\xff\"}", "at byte 6: not UTF-8", 0},
    {"an overlong form", "{\"a\":\"\xc0\xaf\"}", "at byte 6: not UTF-8", 0},
    {"a surrogate in UTF-8", "{\"a\":\"\xed\xa0\x80\"}", "at byte 6: not UTF-8", 0},
    {"a lone surrogate", "{\"a\":\"\\ud800\"}", "near byte 12: not JSON", 0},
    {"a byte order mark", "\xEF\xBB\xBF{}", "at byte 0: a byte order mark", 0},
    {"64 levels", SIXTY_FOUR("[") SIXTY_FOUR("]"), NULL, 0},
    {"65 levels", "[" SIXTY_FOUR("[") SIXTY_FOUR("]") "]", "at byte 64: nested too deep", 0},
    {"brackets in strings", "[\"" SIXTY_FOUR("[") "\\\"" SIXTY_FOUR("[") "\\\\\"]", NULL, 0},
    {"the greatest int64", "9223372036854775807", NULL, 0},
    {"an integer beyond int64", "{\"a\":9223372036854775808}", "near byte 23: a number out of range", 0},
    {"1e400", "[1e400]", "near byte 5: a number out of range", 0},
    {"a comma too many", "[1,]", "near byte 3: not JSON", 0},
    {"a leading zero", "[01]", "near byte 1: not JSON", 0},
    {"a comment", "[1] // x", "near byte 4: something follows the value", 0},
    {"NaN", "[NaN]", "near byte 3: not JSON", 0},
    {"a control character in a string", "[\"\n\"]", "near byte 1: not JSON", 0},
    {"two values", "{}{}", "near byte 2: something follows the value", 0},
    {"no end", "{\"a\":[1,2", "near byte 8: the text ends too early", 0},
    {"single quotes", "{'a':1}", "near byte 1: not JSON", 0},
};

static void test_check(void **state)
{
    const struct check_case *mine = *state;
    struct wire_value value;
    struct err err = ERR_INIT;
    size_t size = mine->size > 0 ? mine->size : strlen(mine->text);
    bool ok = wire_json_check(mine->text, size, &value, &err);
    if (mine->expected == NULL) {
        assert_true(ok);
        return;
    }
    assert_false(ok);
    assert_int_equal(err.kind, ERR_PERMANENT);
    assert_string_equal(err.code, "body_invalid");
    assert_string_equal(err.text, mine->expected);
}

static struct wire_value parse(const char *text)
{
    struct wire_value value;
    struct err err = ERR_INIT;
    if (!wire_json_check(text, strlen(text), &value, &err)) {
        fail_msg("%s: %s", text, err.text);
    }
    return value;
}

struct path_case {
    const char *name; /* The path. */
    enum wire_kind kind;
    const char *expected;
};

static const char path_text[] =
    " { \"a\" : { \"b\" : [ 10 , { \"c\" : \"x\\n\\\"\\u00e9\\ud83d\\ude00\" } , null ] , \"big\" : "
    "123456789012345678.90 } ,\n \"k\\u0065y\" : [true,\"]\"] , \"\" : 1, \"n\" : null, \"e\":{ \"z\" : [ ] } } ";

static const struct path_case path_cases[] = {
    {"a.b.0", WIRE_NUMBER, "10"},
    {"a.b.1.c", WIRE_STRING, "x\n\"\xc3\xa9\xf0\x9f\x98\x80"},
    {"a.b.2", WIRE_NULL, "null"},
    {"a.b.3", WIRE_ABSENT, ""},
    {"a.b.x", WIRE_ABSENT, ""},
    {"a.b.", WIRE_ABSENT, ""},
    {"a.big", WIRE_NUMBER, "123456789012345678.90"},
    {"key.0", WIRE_BOOL, "true"},
    {"key.1", WIRE_STRING, "]"},
    {"key", WIRE_ARRAY, "[true,\"]\"]"},
    {"e", WIRE_OBJECT, "{ \"z\" : [ ] }"},
    {"n", WIRE_NULL, "null"},
    {"n.x", WIRE_ABSENT, ""},
    {"missing", WIRE_ABSENT, ""},
    {"a.b.0.c", WIRE_ABSENT, ""},
    {"", WIRE_NUMBER, "1"},
};

static void test_path(void **state)
{
    const struct path_case *mine = *state;
    struct wire_value root = parse(path_text);
    struct wire_value found = wire_json_at(&root, mine->name);
    assert_int_equal(found.kind, mine->kind);
    struct buf text;
    buf_init(&text, 1000);
    wire_json_text(&found, &text);
    assert_string_equal(text.data, mine->expected);
    buf_done(&text);
}

struct int_case {
    const char *name;
    bool is_int;
    int64_t expected;
};

static const struct int_case int_cases[] = {
    {"0", true, 0},
    {"-9223372036854775808", true, INT64_MIN},
    {"9223372036854775807", true, INT64_MAX},
    {"1.0", false, 0},
    {"1e0", false, 0},
    {"\"1\"", false, 0},
    {"true", false, 0},
};

static void test_int(void **state)
{
    const struct int_case *mine = *state;
    struct wire_value value = parse(mine->name);
    int64_t number = 0;
    assert_int_equal(wire_json_int64(&value, &number), mine->is_int);
    assert_true(number == mine->expected);
}

/* Touches every value below this one. */
static size_t walk(const struct wire_value *value)
{
    size_t count = 1;
    struct wire_value name;
    struct wire_value item;
    struct wire_iterator iterator = wire_json_begin(value);
    while (wire_json_next(&iterator, &name, &item)) {
        struct buf text;
        buf_init(&text, name.size + 1);
        wire_json_text(&name, &text);
        assert_false(text.has_overflowed);
        buf_done(&text);
        count += walk(&item);
    }
    return count;
}

/* What jansson accepts, the scanner must be able to walk, to its end and inside its bounds; and a text's canonical form
 * is JSON and its own canonical form. Texts are mutated by a generator with a fixed seed. */
static void test_wire_json_walks_whatever_was_accepted(void **state)
{
    (void)state;
    static const char seed_text[] = "{\"a\":[1,-2.5e+3,{\"b\":\"x\\n\\u00e9\\ud83d\\ude00\\\"\"}],\"c\":{},\"d\":[true,"
                                    "false,null,[]],\"\":\"\\\\\"}";
    static const char alphabet[] = "{}[]\",:\\u0eE+-.1tn /\n\xc3\xa9";
    uint32_t random = 12345;
    size_t accepted_count = 0;
    for (int round = 0; round < 20000; round++) {
        char text[sizeof seed_text];
        memcpy(text, seed_text, sizeof text);
        for (uint32_t change = 0; change <= (uint32_t)round % 3; change++) {
            random = random * 1664525 + 1013904223;
            text[(random >> 8) % (sizeof text - 1)] = alphabet[(random >> 24) % (sizeof alphabet - 1)];
        }
        char *exact = malloc(sizeof text - 1); /* So that a sanitizer sees a step too far. */
        assert_non_null(exact);
        memcpy(exact, text, sizeof text - 1);
        struct wire_value value;
        struct err err = ERR_INIT;
        if (wire_json_check(exact, sizeof text - 1, &value, &err)) {
            accepted_count++;
            struct buf once;
            struct buf twice;
            buf_init(&once, 10000);
            buf_init(&twice, 10000);
            struct wire_value again;
            wire_canonical_append(&value, &once);
            assert_true(wire_json_check(once.data, once.size, &again, &err));
            assert_int_equal(walk(&value), walk(&again));
            wire_canonical_append(&again, &twice);
            assert_string_equal(once.data, twice.data);
            buf_done(&once);
            buf_done(&twice);
        }
        free(exact);
    }
    assert_in_range(accepted_count, 500, 19500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wire_json_walks_whatever_was_accepted)};
    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_CASES("wire_json_check", test_check, check_cases) +
           RUN_CASES("wire_json_at", test_path, path_cases) + RUN_CASES("wire_json_int64", test_int, int_cases);
}
