/* SPDX-License-Identifier: Apache-2.0
 *
 * /idempotency-keys/{key}: what stands under a key.
 */
#include <assert.h>

#include "base/text.h"
#include "db/db_idempotency.h"
#include "http/http_problem.h"
#include "http/http_server.h"
#include "producer.h"
#include "producer_answer.h"
#include "producer_flight.h"
#include "producer_key.h"
#include "producer_problem.h"
#include "producer_routes.h"

_Static_assert(PRODUCER_KEY_SIZE <= PRODUCER_TEXT_SIZE, "a key fits into a read");

static void answer_row(struct producer_read *read, const struct db_idempotency_row *row)
{
    struct buf buf;
    buf_init(&buf, 8192);
    producer_answer_key(&buf, read->text, row);
    http_respond_buf(read->exchange, 200, "application/json", &buf);
}

static bool run_get(struct producer_read *read, struct db *db, enum producer_read_outcome *ret_outcome, struct err *err)
{
    struct db_idempotency_row row;
    struct producer *producer = read->context;
    *ret_outcome = PRODUCER_READ_DONE;
    /* Asked before the database is: between its tries a call that waits for its request holds no lock on its key, and
     * one that ends after this line leaves its answer where the look finds it. */
    bool is_running = producer_flight_is_running(producer_batch_flights(producer->batch), read->tenant, read->text);
    if (!db_idempotency_get(db, read->tenant, read->text, &row, err)) {
        return false;
    }
    if (is_running && row.state != DB_IDEMPOTENCY_DONE) {
        row.state = DB_IDEMPOTENCY_RUNNING;
    }
    if (row.state == DB_IDEMPOTENCY_NONE) {
        http_respond_problem(read->exchange, producer_problem("idempotency_key_not_found"), NULL,
                             "nothing stands under this key; a call with it would be the first");
    } else {
        answer_row(read, &row);
    }
    return true;
}

void producer_keys_get(void *context, struct http_exchange *exchange)
{
    struct producer *producer = context;
    char text[PRODUCER_KEY_SIZE];
    struct err err = ERR_INIT;
    if (!producer_routes_no_query(exchange)) {
        return;
    }
    if (!producer_key_from_path(http_exchange_request(exchange)->params[0], text, &err)) {
        producer_problem_refuse(exchange, &err, NULL);
        return;
    }
    struct producer_read *read = producer_routes_read(producer, exchange, run_get);
    if (read == NULL) {
        return;
    }
    read->context = producer;
    bool is_whole = text_copy(read->text, sizeof read->text, text);
    assert(is_whole);
    producer_reader_put(producer->reader, read);
}
