/* SPDX-License-Identifier: Apache-2.0
 *
 * The form of a key, and which calls have one fingerprint.
 */
#include "cmocka_all.h"

#include <string.h>

#include "digest/sha256.h"
#include "http/http_server.h"
#include "producer_key.h"

/* ---- form -------------------------------------------------------------------------------------------------------- */

#define TEXT_50 "0123456789abcdefghijklmnopqrstuvwxyz0123456789ABCD"
#define TEXT_250 TEXT_50 TEXT_50 TEXT_50 TEXT_50 TEXT_50

struct form_case {
    const char *name;
    const char *given;
    const char *text; /* NULL: refused. */
};

static const struct form_case forms[] = {
    {"bare", "abc", "abc"},
    {"in quotation marks", "\"abc\"", "abc"},
    {"a UUID", "8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324"},
    {"marks that are no separators", "a/b:c=d?e&f%20{g}", "a/b:c=d?e&f%20{g}"},
    {"escapes", "\"a\\\"b\\\\c\"", "a\"b\\c"},
    {"a blank, a comma and a semicolon in quotation marks", "\"a, b; c\"", "a, b; c"},
    {"one byte", "x", "x"},
    {"255 bytes", TEXT_250 "12345", TEXT_250 "12345"},
    {"255 bytes in quotation marks", "\"" TEXT_250 "12345\"", TEXT_250 "12345"},
    {"256 bytes", TEXT_250 "123456", NULL},
    {"256 bytes in quotation marks", "\"" TEXT_250 "123456\"", NULL},
    {"empty", "", NULL},
    {"empty in quotation marks", "\"\"", NULL},
    {"one quotation mark", "\"", NULL},
    {"no closing quotation mark", "\"abc", NULL},
    {"something behind it", "\"abc\"x", NULL},
    {"a parameter", "\"abc\";a=1", NULL},
    {"an unknown escape", "\"a\\nb\"", NULL},
    {"an escape at the end", "\"a\\", NULL},
    {"a blank", "a b", NULL},
    {"a list", "a,b", NULL},
    {"a bare parameter", "a;b", NULL},
    {"a quotation mark inside", "a\"b", NULL},
    {"a backslash", "a\\b", NULL},
    {"a tab", "a\tb", NULL},
    {"a tab in quotation marks", "\"a\tb\"", NULL},
    {"an 8-bit byte", "a\xe4", NULL},
    {"an 8-bit byte in quotation marks", "\"\xc3\xa4\"", NULL},
    {"DEL", "\"a\x7f\"", NULL},
};

static const struct form_case pieces[] = {
    {"plain", "abc", "abc"},
    {"escapes", "a%2Fb%20%22c%22", "a/b \"c\""},
    {"255 bytes", TEXT_250 "12345", TEXT_250 "12345"},
    {"256 bytes", TEXT_250 "123456", NULL},
    {"a NUL", "a%00", NULL},
    {"a broken escape", "a%zz", NULL},
    {"an escape that is cut off", "a%4", NULL},
    {"an 8-bit byte", "%c3%a4", NULL},
    {"a line break", "a%0a", NULL},
};

static void check_form(bool is_good, const struct form_case *mine, const char *text, const struct err *err)
{
    if (mine->text == NULL) {
        assert_false(is_good);
        assert_string_equal(err->code, "idempotency_key_invalid");
        assert_int_equal(err->kind, ERR_PERMANENT);
    } else {
        assert_true(is_good);
        assert_string_equal(text, mine->text);
    }
}

static void test_form(void **state)
{
    const struct form_case *mine = *state;
    char text[PRODUCER_KEY_SIZE];
    struct err err = ERR_INIT;
    check_form(producer_key_parse(mine->given, text, &err), mine, text, &err);
}

static void test_piece(void **state)
{
    const struct form_case *mine = *state;
    char text[PRODUCER_KEY_SIZE];
    struct err err = ERR_INIT;
    check_form(producer_key_from_path(mine->given, text, &err), mine, text, &err);
}

/* ---- fingerprint ------------------------------------------------------------------------------------------------- */

struct call {
    const char *method;
    const char *path;
    const char *query;
    const char *media_type;
    const char *body;
    bool is_raw;
};

struct fingerprint_case {
    const char *name;
    struct call one;
    struct call other;
    const char *differences; /* NULL: they are the same call. */
};

