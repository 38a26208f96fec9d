/* SPDX-License-Identifier: Apache-2.0
 *
 * Dead letters for people.
 */
#include "db/db_dlq.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "db_private.h"

#define LETTER_COLUMNS                                                                                                 \
    "dead_letter_id, consumer, scope, topic, partition, record_offset, event_id, source, reason_code, reason,"         \
    " created_at, acknowledged_at, acknowledged_by, acknowledged_reason"
#define LETTER_TYPES                                                                                                   \
    DB_INT8, DB_TEXT, DB_TEXT, DB_TEXT, DB_INT4, DB_INT8, DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT, DB_TIMESTAMPTZ,          \
        DB_TIMESTAMPTZ, DB_TEXT, DB_TEXT
#define LETTER_COLUMN_COUNT 14

static const struct db_statement LIST = {
    .sql = "SELECT " LETTER_COLUMNS " FROM onceward.dead_letters"
           " WHERE ($1::text IS NULL OR consumer = $1) AND ($2::text IS NULL OR reason_code = $2)"
           "   AND (NOT $3 OR acknowledged_at IS NULL) AND dead_letter_id < $4"
           " ORDER BY dead_letter_id DESC LIMIT $5",
    .columns = {LETTER_TYPES},
};

static const struct db_statement FIND = {
    .sql = "SELECT " LETTER_COLUMNS ", key, value, header_names, header_values"
           " FROM onceward.dead_letters WHERE dead_letter_id = $1",
    .columns = {LETTER_TYPES, DB_BYTEA, DB_BYTEA, DB_TEXT_ARRAY, DB_BYTEA_ARRAY},
};

static void read_letter(const PGresult *result, int row, struct db_dlq_letter *letter)
{
    *letter = (struct db_dlq_letter){
        .dead_letter_id = db_get_int8(result, row, 0),
        .partition = db_get_int4(result, row, 4),
        .offset = db_get_int8(result, row, 5),
        .created_at_us = db_get_timestamptz(result, row, 10),
        .is_acknowledged = !db_is_null(result, row, 11),
    };
    letter->acknowledged_at_us = letter->is_acknowledged ? db_get_timestamptz(result, row, 11) : 0;
    db_copy_text(result, row, 1, letter->consumer, sizeof letter->consumer);
    db_copy_text(result, row, 2, letter->scope, sizeof letter->scope);
    db_copy_text(result, row, 3, letter->topic, sizeof letter->topic);
    db_copy_text(result, row, 6, letter->event_id, sizeof letter->event_id);
    db_copy_text(result, row, 7, letter->source, sizeof letter->source);
    db_copy_text(result, row, 8, letter->reason_code, sizeof letter->reason_code);
    db_copy_text(result, row, 9, letter->reason, sizeof letter->reason);
    db_copy_text(result, row, 12, letter->acknowledged_by, sizeof letter->acknowledged_by);
    db_copy_text(result, row, 13, letter->acknowledged_reason, sizeof letter->acknowledged_reason);
}

bool db_dlq_list(struct db *db, const struct db_dlq_filter *filter, struct db_dlq_letter **ret_letters,
                 size_t *ret_count, struct err *err)
{
    assert(filter->limit > 0 && filter->limit <= DB_DLQ_ROW_COUNT_MAX && filter->before >= 0);
    DB_PARAMS(params);
    db_params_text(&params, filter->consumer);
    db_params_text(&params, filter->reason_code);
    db_params_bool(&params, filter->is_open_only);
    db_params_int8(&params, filter->before > 0 ? filter->before : INT64_MAX);
    db_params_int8(&params, filter->limit);
    DB_RESULT(result);
    if (!db_exec(db, &LIST, &params, &result, err)) {
        return false;
    }
    struct db_dlq_letter *letters = db_rows_new(db_result_rows(result), sizeof *letters, err);
    if (letters == NULL) {
        return false;
    }
    for (int row = 0; row < db_result_rows(result); row++) {
        read_letter(result, row, &letters[row]);
    }
    *ret_letters = letters;
    *ret_count = (size_t)db_result_rows(result);
    return true;
}

/* ---- One with its bytes ------------------------------------------------------------------------------------- */

static bool copy_part(struct bytes bytes, char **ret_data, size_t *ret_size, struct err *err)
{
    *ret_data = NULL;
    *ret_size = 0;
    if (bytes.data == NULL) {
        return true;
    }
    char *copy = malloc(bytes.size + 1);
    if (copy == NULL) {
        return err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for %zu bytes", bytes.size);
    }
    memcpy(copy, bytes.data, bytes.size);
    copy[bytes.size] = '\0';
    *ret_data = copy;
    *ret_size = bytes.size;
    return true;
}

