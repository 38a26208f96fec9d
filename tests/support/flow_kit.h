/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of running programs need: free ports, answers of their HTTP
 * endpoints, numbers in the database that come to be.
 */
#ifndef SUPPORT_FLOW_KIT_H
#define SUPPORT_FLOW_KIT_H

#include <stdbool.h>

#include "postgres_fixture.h"
#include "program.h"

#define FLOW_KIT_WAIT_MS 30000

/* A port of loopback that nobody has, for SOCK_STREAM or SOCK_DGRAM. */
int flow_kit_free_port(int type);

/* A connection to a port of loopback, or -1. */
int flow_kit_dial(int port);

/* Sends a datagram to a port of loopback. */
void flow_kit_hint(int port);

/* Asks GET path again and again until the answer, head and all, holds the text. Prints the last answer if it never
 * does. */
bool flow_kit_waits_for_answer(int port, const char *path, const char *text);

/* Asks the database until the answer is this number. Prints what it was if it never is. */
bool flow_kit_waits_for_number(struct postgres_fixture *postgres, const char *sql, long long wanted);

/* outbox-relay with its HTTP on this port. */
struct program *flow_kit_start_relay(const char *database, const char *kafka, const char *name, int port,
                                     const char *failpoints);

#endif
