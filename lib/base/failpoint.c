/* SPDX-License-Identifier: Apache-2.0
 *
 * Failpoints. The linker collects them between two symbols, so the list needs
 * no registration and a name that does not exist is noticed.
 */
#include "base/failpoint.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

#define ENTRY_SIZE_MAX 160

/* Defined by the linker where the program has a failpoint, else NULL. */
extern struct failpoint *const __start_onceward_failpoints[] __attribute__((weak));
extern struct failpoint *const __stop_onceward_failpoints[] __attribute__((weak));

static const struct {
    const char *name;
    enum failpoint_action action;
    bool has_argument;
} actions[] = {
    {"kill", FAILPOINT_KILL, false}, {"stop", FAILPOINT_STOP, false},   {"pause", FAILPOINT_PAUSE, true},
    {"exit", FAILPOINT_EXIT, true},  {"error", FAILPOINT_ERROR, false},
};

static bool refuse(const char *entry, const char *why, struct err *err)
{
    return err_set(err, ERR_PERMANENT, "failpoint_invalid", "failpoint \"%s\": %s", entry, why);
}

/* Cuts text at the separator and gives what is behind it, or NULL without one. */
static char *split(char *text, char separator)
{
    char *found = strchr(text, separator);
    if (found != NULL) {
        *found++ = '\0';
    }
    return found;
}

/* Reads "action", "action:argument", each with "@n", into parsed. */
static bool parse_action(const char *entry, char *action, struct failpoint *parsed, struct err *err)
{
    char *passage = split(action, '@');
    char *argument = split(action, ':');
    int64_t number = 0;
    if (passage != NULL && (!text_to_int64(passage, &number) || number < 1)) {
        return refuse(entry, "the passage is not a number from 1 on", err);
    }
    parsed->only_passage = (uint64_t)number;
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(action, actions[i].name) != 0) {
            continue;
        }
        if ((argument != NULL) != actions[i].has_argument ||
            (argument != NULL && (!text_to_int64(argument, &parsed->argument) || parsed->argument < 0))) {
            return refuse(entry, "pause and exit need a number, the others take none", err);
        }
        parsed->action = actions[i].action;
        return true;
    }
    return refuse(entry, "no such action (kill, stop, pause:ms, exit:status, error)", err);
}

static bool arm_entry(const char *entry, struct err *err)
{
    char name[ENTRY_SIZE_MAX];
    if (!text_copy(name, sizeof name, entry)) {
        return refuse("…", "too long", err);
    }
    struct failpoint parsed = {0};
    char *action = split(name, '=');
    if (action == NULL) {
        return refuse(entry, "not of the form name=action", err);
    }
    if (!parse_action(entry, action, &parsed, err)) {
        return false;
    }
    bool is_known = false;
    for (struct failpoint *const *at = __start_onceward_failpoints; at < __stop_onceward_failpoints; at++) {
        if (strcmp((*at)->name, name) == 0) {
            parsed.name = (*at)->name;
            **at = parsed;
            is_known = true;
        }
    }
    return is_known || refuse(entry, "this program has none of that name", err);
}

bool failpoint_arm(const char *text, struct err *err)
{
    for (struct failpoint *const *at = __start_onceward_failpoints; at < __stop_onceward_failpoints; at++) {
        (*at)->action = FAILPOINT_NONE;
    }
    if (text == NULL || text[0] == '\0') {
        return true;
    }
    char *copy = strdup(text);
    if (copy == NULL) {
        return err_set(err, ERR_FATAL, "no_memory", "no memory for failpoints");
    }
    bool ok = true;
    char *rest = copy;
    for (char *entry = strsep(&rest, ";"); entry != NULL && ok; entry = strsep(&rest, ";")) {
        ok = entry[0] == '\0' || arm_entry(entry, err);
    }
    free(copy);
    return ok;
}

bool failpoint_init(struct err *err)
{
    return failpoint_arm(getenv("ONCEWARD_FAILPOINTS"), err);
}

void failpoint_each(void (*visit)(const char *name, void *context), void *context)
{
    for (struct failpoint *const *at = __start_onceward_failpoints; at < __stop_onceward_failpoints; at++) {
        visit((*at)->name, context);
    }
}

static void pause_ms(int64_t wait_ms)
{
    struct timespec left = {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0) {
    }
}

/* In the process's own log, so that a test can tell this death from any other. */
static void die(const struct failpoint *failpoint, uint64_t passage)
{
    dprintf(STDERR_FILENO, "failpoint %s: killed at passage %" PRIu64 "\n", failpoint->name, passage);
    raise(SIGKILL);
}

bool failpoint_is_armed(const char *name)
{
    for (struct failpoint *const *at = __start_onceward_failpoints; at < __stop_onceward_failpoints; at++) {
        if ((*at)->action != FAILPOINT_NONE && strcmp((*at)->name, name) == 0) {
            return true;
        }
    }
    return false;
}

bool failpoint_pass(struct failpoint *failpoint)
{
    if (failpoint->action == FAILPOINT_NONE) {
        return false;
    }
    uint64_t passage = __atomic_add_fetch(&failpoint->passage_count, 1, __ATOMIC_SEQ_CST);
    if (failpoint->only_passage != 0 && failpoint->only_passage != passage) {
        return false;
    }
    switch (failpoint->action) {
    case FAILPOINT_NONE: return false;
    case FAILPOINT_KILL: die(failpoint, passage); return false;
    case FAILPOINT_STOP: kill(getpid(), SIGSTOP); return false;
    case FAILPOINT_PAUSE: pause_ms(failpoint->argument); return false;
    case FAILPOINT_EXIT: _exit((int)failpoint->argument);
    case FAILPOINT_ERROR: return true;
    }
    assert(false && "no such action");
    return false;
}
