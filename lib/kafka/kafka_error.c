/* SPDX-License-Identifier: Apache-2.0
 *
 * Kafka's error codes as kinds. The invariant: only a refusal of this very
 * record is permanent, since a permanent error parks an event.
 */
#include "kafka/kafka_error.h"

#include <assert.h>
#include <stdarg.h>

#include <librdkafka/rdkafka.h>

#include "base/text.h"

struct kafka_error_row {
    rd_kafka_resp_err_t code;
    enum err_kind kind;
};

/* What is not listed is transient. */
static const struct kafka_error_row rows[] = {
    /* The broker refuses this record, or us for this topic. */
    {RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, ERR_PERMANENT},
    {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, ERR_PERMANENT},
    {RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, ERR_PERMANENT},
    {RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, ERR_PERMANENT},
    {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, ERR_PERMANENT},
    {RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, ERR_PERMANENT},
    {RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, ERR_PERMANENT},
    {RD_KAFKA_RESP_ERR_POLICY_VIOLATION, ERR_PERMANENT},
    {RD_KAFKA_RESP_ERR_INVALID_RECORD, ERR_PERMANENT},
    /* A position that the log no longer has. */
    {RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE, ERR_PERMANENT},
    {RD_KAFKA_RESP_ERR__NO_OFFSET, ERR_PERMANENT},
    {RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET, ERR_PERMANENT},
    /* The handle can do nothing more. */
    {RD_KAFKA_RESP_ERR__FATAL, ERR_FATAL},
    {RD_KAFKA_RESP_ERR__FENCED, ERR_FATAL},
    {RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE, ERR_FATAL},
    {RD_KAFKA_RESP_ERR__INCONSISTENT, ERR_FATAL},
    {RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, ERR_FATAL},
    {RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, ERR_FATAL},
    {RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING, ERR_FATAL},
    {RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID, ERR_FATAL},
    {RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, ERR_FATAL},
    {RD_KAFKA_RESP_ERR_PRODUCER_FENCED, ERR_FATAL},
};

enum err_kind kafka_error_kind(int code)
{
    assert(code != RD_KAFKA_RESP_ERR_NO_ERROR);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if ((int)rows[i].code == code) {
            return rows[i].kind;
        }
    }
    return ERR_TRANSIENT;
}

const char *kafka_error_name(int code)
{
    return rd_kafka_err2name((rd_kafka_resp_err_t)code);
}

bool kafka_error_set(struct err *err, int code, const char *format, ...)
{
    char what[ERR_TEXT_SIZE];
    va_list args;
    va_start(args, format);
    text_vformat(what, sizeof what, format, args);
    va_end(args);
    return err_set(err, kafka_error_kind(code), kafka_error_name(code), "%s: %s", what,
                   rd_kafka_err2str((rd_kafka_resp_err_t)code));
}