static bool copy_headers(const PGresult *result, struct db_dlq_record *record, struct err *err)
{
    struct db_array names = db_get_array(result, 0, LETTER_COLUMN_COUNT + 2, DB_TEXT);
    struct db_array values = db_get_array(result, 0, LETTER_COLUMN_COUNT + 3, DB_BYTEA);
    record->headers = db_rows_new(names.count, sizeof *record->headers, err);
    bool is_good = record->headers != NULL;
    struct bytes name;
    struct bytes value;
    while (is_good && db_array_next(&names, &name) && db_array_next(&values, &value)) {
        struct db_dlq_part *header = &record->headers[record->header_count++];
        size_t name_size = 0;
        is_good =
            copy_part(name, &header->name, &name_size, err) && copy_part(value, &header->data, &header->size, err);
    }
    return is_good;
}

bool db_dlq_find(struct db *db, int64_t dead_letter_id, struct db_dlq_letter *ret_letter,
                 struct db_dlq_record *ret_record, bool *ret_found, struct err *err)
{
    DB_PARAMS(params);
    db_params_int8(&params, dead_letter_id);
    DB_RESULT(result);
    if (!db_exec(db, &FIND, &params, &result, err)) {
        return false;
    }
    *ret_found = db_result_rows(result) == 1;
    if (!*ret_found) {
        return true;
    }
    struct db_dlq_record record = {.header_count = 0};
    read_letter(result, 0, ret_letter);
    struct bytes key = db_get_bytes(result, 0, LETTER_COLUMN_COUNT);
    struct bytes value = db_get_bytes(result, 0, LETTER_COLUMN_COUNT + 1);
    if (!copy_part(key, &record.key.data, &record.key.size, err) ||
        !copy_part(value, &record.value.data, &record.value.size, err) || !copy_headers(result, &record, err)) {
        db_dlq_record_done(&record);
        return false;
    }
    *ret_record = record;
    return true;
}

void db_dlq_record_done(struct db_dlq_record *record)
{
    for (size_t i = 0; i < record->header_count; i++) {
        free(record->headers[i].name);
        free(record->headers[i].data);
    }
    free(record->headers);
    free(record->key.data);
    free(record->value.data);
    *record = (struct db_dlq_record){.header_count = 0};
}

/* ---- Acknowledging ------------------------------------------------------------------------------------------ */

static const struct db_statement ACKNOWLEDGE = {
    .sql =
        "WITH selected AS MATERIALIZED (SELECT dead_letter_id FROM onceward.dead_letters"
        "      WHERE acknowledged_at IS NULL AND ($1 = 0 OR dead_letter_id = $1)"
        "        AND ($2::text IS NULL OR consumer = $2) AND ($3::text IS NULL OR reason_code = $3)"
        "      ORDER BY dead_letter_id LIMIT 10000),"
        " summed AS (SELECT count(*) AS number, min(dead_letter_id) AS first_id, max(dead_letter_id) AS last_id,"
        "      left(encode(sha256(convert_to(coalesce(string_agg(dead_letter_id::text, ',' ORDER BY dead_letter_id),"
        "      ''), 'UTF8')), 'hex'), 16) AS digest FROM selected),"
        " done AS (UPDATE onceward.dead_letters d SET acknowledged_at = clock_timestamp(), acknowledged_by = $4,"
        "      acknowledged_reason = $5 FROM selected s, summed m WHERE d.dead_letter_id = s.dead_letter_id"
        "      AND d.acknowledged_at IS NULL AND NOT $6 AND ($7::text IS NULL OR m.digest = $7)"
        "      RETURNING d.dead_letter_id),"
        " audited AS (INSERT INTO onceward.audit (action, object, detail) SELECT 'dlq acknowledge',"
        "      coalesce($2, $1::text), jsonb_build_object('by', $4::text, 'reason', $5::text, 'reason_code', $3::text,"
        "      'count', (SELECT count(*) FROM done), 'first_id', m.first_id, 'last_id', m.last_id, 'digest', m.digest)"
        "      FROM summed m WHERE EXISTS (SELECT FROM done))"
        " SELECT number, (SELECT count(*) FROM done), coalesce(first_id, 0), coalesce(last_id, 0), digest FROM summed",
    .columns = {DB_INT8, DB_INT8, DB_INT8, DB_INT8, DB_TEXT},
};

bool db_dlq_acknowledge(struct db *db, const struct db_dlq_selection *selection, struct db_dlq_acknowledged *ret_done,
                        struct err *err)
{
    assert((selection->dead_letter_id > 0 || selection->consumer != NULL) && selection->audit.reason != NULL);
    DB_PARAMS(params);
    db_params_int8(&params, selection->dead_letter_id);
    db_params_text(&params, selection->consumer);
    db_params_text(&params, selection->reason_code);
    db_params_text(&params, selection->audit.by);
    db_params_text(&params, selection->audit.reason);
    db_params_bool(&params, selection->is_dry);
    db_params_text(&params, selection->digest);
    DB_RESULT(result);
    if (!db_exec_row(db, &ACKNOWLEDGE, &params, &result, err)) {
        return false;
    }
    *ret_done = (struct db_dlq_acknowledged){
        .selected_count = db_get_int8(result, 0, 0),
        .done_count = db_get_int8(result, 0, 1),
        .first_id = db_get_int8(result, 0, 2),
        .last_id = db_get_int8(result, 0, 3),
    };
    db_copy_text(result, 0, 4, ret_done->digest, sizeof ret_done->digest);
    return true;
}
