/* SPDX-License-Identifier: Apache-2.0
 *
 * librdkafka's own log lines, as lines of our log.
 */
#ifndef KAFKA_KAFKA_LOG_H
#define KAFKA_KAFKA_LOG_H

#include "base/log.h"

/* The level at which a line of this syslog level is written: warnings and worse are our warnings, since the
 * library goes on by itself; everything else is for whoever debugs. */
enum log_level kafka_log_level(int syslog_level);

#endif