#define POST "POST", "/submissions", NULL, "application/json"
#define JSON(text)                                                                                                     \
    {                                                                                                                  \
        POST, text, false                                                                                              \
    }
#define DIFFERS(names, members) ",\"differs\":[" names "],\"members\":[" members "]"
#define DATA_DIFFERS DIFFERS("\"body\"", "\"/data\"")
#define DATA(one) JSON("{\"type\":\"t\",\"data\":{\"a\":" one "}}")

static const struct fingerprint_case fingerprints[] = {
    {"the same bytes", DATA("1"), DATA("1"), NULL},
    {"another order of members", JSON("{\"type\":\"t\",\"data\":{\"a\":1,\"b\":2}}"),
     JSON("{\"data\":{\"b\":2,\"a\":1},\"type\":\"t\"}"), NULL},
    {"white space", DATA("1"), JSON(" {\n\"type\" : \"t\" , \"data\":{ \"a\":\t1}} "), NULL},
    {"escapes in values and names", DATA("\"\\u00e9/\""),
     JSON("{\"t\\u0079pe\":\"\\u0074\",\"data\":{\"\\u0061\":\"\xc3\xa9\\/\"}}"), NULL},
    {"1 and 1.0", DATA("1"), DATA("1.0"), NULL},
    {"1 and 1e0", DATA("1"), DATA("1e0"), NULL},
    {"0 and -0", DATA("0"), DATA("-0"), NULL},
    {"0 and -0.00e5", DATA("0"), DATA("-0.00e5"), NULL},
    {"12e-1 and 1.2", DATA("12e-1"), DATA("1.2"), NULL},
    {"a big exponent, written in two ways", DATA("1e300"), DATA("10e299"), NULL},
    {"big exponents that differ", DATA("1e300"), DATA("1e301"), DATA_DIFFERS},
    {"small exponents that differ, both 0 as doubles", DATA("1e-400"), DATA("1e-401"), DATA_DIFFERS},
    {"decimals that are one double", DATA("0.1"), DATA("0.10000000000000000555"), DATA_DIFFERS},
    {"integers that are one double", DATA("9007199254740992"), DATA("9007199254740993"), DATA_DIFFERS},
    {"the last of many digits", DATA("0.12345678901234567890123456789"), DATA("0.12345678901234567890123456788"),
     DATA_DIFFERS},
    {"1 and -1", DATA("1"), DATA("-1"), DATA_DIFFERS},
    {"a number and its text", DATA("1"), DATA("\"1\""), DATA_DIFFERS},
    {"null and nothing", DATA("null"), JSON("{\"type\":\"t\",\"data\":{}}"), DATA_DIFFERS},
    {"the order of items", DATA("[1,2]"), DATA("[2,1]"), DATA_DIFFERS},
    {"a member that is not there", DATA("1"), JSON("{\"type\":\"t\"}"), DATA_DIFFERS},
    {"a member too many", JSON("{\"type\":\"t\"}"), DATA("1"), DATA_DIFFERS},
    {"two members", DATA("1"), JSON("{\"type\":\"u\",\"data\":{}}"), DIFFERS("\"body\"", "\"/data\",\"/type\"")},
    {"names that begin each other", JSON("{\"type\":\"t\",\"data\":{\"a\":1,\"ab\":2}}"),
     JSON("{\"type\":\"t\",\"data\":{\"ab\":1,\"a\":2}}"), DATA_DIFFERS},
    {"a value that looks like two members", JSON("{\"type\":\"t\",\"data\":{\"a\":\"1\\\",\\\"b\\\":\\\"2\"}}"),
     JSON("{\"type\":\"t\",\"data\":{\"a\":\"1\",\"b\":\"2\"}}"), DATA_DIFFERS},
    {"method",
     {"POST", "/r/1", NULL, NULL, "{}", false},
     {"PUT", "/r/1", NULL, NULL, "{}", false},
     DIFFERS("\"method\"", "")},
    {"path",
     {"POST", "/r/1", NULL, NULL, "{}", false},
     {"POST", "/r/2", NULL, NULL, "{}", false},
     DIFFERS("\"path\"", "")},
    {"a charset that says the same",
     DATA("1"),
     {"POST", "/submissions", NULL, "application/json; charset=utf-8", "{\"type\":\"t\",\"data\":{\"a\":1}}", false},
     NULL},
    {"the order of parameters",
     {"POST", "/d", "name=a&document_id=b", "text/plain", "x", true},
     {"POST", "/d", "document_id=b&name=%61", "text/plain", "x", true},
     NULL},
    {"another parameter",
     {"POST", "/d", "name=a", "text/plain", "x", true},
     {"POST", "/d", "name=b", "text/plain", "x", true},
     DIFFERS("\"query\"", "")},
    {"a value that looks like two parameters",
     {"POST", "/d", "name=a&document_id=b", "text/plain", "x", true},
     {"POST", "/d", "name=a%26document_id%3Db", "text/plain", "x", true},
     DIFFERS("\"query\"", "")},
    {"media type",
     {"POST", "/d", "name=a", "text/plain", "x", true},
     {"POST", "/d", "name=a", "text/html", "x", true},
     DIFFERS("\"media_type\"", "")},
    {"no media type and the default",
     {"POST", "/d", "name=a", NULL, "x", true},
     {"POST", "/d", "name=a", "application/octet-stream", "x", true},
     NULL},
    {"raw bytes are compared as they are",
     {"POST", "/d", "name=a", "application/json", "{\"a\":1}", true},
     {"POST", "/d", "name=a", "application/json", "{\"a\":1.0}", true},
     DIFFERS("\"body\"", "")},
};

