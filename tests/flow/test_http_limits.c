/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of the server: what is over them is told so once, and closed.
 */
#include "http_fixture.h"

static void test_http_a_request_line_over_the_limit_is_414(void **state)
{
    (void)state;
    char answer[ANSWER_SIZE];
    char text[5000];
    bool was_closed = false;
    int size = snprintf(text, sizeof text, "GET /echo/%04200d HTTP/1.1\r\n" HOST "\r\n", 0);
    int fd = dial();
    put(fd, text, (size_t)size);
    collect(fd, answer, 900, &was_closed);
    close(fd);
    assert_int_equal(status_of(answer), 414);
    assert_non_null(strstr(answer, "\"code\":\"target_too_long\""));
    assert_true(was_closed);
}

/* A second address of this machine is another peer. */
static void test_http_connections_of_one_peer_over_its_limit_are_503(void **state)
{
    (void)state;
    char answer[ANSWER_SIZE];
    bool was_closed = false;
    int own[PEER_CONNECTIONS_MAX];
    static const char text[] = "GET /echo/a HTTP/1.1\r\n" HOST "\r\n";
    for (size_t i = 0; i < PEER_CONNECTIONS_MAX; i++) {
        own[i] = dial_from("127.0.0.2");
        put(own[i], text, sizeof text - 1);
        collect(own[i], answer, 30, &was_closed);
        assert_int_equal(status_of(answer), 200);
    }
    int fd = dial_from("127.0.0.2");
    collect(fd, answer, 900, &was_closed);
    close(fd);
    assert_int_equal(status_of(answer), 503);
    assert_true(was_closed && strstr(answer, "from this address") != NULL);
    fd = dial_from("127.0.0.3");
    put(fd, text, sizeof text - 1);
    collect(fd, answer, 30, &was_closed);
    close(fd);
    assert_int_equal(status_of(answer), 200);
    for (size_t i = 0; i < PEER_CONNECTIONS_MAX; i++) {
        close(own[i]);
    }
    for (int tries = 0; tries < 100; tries++) { /* Until the server has seen them go. */
        fd = dial_from("127.0.0.2");
        put(fd, text, sizeof text - 1);
        collect(fd, answer, 30, &was_closed);
        close(fd);
        if (status_of(answer) == 200) {
            return;
        }
    }
    fail_msg("its connections are still counted");
}

static void test_http_connections_over_the_limit_are_503(void **state)
{
    (void)state;
    char answer[ANSWER_SIZE];
    bool was_closed = false;
    int fds[41];
    for (int i = 0; i < 41; i++) {
        fds[i] = dial_from(i % 2 == 0 ? "127.0.0.1" : "127.0.0.4");
    }
    collect(fds[40], answer, 200, &was_closed);
    assert_int_equal(status_of(answer), 503);
    assert_non_null(strstr(answer, "the server has as many"));
    for (int i = 0; i < 41; i++) {
        close(fds[i]);
    }
    usleep(20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http_a_request_line_over_the_limit_is_414),
        cmocka_unit_test(test_http_connections_over_the_limit_are_503),
        cmocka_unit_test(test_http_connections_of_one_peer_over_its_limit_are_503),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
