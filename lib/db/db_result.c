/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads results that came in binary. The shape was checked when the result
 * arrived, so a wrong type or an unexpected null here is our mistake: asserted.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "db_private.h"

#define POSTGRES_EPOCH_US INT64_C(946684800000000)

static uint64_t big_endian(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

static const void *field(const PGresult *result, int row, int column, enum db_type type, int size)
{
    assert(PQftype(result, column) == (Oid)type);
    assert(!PQgetisnull(result, row, column));
    assert(size < 0 || PQgetlength(result, row, column) == size);
    return PQgetvalue(result, row, column);
}

void db_result_clear(PGresult **resultp)
{
    PQclear(*resultp);
    *resultp = NULL;
}

int db_result_rows(const PGresult *result)
{
    return PQntuples(result);
}

int64_t db_result_affected(const PGresult *result)
{
    /* libpq's signature is not const-correct: PQcmdTuples only reads. */
    union {
        const PGresult *constant;
        PGresult *plain;
    } same = {.constant = result};
    return strtoll(PQcmdTuples(same.plain), NULL, 10);
}

bool db_is_null(const PGresult *result, int row, int column)
{
    assert(row >= 0 && row < PQntuples(result) && column >= 0 && column < PQnfields(result));
    return PQgetisnull(result, row, column) != 0;
}

bool db_get_bool(const PGresult *result, int row, int column)
{
    return *(const char *)field(result, row, column, DB_BOOL, 1) != 0;
}

int16_t db_get_int2(const PGresult *result, int row, int column)
{
    return (int16_t)big_endian(field(result, row, column, DB_INT2, 2), 2);
}

int32_t db_get_int4(const PGresult *result, int row, int column)
{
    return (int32_t)big_endian(field(result, row, column, DB_INT4, 4), 4);
}

int64_t db_get_int8(const PGresult *result, int row, int column)
{
    return (int64_t)big_endian(field(result, row, column, DB_INT8, 8), 8);
}

double db_get_float8(const PGresult *result, int row, int column)
{
    uint64_t bits = big_endian(field(result, row, column, DB_FLOAT8, 8), 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint64_t db_get_xid8(const PGresult *result, int row, int column)
{
    return big_endian(field(result, row, column, DB_XID8, 8), 8);
}

int64_t db_get_timestamptz(const PGresult *result, int row, int column)
{
    return (int64_t)big_endian(field(result, row, column, DB_TIMESTAMPTZ, 8), 8) + POSTGRES_EPOCH_US;
}

const unsigned char *db_get_uuid(const PGresult *result, int row, int column)
{
    return field(result, row, column, DB_UUID, 16);
}

const char *db_get_text(const PGresult *result, int row, int column)
{
    enum db_type type = (enum db_type)PQftype(result, column);
    assert(type == DB_TEXT || type == DB_JSON);
    return field(result, row, column, type, -1);
}

const char *db_get_text_or_null(const PGresult *result, int row, int column)
{
    return db_is_null(result, row, column) ? NULL : db_get_text(result, row, column);
}

void db_copy_text(const PGresult *result, int row, int column, char *ret_text, size_t size)
{
    const char *text = db_get_text_or_null(result, row, column);
    (void)text_copy(ret_text, size, text == NULL ? "" : text);
}

void *db_rows_new(int count, size_t size, struct err *err)
{
    assert(count >= 0);
    void *rows = calloc((size_t)count + 1, size);
    if (rows == NULL) {
        (void)err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for %d rows", count);
    }
    return rows;
}

struct bytes db_get_bytes(const PGresult *result, int row, int column)
{
    if (db_is_null(result, row, column)) {
        return (struct bytes){.data = NULL, .size = 0};
    }
    enum db_type type = (enum db_type)PQftype(result, column);
    assert(type == DB_BYTEA || type == DB_TEXT || type == DB_JSON);
    return (struct bytes){
        .data = field(result, row, column, type, -1),
        .size = (size_t)PQgetlength(result, row, column),
    };
}

struct db_array db_get_array(const PGresult *result, int row, int column, enum db_type element_type)
{
    const unsigned char *at = field(result, row, column, db_type_array(element_type), -1);
    size_t size = (size_t)PQgetlength(result, row, column);
    struct db_array array = {.element_type = element_type, .cursor = at + size, .end = at + size};
    assert(size >= 12);
    uint64_t dimensions = big_endian(at, 4);
    assert(dimensions <= 1);
    if (dimensions == 1) {
        assert(size >= 20 && big_endian(at + 8, 4) == (uint64_t)element_type);
        array.count = (int32_t)big_endian(at + 12, 4);
        array.cursor = at + 20;
    }
    return array;
}

bool db_array_next(struct db_array *array, struct bytes *ret_element)
{
    if (array->index == array->count) {
        return false;
    }
    assert(array->end - array->cursor >= 4);
    int32_t size = (int32_t)big_endian(array->cursor, 4);
    array->cursor += 4;
    array->index++;
    if (size < 0) {
        *ret_element = (struct bytes){.data = NULL, .size = 0};
        return true;
    }
    assert(array->end - array->cursor >= size);
    *ret_element = (struct bytes){.data = array->cursor, .size = (size_t)size};
    array->cursor += size;
    return true;
}

int64_t db_decode_int8(struct bytes element)
{
    assert(element.data != NULL && element.size == 8);
    return (int64_t)big_endian(element.data, 8);
}
