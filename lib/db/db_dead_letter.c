/* SPDX-License-Identifier: Apache-2.0
 *
 * One row per dead letter. The invariant: whatever the record's bytes are, the
 * row can be written, since a refusal here would stop its partition for good.
 */
#include "db/db_dead_letter.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"
#include "db_private.h"

#define NAME_BYTES_MAX 1024
#define TIMESTAMP_MS_MAX 253402300799999 /* The end of the year 9999; a record may carry any number. */

static const struct db_statement PUT = {
    .sql = "INSERT INTO onceward.dead_letters (consumer, scope, topic, partition, record_offset, record_hash, "
           "record_time, event_id, source, key, value, header_names, header_values, reason_code, reason) "
           "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT DO NOTHING",
};

static void add_name(struct db_params *params, const char *name)
{
    size_t size = strlen(name);
    if (text_is_utf8(name, size, NULL)) {
        db_params_text_bytes(params, (struct bytes){name, size});
        return;
    }
    static const char digits[] = "0123456789abcdef";
    char text[2 + 2 * NAME_BYTES_MAX] = "\\x";
    size_t used = 2;
    for (size_t i = 0; i < size && i < NAME_BYTES_MAX; i++) {
        text[used++] = digits[(unsigned char)name[i] >> 4];
        text[used++] = digits[(unsigned char)name[i] & 15];
    }
    db_params_text_bytes(params, (struct bytes){text, used});
}

static void add_headers(struct db_params *params, const struct db_dead_letter *letter)
{
    db_params_array_open(params, DB_TEXT);
    for (size_t i = 0; i < letter->header_count; i++) {
        add_name(params, letter->headers[i].name);
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_BYTEA);
    for (size_t i = 0; i < letter->header_count; i++) {
        db_params_bytea(params, letter->headers[i].value);
    }
    db_params_array_close(params);
}

bool db_dead_letter_put(struct db_tx *tx, const struct db_dead_letter *letter, struct err *err)
{
    assert(letter->hash.size == DB_DEAD_LETTER_HASH_SIZE && letter->reason_code[0] != '\0');
    DB_PARAMS(params);
    db_params_text(&params, letter->consumer);
    db_params_text(&params, letter->scope);
    db_params_text(&params, letter->topic);
    db_params_int4(&params, letter->partition);
    db_params_int8(&params, letter->offset);
    db_params_bytea(&params, letter->hash);
    if (letter->timestamp_ms < 0 || letter->timestamp_ms > TIMESTAMP_MS_MAX) {
        db_params_null(&params, DB_TIMESTAMPTZ);
    } else {
        db_params_timestamptz(&params, letter->timestamp_ms * 1000);
    }
    db_params_text(&params, letter->event_id);
    db_params_text(&params, letter->source);
    db_params_bytea(&params, letter->key);
    db_params_bytea(&params, letter->value);
    add_headers(&params, letter);
    db_params_text(&params, letter->reason_code);
    db_params_text(&params, letter->reason);
    return db_exec(db_tx_db(tx), &PUT, &params, NULL, err);
}
