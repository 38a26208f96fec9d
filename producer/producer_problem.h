/* SPDX-License-Identifier: Apache-2.0
 *
 * The problems that the producer answers with, one table. docs/api.md lists
 * the situations.
 */
#ifndef PRODUCER_PROBLEM_H
#define PRODUCER_PROBLEM_H

#include "base/err.h"
#include "http/http_problem.h"

struct http_exchange;

/* The problem of a code; asserts that there is one. */
const struct http_problem *producer_problem(const char *code);

/* The problem of an error: its code's own row, else by its kind (503, 500). */
const struct http_problem *producer_problem_of(const struct err *err);

/* Answers a call that was refused for its form, with the text of err; a 415 carries Accept-Post (accept may be NULL).
 */
void producer_problem_refuse(struct http_exchange *exchange, const struct err *err, const char *accept);

/* Answers with the problem of an error and its text. What went wrong inside stays inside. */
void producer_problem_answer(struct http_exchange *exchange, const struct err *err);

#endif
