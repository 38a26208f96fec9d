/* SPDX-License-Identifier: Apache-2.0
 *
 * Kafka as the relay's publisher: what the loop is given by main.
 */
#ifndef RELAY_BROKER_H
#define RELAY_BROKER_H

#include <stdbool.h>

#include "base/err.h"
#include "domain/publisher.h"
#include "relay_settings.h"

/* For relay_loop_options.open: context is the const struct relay_settings. */
struct publisher *relay_broker_open(void *context, bool is_single, struct err *err) MUST_CHECK;

#endif
