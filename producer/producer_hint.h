/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells relays that something was committed. A lost hint costs nothing: they
 * also look by themselves.
 */
#ifndef PRODUCER_HINT_H
#define PRODUCER_HINT_H

#include "base/config.h"

struct producer_hint;

/* Resolves the addresses once; one that cannot be is logged and left out. NULL only when memory is out. */
struct producer_hint *producer_hint_new(const struct config_list *addresses);
void producer_hint_free(struct producer_hint **hintp);

/* One datagram to each. Never blocks, from any thread. */
void producer_hint_send(struct producer_hint *hint);

#endif
