/* SPDX-License-Identifier: Apache-2.0
 *
 * Raw bytes against the real server: what is in doubt is refused once and the
 * connection closed, what is sound is answered in order.
 */
#include "http_fixture.h"

static size_t count_of(const char *text, const char *piece)
{
    size_t count = 0;
    for (const char *at = strstr(text, piece); at != NULL; at = strstr(at + 1, piece)) {
        count++;
    }
    return count;
}

/* ---- the table ---- */

struct probe {
    const char *name;
    const char *bytes;
    size_t size; /* 0: strlen. */
    int status;
    const char *has; /* In the answer. */
    bool stays_open;
};

#define RAW(text) text, sizeof text - 1
#define MALFORMED 400, "\"code\":\"request_malformed\"", false

static const struct probe probes[] = {
    {"a plain POST is served", RAW("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc"), 200, "POST||abc",
     true},
    {"a chunked POST is served",
     RAW("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), 200, "POST||abc",
     true},
    {"a chunk extension is ignored",
     RAW("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n"), 200,
     "POST||abc", true},
    {"a POST without a body is served", RAW("POST /echo HTTP/1.1\r\n" HOST "\r\n"), 200, "POST||", true},
    {"PUT takes its parameter", RAW("PUT /echo/x%20y?q=1 HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n"), 200,
     "PUT|x%20y|", true},
    {"empty lines before a request are skipped", RAW("\r\n\r\nGET /echo/a HTTP/1.1\r\n" HOST "\r\n"), 200, "GET|a|",
     true},
    {"a wish to upgrade is ignored",
     RAW("GET /echo/a HTTP/1.1\r\n" HOST
         "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n"),
     200, "GET|a|", true},
    {"HTTP/1.0 is answered and closed", RAW("GET /echo/a HTTP/1.0\r\n\r\n"), 200, "Connection: close", false},
    {"Connection: close is obeyed", RAW("GET /echo/a HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"), 200,
     "Connection: close", false},
    {"an 8-bit header value passes", RAW("GET /echo/a HTTP/1.1\r\n" HOST "X-Name: \xc3\xa4\r\n\r\n"), 200, "GET|a|",
     true},
    {"no route is 404 and the connection goes on", RAW("GET /nothing HTTP/1.1\r\n" HOST "\r\n"), 404,
     "\"code\":\"not_found\"", true},
    {"a trailing slash is another path", RAW("GET /echo/a/ HTTP/1.1\r\n" HOST "\r\n"), 404, "\"code\":\"not_found\"",
     true},
    {"an empty parameter is no match", RAW("GET /echo/ HTTP/1.1\r\n" HOST "\r\n"), 404, "\"code\":\"not_found\"", true},
    {"no route and a body closes", RAW("POST /nothing HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc"), 404,
     "Connection: close", false},
    {"another method is 405 with Allow", RAW("DELETE /echo/a HTTP/1.1\r\n" HOST "\r\n"), 405,
     "Allow: PUT, GET, HEAD\r\n", true},
    {"OPTIONS is 405 with Allow", RAW("OPTIONS /echo HTTP/1.1\r\n" HOST "\r\n"), 405, "Allow: POST\r\n", true},
    {"a body where none is taken", RAW("GET /echo/a HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx"), 413,
     "body_not_expected", false},
    {"Content-Length over the limit", RAW("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1001\r\n\r\n"), 413,
     "body_too_large", false},
    {"Content-Length of 19 digits", RAW("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 9223372036854775807\r\n\r\n"),
     413, "body_too_large", false},
    {"over the limit with Expect: 413 and no 100",
     RAW("POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 1001\r\n\r\n"), 413, "body_too_large",
     false},
    {"chunks over the limit", RAW("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3e8\r\n"), 408,
     "request_timeout", false},
    {"a chunk that announces more than the limit",
     RAW("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3e9\r\n"), 413, "body_too_large", false},
    {"another expectation", RAW("POST /echo HTTP/1.1\r\n" HOST "Expect: miracles\r\nContent-Length: 1\r\n\r\n"), 417,
     "expectation_failed", false},
    {"two Content-Lengths", RAW("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc"),
     MALFORMED},
    {"two equal Content-Lengths",
     RAW("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"), MALFORMED},
    {"a list of Content-Lengths", RAW("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3, 3\r\n\r\nabc"), MALFORMED},
    {"Content-Length with Transfer-Encoding",
     RAW("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), MALFORMED},
    {"Transfer-Encoding with Content-Length",
     RAW("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"), MALFORMED},
    {"a signed Content-Length", RAW("POST /echo HTTP/1.1\r\n" HOST "Content-Length: +7\r\n\r\nabc"), MALFORMED},
    {"a negative Content-Length", RAW("POST /echo HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n"), MALFORMED},
    {"a Content-Length of two numbers", RAW("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 7 7\r\n\r\nabc"),
     MALFORMED},
    {"an empty Content-Length", RAW("POST /echo HTTP/1.1\r\n" HOST "Content-Length: \r\n\r\nabc"), MALFORMED},
    {"a Content-Length that overflows",
     RAW("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999999\r\n\r\n"), MALFORMED},
    {"a hexadecimal Content-Length", RAW("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 0x3\r\n\r\nabc"), MALFORMED},
    {"an unknown coding", RAW("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n"), MALFORMED},
    {"a coding before chunked", RAW("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
     MALFORMED},
    {"chunked twice", RAW("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
     MALFORMED},
    {"two Transfer-Encodings",
     RAW("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"),
     MALFORMED},
    {"chunked in HTTP/1.0", RAW("POST /echo HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
     MALFORMED},
    {"a chunk size that is no number",
     RAW("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n"), MALFORMED},
    {"a chunk size that overflows",
     RAW("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n"), MALFORMED},
    {"a chunk longer than its size",
     RAW("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n"), MALFORMED},
    {"a Content-Length in a trailer",
     RAW("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n"), MALFORMED},
    {"any trailer", RAW("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n"),
     MALFORMED},
    {"no Host", RAW("GET /echo/a HTTP/1.1\r\n\r\n"), MALFORMED},
    {"two Hosts", RAW("GET /echo/a HTTP/1.1\r\n" HOST HOST "\r\n"), MALFORMED},
    {"a Host with a path", RAW("GET /echo/a HTTP/1.1\r\nHost: a/b\r\n\r\n"), MALFORMED},
    {"a Host with a user", RAW("GET /echo/a HTTP/1.1\r\nHost: u@h\r\n\r\n"), MALFORMED},
    {"a blank before the colon", RAW("GET /echo/a HTTP/1.1\r\n" HOST "X-Thing : 1\r\n\r\n"), MALFORMED},
    {"a blank before the colon of Content-Length", RAW("POST /echo HTTP/1.1\r\n" HOST "Content-Length : 3\r\n\r\nabc"),
     MALFORMED},
    {"an empty header name", RAW("GET /echo/a HTTP/1.1\r\n" HOST ": 1\r\n\r\n"), MALFORMED},
    {"a header without a colon", RAW("GET /echo/a HTTP/1.1\r\n" HOST "nothing\r\n\r\n"), MALFORMED},
    {"a header name that is no token", RAW("GET /echo/a HTTP/1.1\r\n" HOST "X(y): 1\r\n\r\n"), MALFORMED},
    {"an 8-bit header name", RAW("GET /echo/a HTTP/1.1\r\n" HOST "X\xe4: 1\r\n\r\n"), MALFORMED},
    {"a folded line", RAW("GET /echo/a HTTP/1.1\r\n" HOST "X: 1\r\n  2\r\n\r\n"), MALFORMED},
    {"a fold before the first header", RAW("GET /echo/a HTTP/1.1\r\n X: 1\r\n" HOST "\r\n"), MALFORMED},
    {"NUL in a value", RAW("GET /echo/a HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n"), MALFORMED},
    {"NUL in the path", RAW("GET /echo/a\0b HTTP/1.1\r\n" HOST "\r\n"), MALFORMED},
    {"a control byte in a value", RAW("GET /echo/a HTTP/1.1\r\n" HOST "X: a\x01\r\n\r\n"), MALFORMED},
    {"DEL in a value", RAW("GET /echo/a HTTP/1.1\r\n" HOST "X: a\x7f\r\n\r\n"), MALFORMED},
    {"a bare LF after the request line", RAW("GET /echo/a HTTP/1.1\n" HOST "\r\n"), MALFORMED},
    {"bare LFs throughout", RAW("GET /echo/a HTTP/1.1\nHost: a\n\n"), MALFORMED},
    {"a bare CR in a value", RAW("GET /echo/a HTTP/1.1\r\n" HOST "X: a\rb\r\n\r\n"), MALFORMED},
    {"an 8-bit byte in the path", RAW("GET /echo/\xe4 HTTP/1.1\r\n" HOST "\r\n"), MALFORMED},
    {"a fragment in the target", RAW("GET /echo/a#b HTTP/1.1\r\n" HOST "\r\n"), MALFORMED},
    {"two blanks after the method", RAW("GET  /echo/a HTTP/1.1\r\n" HOST "\r\n"), MALFORMED},
    {"a tab in the request line", RAW("GET\t/echo/a HTTP/1.1\r\n" HOST "\r\n"), MALFORMED},
    {"a blank at the end of the request line", RAW("GET /echo/a HTTP/1.1 \r\n" HOST "\r\n"), MALFORMED},
    {"HTTP/0.9", RAW("GET /echo/a\r\n\r\n"), MALFORMED},
    {"HTTP/2.0", RAW("GET /echo/a HTTP/2.0\r\n" HOST "\r\n"), MALFORMED},
    {"HTTP/1.2", RAW("GET /echo/a HTTP/1.2\r\n" HOST "\r\n"), MALFORMED},
    {"a lower-case version", RAW("GET /echo/a http/1.1\r\n" HOST "\r\n"), MALFORMED},
    {"HTTP/2 with prior knowledge", RAW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), MALFORMED},
    {"a TLS hello", RAW("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), MALFORMED},
    {"the absolute form is served", RAW("GET http://test/echo/a HTTP/1.1\r\n" HOST "\r\n"), 200, "GET|a|", true},
    {"the absolute form in upper case, from behind TLS", RAW("GET HTTPS://TEST/echo/a?b HTTP/1.1\r\n" HOST "\r\n"), 200,
     "GET|a|", true},
    {"the absolute form without a path is the root", RAW("GET http://test HTTP/1.1\r\n" HOST "\r\n"), 404,
     "\"code\":\"not_found\"", true},
    {"the absolute form with a query and no path", RAW("GET http://test?a=b HTTP/1.1\r\n" HOST "\r\n"), 404,
     "\"code\":\"not_found\"", true},
    {"the absolute form of another host than Host", RAW("GET http://other/echo/a HTTP/1.1\r\n" HOST "\r\n"), MALFORMED},
    {"the absolute form of a longer host than Host", RAW("GET http://test.b/echo/a HTTP/1.1\r\n" HOST "\r\n"),
     MALFORMED},
    {"the absolute form with a user", RAW("GET http://u@test/echo/a HTTP/1.1\r\n" HOST "\r\n"), MALFORMED},
    {"the absolute form without a host", RAW("GET http:///echo/a HTTP/1.1\r\nHost:\r\n\r\n"), MALFORMED},
    {"the absolute form of another scheme", RAW("GET ftp://test/echo/a HTTP/1.1\r\n" HOST "\r\n"), MALFORMED},
    {"the absolute form in HTTP/1.0 without Host", RAW("GET http://test/echo/a HTTP/1.0\r\n\r\n"), MALFORMED},
    {"CONNECT", RAW("CONNECT test:80 HTTP/1.1\r\n" HOST "\r\n"), MALFORMED},
    {"the asterisk form", RAW("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"), MALFORMED},
    {"a method in lower case", RAW("get /echo/a HTTP/1.1\r\n" HOST "\r\n"), 501, "method_unknown", false},
    {"a method that nobody knows", RAW("FROB /echo/a HTTP/1.1\r\n" HOST "\r\n"), 501, "method_unknown", false},
    {"a method of other protocols", RAW("PROPFIND /echo/a HTTP/1.1\r\n" HOST "\r\n"), 501, "method_unknown", false},
    {"CONNECT of a path", RAW("CONNECT /echo/a HTTP/1.1\r\n" HOST "\r\n"), 501, "method_unknown", false},
    {"TRACE is 405 with Allow", RAW("TRACE /echo/a HTTP/1.1\r\n" HOST "\r\n"), 405, "Allow: PUT, GET, HEAD\r\n", true},
    {"a method that nobody knows in a head that is in doubt", RAW("FROB /echo/a HTTP/1.1\r\n\r\n"), MALFORMED},
    {"what follows a refusal is not read", RAW("GET /echo/a HTTP/1.1\r\n\r\nGET /echo/b HTTP/1.1\r\n" HOST "\r\n"),
     MALFORMED},
    {"a head that is not finished in time", RAW("GET /echo/a HTTP/1.1\r\nHost: t"), 408, "request_timeout", false},
    {"a body that is not finished in time", RAW("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nab"), 408,
     "request_timeout", false},
};

static void test_probe(void **state)
{
    const struct probe *probe = *state;
    char answer[ANSWER_SIZE];
    bool was_closed = false;
    int fd = dial();
    put(fd, probe->bytes, probe->size);
    collect(fd, answer, probe->stays_open ? 60 : 900, &was_closed);
    close(fd);
    if (status_of(answer) != probe->status || strstr(answer, probe->has) == NULL) {
        fail_msg("%s: %s", probe->name, answer);
    }
    assert_int_equal(count_of(answer, "Date: "), 1);
    assert_int_equal(was_closed, !probe->stays_open);
    if (probe->status >= 400) {
        assert_non_null(strstr(answer, "Content-Type: application/problem+json\r\n"));
        assert_non_null(strstr(answer, "\"retry\":{"));
    }
}

/* The same bytes one by one give the same answer: no decision depends on how they arrive. */
static void test_probe_byte_by_byte(void **state)
{
    const struct probe *probe = *state;
    char answer[ANSWER_SIZE];
    bool was_closed = false;
    int fd = dial();
    for (size_t i = 0; i < probe->size; i++) {
        if (send(fd, probe->bytes + i, 1, MSG_NOSIGNAL) != 1) {
            break;
        }
    }
    collect(fd, answer, probe->stays_open ? 60 : 900, &was_closed);
    close(fd);
    assert_int_equal(status_of(answer), probe->status);
    assert_int_equal(count_of(answer, "Date: "), 1);
}

/* ---- what needs more than one write ---- */

static void test_http_pipelined_requests_are_answered_in_order(void **state)
{
    (void)state;
    char answer[ANSWER_SIZE];
    bool was_closed = false;
    int fd = dial();
    static const char text[] = "GET /late HTTP/1.1\r\n" HOST "\r\n"
                               "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\none"
                               "GET /nothing HTTP/1.1\r\n" HOST "\r\n"
                               "GET /echo/two HTTP/1.1\r\n" HOST "\r\n";
    put(fd, text, sizeof text - 1);
    collect(fd, answer, 300, &was_closed);
    close(fd);
    assert_int_equal(count_of(answer, "HTTP/1.1 "), 4);
    const char *late = strstr(answer, "late");
    const char *one = strstr(answer, "POST||one");
    const char *none = strstr(answer, "not_found");
    const char *two = strstr(answer, "GET|two|");
    assert_true(late != NULL && one > late && none > one && two > none);
}

static void test_http_pipelines_a_thousand_requests_without_deep_recursion(void **state)
{
    (void)state;
    static const char one[] = "GET /echo/a HTTP/1.1\r\n" HOST "\r\n";
    static char answer[ANSWER_SIZE * 4];
    size_t size = 0;
    int fd = dial();
    for (int i = 0; i < 1000; i++) {
        put(fd, one, sizeof one - 1);
    }
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    while (poll(&poller, 1, 300) > 0) {
        ssize_t got = recv(fd, answer + size, sizeof answer - 1 - size, 0);
        assert_true(got > 0);
        size += (size_t)got;
    }
    close(fd);
    answer[size] = '\0';
    assert_int_equal(count_of(answer, "GET|a|"), 1000);
}

static void test_http_head_answers_without_a_body(void **state)
{
    (void)state;
    char answer[ANSWER_SIZE];
    bool was_closed = false;
    int fd = dial();
    static const char text[] = "HEAD /echo/abc HTTP/1.1\r\n" HOST "\r\n";
    put(fd, text, sizeof text - 1);
    size_t size = collect(fd, answer, 60, &was_closed);
    close(fd);
    assert_int_equal(status_of(answer), 200);
    assert_non_null(strstr(answer, "Content-Length: 8\r\n"));
    assert_string_equal(answer + size - 4, "\r\n\r\n");
}

static void test_http_continue_comes_before_the_body(void **state)
{
    (void)state;
    char answer[ANSWER_SIZE];
    bool was_closed = false;
    int fd = dial();
    static const char text[] = "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    put(fd, text, sizeof text - 1);
    collect(fd, answer, 60, &was_closed);
    assert_string_equal(answer, "HTTP/1.1 100 Continue\r\n\r\n");
    put(fd, "abc", 3);
    collect(fd, answer, 60, &was_closed);
    close(fd);
    assert_non_null(strstr(answer, "POST||abc"));
}

static void test_http_a_chunked_body_over_the_limit_is_413(void **state)
{
    (void)state;
    char answer[ANSWER_SIZE];
    char text[4096];
    bool was_closed = false;
    int fd = dial();
    int size =
        snprintf(text, sizeof text,
                 "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3e8\r\n%01000d\r\n1\r\nx\r\n", 0);
    put(fd, text, (size_t)size);
    collect(fd, answer, 900, &was_closed);
    close(fd);
    assert_int_equal(status_of(answer), 413);
    assert_true(was_closed);
}

static void test_http_a_head_over_the_limit_is_431(void **state)
{
    (void)state;
    char answer[ANSWER_SIZE];
    char text[5000];
    bool was_closed = false;
    int size = snprintf(text, sizeof text, "GET /echo/a HTTP/1.1\r\n" HOST "X: %04200d\r\n\r\n", 0);
    int fd = dial();
    put(fd, text, (size_t)size);
    collect(fd, answer, 900, &was_closed);
    close(fd);
    assert_int_equal(status_of(answer), 431);
    assert_true(was_closed);
}

static void test_http_the_deadline_is_absolute_not_idle(void **state)
{
    (void)state;
    char answer[ANSWER_SIZE];
    bool was_closed = false;
    int fd = dial();
    int64_t started_ms = clock_monotonic_ms();
    static const char text[] = "GET /echo/a HTTP/1.1\r\n" HOST "X: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    for (size_t i = 0; i < sizeof text - 1 && poll(&poller, 1, 20) == 0; i++) {
        put(fd, text + i, 1);
    }
    collect(fd, answer, 900, &was_closed);
    close(fd);
    assert_int_equal(status_of(answer), 408);
    assert_true(clock_monotonic_ms() - started_ms < 1500);
}

static void test_http_bodies_over_the_budget_are_503(void **state)
{
    (void)state;
    static const char text[] = "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n";
    char answer[ANSWER_SIZE];
    bool was_closed = false;
    int fds[5];
    for (int i = 0; i < 5; i++) {
        fds[i] = dial();
        put(fds[i], text, sizeof text - 1);
        usleep(5000);
    }
    collect(fds[4], answer, 200, &was_closed);
    assert_int_equal(status_of(answer), 503);
    assert_non_null(strstr(answer, "Retry-After: 1\r\n"));
    for (int i = 0; i < 5; i++) {
        close(fds[i]);
    }
    usleep(20000);
    int fd = dial();
    put(fd, text, sizeof text - 1);
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&poller, 1, 100), 0); /* Room again: the server waits for the body. */
    close(fd);
}

static void test_http_a_client_that_left_harms_nobody(void **state)
{
    (void)state;
    static const char text[] = "GET /late HTTP/1.1\r\n" HOST "\r\n";
    for (int i = 0; i < 10; i++) {
        int fd = dial();
        put(fd, text, sizeof text - 1);
        struct linger reset = {.l_onoff = 1, .l_linger = 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        usleep(2000);
        close(fd);
    }
    usleep(150000);
}

static void test_http_stop_lets_a_request_finish(void **state)
{
    (void)state;
    static const char text[] = "GET /late HTTP/1.1\r\n" HOST "\r\n";
    char answer[ANSWER_SIZE];
    bool was_closed = false;
    int idle = dial();
    int fd = dial();
    put(fd, text, sizeof text - 1);
    usleep(200000); /* So that it has begun, on a busy machine too. */
    http_server_stop(server, 2000);
    collect(fd, answer, 50, &was_closed);
    assert_int_equal(status_of(answer), 200);
    assert_non_null(strstr(answer, "Connection: close"));
    collect(idle, answer, 50, &was_closed);
    assert_true(was_closed);
    close(fd);
    close(idle);
}

static void test_metrics_count_the_answers(void **state)
{
    (void)state;
    size_t size = 0;
    char *text = metrics_text(metrics, &size);
    assert_non_null(strstr(text, "# TYPE onceward_http_requests_total counter\n"));
    assert_non_null(strstr(text, "onceward_http_requests_total{method=\"GET\",route=\"/echo/{id}\",status=\"2xx\"} 1"));
    assert_non_null(strstr(text, "onceward_http_bodies_bytes 0\n"));
    free(text);
}

static const struct CMUnitTest others[] = {
    cmocka_unit_test(test_http_pipelined_requests_are_answered_in_order),
    cmocka_unit_test(test_http_pipelines_a_thousand_requests_without_deep_recursion),
    cmocka_unit_test(test_http_head_answers_without_a_body),
    cmocka_unit_test(test_http_continue_comes_before_the_body),
    cmocka_unit_test(test_http_a_chunked_body_over_the_limit_is_413),
    cmocka_unit_test(test_http_a_head_over_the_limit_is_431),
    cmocka_unit_test(test_http_the_deadline_is_absolute_not_idle),
    cmocka_unit_test(test_http_bodies_over_the_budget_are_503),
    cmocka_unit_test(test_http_a_client_that_left_harms_nobody),
    cmocka_unit_test(test_http_stop_lets_a_request_finish),
    cmocka_unit_test(test_metrics_count_the_answers),
};

#define PROBE_COUNT (sizeof probes / sizeof *probes)
#define OTHER_COUNT (sizeof others / sizeof *others)

int main(void)
{
    static struct CMUnitTest tests[2 * PROBE_COUNT + OTHER_COUNT];
    static char names[PROBE_COUNT][100];
    for (size_t i = 0; i < PROBE_COUNT; i++) {
        snprintf(names[i], sizeof names[i], "%s, byte by byte", probes[i].name);
        tests[2 * i] = (struct CMUnitTest){.name = probes[i].name, .test_func = test_probe};
        tests[2 * i].initial_state = (void *)(uintptr_t)&probes[i];
        tests[2 * i + 1] = (struct CMUnitTest){.name = names[i], .test_func = test_probe_byte_by_byte};
        tests[2 * i + 1].initial_state = (void *)(uintptr_t)&probes[i];
    }
    memcpy(tests + 2 * PROBE_COUNT, others, sizeof others);
    return cmocka_run_group_tests(tests, start, stop);
}