static void take_fingerprint(const struct call *call, struct producer_key *key)
{
    const struct http_header header = {"content-type", call->media_type};
    const struct http_request request = {.method = call->method,
                                         .path = call->path,
                                         .query = call->query,
                                         .headers = &header,
                                         .header_count = call->media_type == NULL ? 0 : 1,
                                         .body = call->body,
                                         .body_size = strlen(call->body)};
    struct wire_value body;
    struct err err = ERR_INIT;
    if (!call->is_raw && !wire_json_check(call->body, strlen(call->body), &body, &err)) {
        fail_msg("%s: %s", call->body, err.text);
    }
    assert_true(producer_key_fingerprint(key, &request, call->is_raw ? NULL : &body, &err));
}

static void test_fingerprint(void **state)
{
    const struct fingerprint_case *mine = *state;
    struct producer_key one = {.text = ""};
    struct producer_key other = {.text = ""};
    take_fingerprint(&mine->one, &one);
    take_fingerprint(&mine->other, &other);
    bool is_same = memcmp(one.fingerprint, other.fingerprint, sizeof one.fingerprint) == 0;
    assert_int_equal(is_same, mine->differences == NULL);
    struct buf buf;
    buf_init(&buf, 4096);
    producer_key_write_differences(&buf, one.components, other.components);
    assert_string_equal(buf.data, mine->differences == NULL ? DIFFERS("", "") : mine->differences);
    buf_done(&buf);
}

/* Stored fingerprints hang on it. */
static void test_fingerprint_never_changes(void **state)
{
    (void)state;
    static const struct call call = DATA("[1.50,\"x\"]");
    static const char hash[] = "07bb12be5faf07f9204b0e8b8e67d8ee225fd4cd51674c3ceba46aa9a85a0933";
    struct producer_key key = {.text = ""};
    take_fingerprint(&call, &key);
    assert_string_equal(
        key.components,
        "method:9aee6b1bcdf617d8 path:ef4d8b4e4f155f39 query:e3b0c44298fc1c14 media_type:bacb769b46f6d169"
        " body:0b7f5bddab3b39ce /data:4c39f0018b314189 /type:8ca5d81566f88bad");
    char text[SHA256_TEXT_SIZE];
    sha256_to_text(key.fingerprint, text);
    assert_string_equal(text, hash);
}

/* A member twice never comes so far: which of the two it would mean is nobody's guess. */
static void test_duplicate_members_have_no_fingerprint(void **state)
{
    (void)state;
    static const char text[] = "{\"type\":\"t\",\"data\":{\"a\":1,\"\\u0061\":1}}";
    struct wire_value body;
    struct err err = ERR_INIT;
    assert_false(wire_json_check(text, sizeof text - 1, &body, &err));
    assert_string_equal(err.code, "body_invalid");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fingerprint_never_changes),
                                       cmocka_unit_test(test_duplicate_members_have_no_fingerprint)};
    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_CASES("form", test_form, forms) +
           RUN_CASES("piece", test_piece, pieces) + RUN_CASES("fingerprint", test_fingerprint, fingerprints);
}
