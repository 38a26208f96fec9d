/* SPDX-License-Identifier: Apache-2.0
 *
 * A real program of the build, run by a test: started with arguments and
 * failpoints, killed, waited for, its log read.
 */
#ifndef SUPPORT_PROGRAM_H
#define SUPPORT_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

struct program;

#define PROGRAM_RUNS (-1000)

/* Whether the programs of this build know failpoints; those of a release refuse them. */
#ifdef ONCEWARD_FAILPOINTS
#define PROGRAM_HAS_FAILPOINTS true
#else
#define PROGRAM_HAS_FAILPOINTS false
#endif

/* Starts bin/NAME with these arguments (ended by NULL) and ONCEWARD_FAILPOINTS (or NULL). What it writes goes to a
 * file. Ends the test process if it cannot. */
struct program *program_start(const char *name, const char *const *arguments, const char *failpoints);

/* Sends a signal. */
void program_signal(struct program *program, int signal_number);

/* Waits up to timeout_ms for its end: its exit code, minus the signal that ended it, or PROGRAM_RUNS. */
int program_wait(struct program *program, int timeout_ms);

/* Waits until its log holds this text. */
bool program_logs(struct program *program, const char *text, int timeout_ms);

/* How often its log holds this text now. */
int program_log_count(const struct program *program, const char *text);

/* The port that its log names as port=N, once it does; ends the test process if it never does. */
int program_port(struct program *program);

/* GET on 127.0.0.1: the status, and the whole answer as text, cut to size. 0 where nobody answers. */
int program_get(int port, const char *path, char *ret_answer, size_t size);

/* Writes its log to stderr. */
void program_show_log(struct program *program);

/* Kills it if it still runs, removes its log, nulls the pointer. Accepts NULL inside. */
void program_free(struct program **programp);

#endif
