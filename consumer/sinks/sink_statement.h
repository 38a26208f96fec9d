/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a user's statement can be a sink, as far as its text tells. Pure.
 */
#ifndef SINK_STATEMENT_H
#define SINK_STATEMENT_H

#include "base/err.h"

/* One INSERT, UPDATE, DELETE or MERGE, with or without a WITH, that reads the table expression `events`: what does
 * neither would let every event pass without an effect. PERMANENT "sink_statement_invalid" names what is missing. Words
 * in strings, quoted names and comments do not count. */
bool sink_statement_check(const char *statement, struct err *err) MUST_CHECK;

#endif
