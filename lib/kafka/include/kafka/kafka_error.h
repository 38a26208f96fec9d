/* SPDX-License-Identifier: Apache-2.0
 *
 * What an error of Kafka means to us: one table from code to kind. Positive
 * codes are those of Kafka's protocol, negative ones are librdkafka's own.
 */
#ifndef KAFKA_KAFKA_ERROR_H
#define KAFKA_KAFKA_ERROR_H

#include "base/err.h"

/* PERMANENT is a verdict on this record or position alone; FATAL means that the handle is spent. Every code
 * that the table does not name is TRANSIENT: an outage, a mistake in the settings and a broker newer than this
 * program must never count against an event. Precondition: code is not 0. */
enum err_kind kafka_error_kind(int code);

/* The code's name without librdkafka's prefix, as "MSG_SIZE_TOO_LARGE" or "_TRANSPORT". Static. */
const char *kafka_error_name(int code);

/* err_set() with kind and name of the code; the text is "format: the library's description". Returns false. */
bool kafka_error_set(struct err *err, int code, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
