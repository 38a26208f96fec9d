/* SPDX-License-Identifier: Apache-2.0
 *
 * Being asked to stop. SIGTERM and SIGINT set a flag and make a descriptor
 * readable, so that every wait can be woken; a second SIGINT ends the process
 * at once with status 130. SIGPIPE is ignored. One per process.
 */
#ifndef BASE_STOP_H
#define BASE_STOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Installs the handlers. Call once, before threads exist. Fatal error when the kernel refuses. */
bool stop_init(struct err *err) MUST_CHECK;

/* Readable from the moment on that a stop was asked for, and for ever after. For poll; do not read it.
 * -1 before stop_init. */
int stop_fd(void);

/* Any thread, any time. */
bool stop_requested(void);

/* Asks for a stop from inside, as a signal would. Any thread; async-signal-safe. */
void stop_request(void);

/* Waits up to timeout_ms (0: only looks) and returns true as soon as a stop was asked for. */
bool stop_wait_ms(int64_t timeout_ms);

#endif
