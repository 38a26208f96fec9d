/* SPDX-License-Identifier: Apache-2.0
 *
 * Hints that something was submitted: datagrams of any content. A lost one
 * costs nothing but the wait until the next poll.
 */
#ifndef RELAY_HINT_H
#define RELAY_HINT_H

#include <stdbool.h>

#include "base/config.h"
#include "base/err.h"

/* Binds the address; *ret_fd is -1 where it is empty. Permanent error when it is wrong or taken. */
bool relay_hint_open(const struct config_address *address, int *ret_fd, struct err *err) MUST_CHECK;

/* Takes all datagrams that have come. True when there was one. fd may be -1. */
bool relay_hint_take(int fd);

void relay_hint_close(int *fdp);

#endif
