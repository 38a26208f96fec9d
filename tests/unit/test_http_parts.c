/* SPDX-License-Identifier: Apache-2.0
 *
 * The server's pure parts: routes, queries, chunks, problems, metrics.
 */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "http/http_query.h"
#include "http/metrics.h"
#include "http_private.h"

/* ---- routes ------------------------------------------------------------------------------------------------------ */

static const struct http_route routes[] = {
    {"GET", "/", 0, NULL},       {"GET", "/a", 0, NULL},
    {"POST", "/a", 0, NULL},     {"GET", "/a/{id}/b/{other}", 0, NULL},
    {"GET", "/a/{id}", 0, NULL}, {"POST", "/a/run", 0, NULL},
};
#define ROUTE_COUNT (sizeof routes / sizeof *routes)

static void assert_route(const char *method, const char *path, enum http_match match, size_t index, const char *allow)
{
    char copy[100];
    char found_allow[HTTP_ALLOW_SIZE];
    const char *params[HTTP_PARAM_COUNT_MAX] = {NULL};
    size_t found = HTTP_ROUTE_NONE;
    snprintf(copy, sizeof copy, "%s", path);
    assert_int_equal(http_route_find(routes, ROUTE_COUNT, method, copy, &found, params, found_allow), match);
    if (match == HTTP_MATCH_FOUND) {
        assert_int_equal(found, index);
    } else {
        assert_string_equal(found_allow, allow);
    }
}

static void test_http_route_finds(void **state)
{
    (void)state;
    assert_route("GET", "/", HTTP_MATCH_FOUND, 0, "");
    assert_route("POST", "/a", HTTP_MATCH_FOUND, 2, "");
    assert_route("PUT", "/a", HTTP_MATCH_NO_METHOD, 0, "GET, HEAD, POST");
    assert_route("POST", "/a/run", HTTP_MATCH_FOUND, 5, "");
    assert_route("GET", "/a/run", HTTP_MATCH_NO_METHOD, 0, "POST");
    assert_route("GET", "/a/runs", HTTP_MATCH_FOUND, 4, "");
    assert_route("GET", "/a/", HTTP_MATCH_NO_PATH, 0, "");
    assert_route("GET", "/a/1/b/", HTTP_MATCH_NO_PATH, 0, "");
    assert_route("GET", "/a/1/b/2/3", HTTP_MATCH_NO_PATH, 0, "");
    assert_route("GET", "//", HTTP_MATCH_NO_PATH, 0, "");
    assert_route("GET", "/A", HTTP_MATCH_NO_PATH, 0, "");
    char path[] = "/a/x%20y/b/z";
    char allow[HTTP_ALLOW_SIZE];
    const char *params[HTTP_PARAM_COUNT_MAX] = {NULL};
    size_t index = 0;
    assert_int_equal(http_route_find(routes, ROUTE_COUNT, "GET", path, &index, params, allow), HTTP_MATCH_FOUND);
    assert_string_equal(params[0], "x%20y");
    assert_string_equal(params[1], "z");
}

/* ---- queries ----------------------------------------------------------------------------------------------------- */

struct query_case {
    const char *name;
    const char *query;
    const char *value; /* Of "name"; NULL: the query is refused. "-": it is absent. */
};

static const struct query_case query_cases[] = {
    {"none", NULL, "-"},
    {"empty", "", "-"},
    {"plain", "name=a", "a"},
    {"decoded", "x=1&name=%C3%A4+b%2B", "\xc3\xa4 b+"},
    {"without a value", "name", ""},
    {"an equals sign in the value", "name=a=b", "a=b"},
    {"an escaped name", "n%61me=a", "a"},
    {"unknown", "other=1", NULL},
    {"twice", "name=a&name=a", NULL},
    {"a broken escape", "name=%4", NULL},
    {"an escape of no digits", "name=%zz", NULL},
    {"NUL", "name=%00", NULL},
    {"a newline", "name=%0a", NULL},
    {"bad UTF-8", "name=%ff", NULL},
    {"an empty pair", "name=a&&x=1", NULL},
};

static void test_http_query(void **state)
{
    static const char *const allowed[] = {"name", "x", NULL};
    const struct query_case *row = *state;
    struct http_query query;
    struct err err = ERR_INIT;
    bool is_good = http_query_parse(row->query, allowed, &query, &err);
    assert_int_equal(is_good, row->value != NULL);
    if (is_good) {
        const char *value = http_query_value(&query, "name");
        assert_string_equal(value == NULL ? "-" : value, row->value);
    } else {
        assert_string_equal(err.code, "query_invalid");
    }
}

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

struct chunk_case {
    const char *name;
    const char *bytes;
    const char *body; /* NULL: refused. */
};

