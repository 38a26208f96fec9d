/* SPDX-License-Identifier: Apache-2.0
 *
 * Named places where a test makes a program die, stall or fail. A release
 * build contains none of them.
 *
 *   ONCEWARD_FAILPOINTS="name=kill;name=stop;name=pause:500;name=exit:3;name=error@2"
 *
 * kill and stop signal the process itself, pause waits that many milliseconds,
 * exit leaves without any cleanup, error makes FAILPOINT_FAILS true. "@n" means
 * at the n-th passage only; without it, at every one. Who is killed says so on
 * stderr before: "failpoint name: killed at passage n".
 */
#ifndef BASE_FAILPOINT_H
#define BASE_FAILPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum failpoint_action {
    FAILPOINT_NONE,
    FAILPOINT_KILL,
    FAILPOINT_STOP,
    FAILPOINT_PAUSE,
    FAILPOINT_EXIT,
    FAILPOINT_ERROR
};

/* One place in the code. Made by the macros below only, which collect them in a section of the program. */
struct failpoint {
    const char *name;
    enum failpoint_action action; /* Written by failpoint_init alone. */
    int64_t argument;             /* Milliseconds or exit status. */
    uint64_t only_passage;        /* 0: every passage. */
    uint64_t passage_count;       /* Atomic. */
};

/* Arms what ONCEWARD_FAILPOINTS names; call it in main before threads exist. Permanent error for a form that is
 * wrong, for a name that this program does not have, and, in a build without failpoints, for any. */
bool failpoint_init(struct err *err) MUST_CHECK;

/* The same from a text instead of the environment. NULL or "" disarms all. */
bool failpoint_arm(const char *text, struct err *err) MUST_CHECK;

/* Calls visit for the name of every failpoint in this program. */
void failpoint_each(void (*visit)(const char *name, void *context), void *context);

/* For the macros. True when the caller shall fail. */
bool failpoint_pass(struct failpoint *failpoint);
/* Whether a failpoint of this name is armed. */
bool failpoint_is_armed(const char *name);

#ifdef ONCEWARD_FAILPOINTS
/* The section holds pointers, since compilers align structs more widely than an array of them. */
#define FAILPOINT_FAILS(place)                                                                                         \
    __extension__({                                                                                                    \
        static struct failpoint failpoint_here = {.name = (place)};                                                    \
        static struct failpoint *const failpoint_listed __attribute__((section("onceward_failpoints"), used)) =        \
            &failpoint_here;                                                                                           \
        failpoint_pass(failpoint_listed);                                                                              \
    })
/* For a place between two things that usually go out at once: who wants to pass there gets them one by one. */
#define FAILPOINT_IS_ARMED(place) failpoint_is_armed(place)
#else
#define FAILPOINT_FAILS(place) false
#define FAILPOINT_IS_ARMED(place) false
#endif

/* A place that can die, stop, pause or exit, but has nothing to fail. */
#define FAILPOINT(place) ((void)FAILPOINT_FAILS(place))

#endif
