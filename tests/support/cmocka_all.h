/* SPDX-License-Identifier: Apache-2.0
 *
 * cmocka with all that its header wants before it, and one macro for tables of
 * cases: each row becomes a test that is reported by its own name.
 */
#ifndef SUPPORT_CMOCKA_ALL_H
#define SUPPORT_CMOCKA_ALL_H

/* clang-format off: cmocka.h needs these, in this order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
/* clang-format on */

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Fills tests with one row per case: { .name, function, initial_state = the case }. cases need a member name. */
#define FILL_CASES(tests, function, cases)                                                                             \
    do {                                                                                                               \
        for (size_t fill_index = 0; fill_index < COUNT_OF(cases); fill_index++) {                                      \
            (tests)[fill_index] = (struct CMUnitTest){.name = (cases)[fill_index].name,                                \
                                                      .test_func = (function),                                         \
                                                      .initial_state = (void *)&(cases)[fill_index]};                  \
        }                                                                                                              \
    } while (0)

/* Runs one test per row of the static array cases under the group's name and evaluates to the number that failed. */
#define RUN_CASES(group, function, cases)                                                                              \
    __extension__({                                                                                                    \
        struct CMUnitTest run_tests[COUNT_OF(cases)];                                                                  \
        FILL_CASES(run_tests, function, cases);                                                                        \
        cmocka_run_group_tests_name(group, run_tests, NULL, NULL);                                                     \
    })

#endif