static const struct chunk_case chunk_cases[] = {
    {"nothing", "0\r\n\r\n", ""},
    {"one", "3\r\nabc\r\n0\r\n\r\n", "abc"},
    {"two", "1\r\na\r\n2;x=y\r\nbc\r\n0\r\n\r\n", "abc"},
    {"upper and lower case", "A\r\n0123456789\r\n0a\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789"},
    {"zeros before the end", "000\r\n\r\n", ""},
    {"longer than its size", "3\r\nabcd\r\n0\r\n\r\n", NULL},
    {"shorter than its size", "5\r\nabc\r\n0\r\n\r\n", NULL},
    {"no size", "\r\nabc\r\n0\r\n\r\n", NULL},
    {"a sign", "+3\r\nabc\r\n0\r\n\r\n", NULL},
    {"a prefix", "0x3\r\nabc\r\n0\r\n\r\n", NULL},
    {"a blank", "3 \r\nabc\r\n0\r\n\r\n", NULL},
    {"a bare LF", "3\nabc\n0\n\n", NULL},
    {"too many digits", "000000003\r\nabc\r\n0\r\n\r\n", NULL},
    {"a control byte in an extension", "3;\x01\r\nabc\r\n0\r\n\r\n", NULL},
    {"a trailer", "0\r\nX: y\r\n\r\n", NULL},
};

/* Fed in pieces of every size, so that no boundary matters. */
static void test_http_chunk(void **state)
{
    const struct chunk_case *row = *state;
    size_t size = strlen(row->bytes);
    for (size_t piece = 1; piece <= size; piece++) {
        struct http_chunk chunk = {.place = HTTP_CHUNK_SIZE};
        enum http_chunk_step step = HTTP_CHUNK_STEP_MORE;
        char body[100] = "";
        for (size_t at = 0; at < size && step == HTTP_CHUNK_STEP_MORE;) {
            size_t given = size - at < piece ? size - at : piece;
            size_t taken = 0;
            size_t data_size = 0;
            step = http_chunk_next(&chunk, row->bytes + at, given, &taken, &data_size);
            strncat(body, row->bytes + at + taken, data_size);
            at += taken + data_size;
        }
        assert_int_equal(step, row->body == NULL ? HTTP_CHUNK_STEP_BROKEN : HTTP_CHUNK_STEP_DONE);
        if (row->body != NULL) {
            assert_string_equal(body, row->body);
        }
    }
}

/* ---- problems and metrics ---------------------------------------------------------------------------------------- */

static void test_http_problem_is_json_whatever_it_quotes(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf, 4096);
    http_problem_write(&buf, &http_problem_busy, "urn:x", "a \"quote\", a \\, a \n and \xff", ",\"more\":[1]");
    assert_string_equal(
        buf.data,
        "{\"type\":\"urn:onceward:problem:busy\",\"title\":\"Too much is in flight\","
        "\"status\":503,\"detail\":\"a \\\"quote\\\", a \\\\, a \\n and \xEF\xBF\xBD\",\"instance\":\"urn:x\","
        "\"code\":\"busy\",\"retry\":{\"same_key\":true,\"new_key\":false,\"after_seconds\":1},\"more\":[1]}\n");
    buf_done(&buf);
}

static void test_metrics_text_is_sorted_and_escaped(void **state)
{
    (void)state;
    static const double bounds[] = {1, 10};
    const char *const labels[] = {"what", "a \"b\"\\\n", NULL};
    struct err err = ERR_INIT;
    struct metrics *metrics = metrics_new(&err);
    metric_set(metrics_gauge(metrics, "z", "Last.", NULL), 1.5);
    struct metric *counter = metrics_counter(metrics, "a_total", "First\nline.", labels);
    metric_add(counter, 2);
    assert_ptr_equal(counter, metrics_counter(metrics, "a_total", "First\nline.", labels));
    struct metric *histogram = metrics_histogram(metrics, "m", "Middle.", NULL, bounds, 2);
    metric_observe(histogram, 1);
    metric_observe(histogram, 5);
    metric_observe(histogram, 50);
    size_t size = 0;
    char *text = metrics_text(metrics, &size);
    assert_string_equal(text,
                        "# HELP a_total First\\nline.\n# TYPE a_total counter\na_total{what=\"a \\\"b\\\"\\\\\\n\"} 2\n"
                        "# HELP m Middle.\n# TYPE m histogram\nm_bucket{le=\"1\"} 1\nm_bucket{le=\"10\"} 2\n"
                        "m_bucket{le=\"+Inf\"} 3\nm_sum 56\nm_count 3\n"
                        "# HELP z Last.\n# TYPE z gauge\nz 1.5\n");
    assert_int_equal(size, strlen(text));
    free(text);
    metrics_free(&metrics);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http_route_finds),
        cmocka_unit_test(test_http_problem_is_json_whatever_it_quotes),
        cmocka_unit_test(test_metrics_text_is_sorted_and_escaped),
    };
    int failures = RUN_CASES("http_query", test_http_query, query_cases);
    failures += RUN_CASES("http_chunk", test_http_chunk, chunk_cases);
    return failures + cmocka_run_group_tests_name("http_parts", tests, NULL, NULL);
}
