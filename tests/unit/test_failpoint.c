/* SPDX-License-Identifier: Apache-2.0 */
#include "base/failpoint.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmocka_all.h"

static void pass(void)
{
    FAILPOINT("test.place");
}

static bool pass_fallible(void)
{
    return !FAILPOINT_FAILS("test.fallible");
}

#ifdef ONCEWARD_FAILPOINTS

struct arm_case {
    const char *name;     /* The text. */
    const char *expected; /* NULL: accepted. */
};

static const struct arm_case arm_cases[] = {
    {"test.place=kill;test.fallible=error@3;", NULL},
    {"test.place=pause:5", NULL},
    {"", NULL},
    {"test.place", "not of the form name=action"},
    {"test.plaice=kill", "this program has none of that name"},
    {"test.place=die", "no such action"},
    {"test.place=pause", "need a number"},
    {"test.place=kill:1", "need a number"},
    {"test.place=exit:x", "need a number"},
    {"test.place=kill@0", "not a number from 1 on"},
};

static void test_arm(void **state)
{
    const struct arm_case *mine = *state;
    struct err err = ERR_INIT;
    assert_int_equal(failpoint_arm(mine->name, &err), mine->expected == NULL);
    if (mine->expected != NULL) {
        assert_string_equal(err.code, "failpoint_invalid");
        assert_non_null(strstr(err.text, mine->expected));
    }
    err_clear(&err);
    assert_true(failpoint_arm(NULL, &err));
}

static int status_with(const char *text)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct err err = ERR_INIT;
        if (failpoint_arm(text, &err)) {
            pass();
        }
        _exit(77);
    }
    int status;
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    if (WIFSTOPPED(status)) {
        int stopped = status;
        kill(child, SIGCONT);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(WEXITSTATUS(status), 77);
        return stopped;
    }
    return status;
}

static void test_failpoint_kills_stops_and_exits(void **state)
{
    (void)state;
    int status = status_with("test.place=kill");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    status = status_with("test.place=stop");
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    status = status_with("test.place=exit:3");
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    status = status_with("test.place=kill@2");
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 77);
}

static void test_failpoint_fails_at_the_passage_that_was_named(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_true(pass_fallible());
    assert_true(failpoint_arm("test.fallible=error@2", &err));
    assert_true(pass_fallible());
    assert_false(pass_fallible());
    assert_true(pass_fallible());
    assert_true(failpoint_arm("test.fallible=error", &err));
    assert_false(pass_fallible());
    assert_false(pass_fallible());
    assert_true(failpoint_arm("", &err));
    assert_true(pass_fallible());
}

static void test_failpoint_pauses(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_true(failpoint_arm("test.place=pause:20", &err));
    int64_t before_ms = clock_monotonic_ms();
    pass();
    assert_true(clock_monotonic_ms() - before_ms >= 20);
    assert_true(failpoint_arm(NULL, &err));
}

static void count_name(const char *name, void *context)
{
    int *count = context;
    *count += strcmp(name, "test.place") == 0 || strcmp(name, "test.fallible") == 0;
}

static void test_failpoint_each_knows_all_places(void **state)
{
    (void)state;
    int count = 0;
    failpoint_each(count_name, &count);
    assert_int_equal(count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failpoint_kills_stops_and_exits),
        cmocka_unit_test(test_failpoint_fails_at_the_passage_that_was_named),
        cmocka_unit_test(test_failpoint_pauses),
        cmocka_unit_test(test_failpoint_each_knows_all_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_CASES("failpoint_arm", test_arm, arm_cases);
}

#else

static void count_any(const char *name, void *context)
{
    (void)name;
    ++*(int *)context;
}

static void test_failpoint_has_no_places_in_a_release(void **state)
{
    (void)state;
    int count = 0;
    struct err err = ERR_INIT;
    failpoint_each(count_any, &count);
    assert_int_equal(count, 0);
    assert_false(failpoint_arm("test.place=kill", &err));
    pass();
    assert_true(pass_fallible());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_failpoint_has_no_places_in_a_release)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
