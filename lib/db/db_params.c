/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters in Postgres' binary format (big-endian; arrays as in
 * array_recv: dimensions, null flag, element type, length, lower bound, then
 * each element with its size). Nothing a caller passes can be cut or escaped.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "db_private.h"

#define ARRAY_HEADER_SIZE 20
#define ARRAY_HEADER_SIZE_EMPTY 12
#define STORAGE_SIZE_MIN 256
#define UUID_SIZE 16
/* From 1970-01-01 to 2000-01-01. */
#define POSTGRES_EPOCH_US INT64_C(946684800000000)

static void put_big_endian(unsigned char *at, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        at[i] = (unsigned char)(value >> (8 * (size - 1 - i)));
    }
}

enum db_type db_type_array(enum db_type element_type)
{
    static const enum db_type PAIRS[][2] = {
        {DB_BOOL, DB_BOOL_ARRAY}, {DB_BYTEA, DB_BYTEA_ARRAY},
        {DB_INT2, DB_INT2_ARRAY}, {DB_INT4, DB_INT4_ARRAY},
        {DB_INT8, DB_INT8_ARRAY}, {DB_FLOAT8, DB_FLOAT8_ARRAY},
        {DB_TEXT, DB_TEXT_ARRAY}, {DB_UUID, DB_UUID_ARRAY},
        {DB_XID8, DB_XID8_ARRAY}, {DB_TIMESTAMPTZ, DB_TIMESTAMPTZ_ARRAY},
    };
    for (size_t i = 0; i < sizeof PAIRS / sizeof PAIRS[0]; i++) {
        if (PAIRS[i][0] == element_type) {
            return PAIRS[i][1];
        }
    }
    assert(false && "no array of this type");
    return DB_VOID;
}

/* Room for size more bytes at the end of the storage, or NULL with params->err set. */
static unsigned char *reserve(struct db_params *params, size_t size)
{
    if (size > DB_PARAMS_SIZE_MAX - params->storage_size) {
        (void)err_set(&params->err, ERR_PERMANENT, "parameters_too_large",
                      "the statement's parameters exceed %zu bytes", DB_PARAMS_SIZE_MAX);
        return NULL;
    }
    size_t wanted = params->storage_size + size;
    if (wanted > params->storage_capacity) {
        size_t capacity = params->storage_capacity < STORAGE_SIZE_MIN ? STORAGE_SIZE_MIN : params->storage_capacity;
        while (capacity < wanted) {
            capacity *= 2;
        }
        unsigned char *storage = realloc(params->storage, capacity);
        if (storage == NULL) {
            (void)err_set(&params->err, ERR_TRANSIENT, "out_of_memory", "no memory for %zu bytes of parameters",
                          capacity);
            return NULL;
        }
        params->storage = storage;
        params->storage_capacity = capacity;
    }
    unsigned char *at = params->storage + params->storage_size;
    params->storage_size = wanted;
    return at;
}

static struct db_param *next_item(struct db_params *params, enum db_type type)
{
    assert(params->count < DB_PARAM_COUNT_MAX);
    struct db_param *item = &params->items[params->count++];
    *item = (struct db_param){.type = (unsigned)type, .offset = params->storage_size};
    return item;
}

/* Adds a value of size bytes whose place it returns (NULL after a failure): an element or a parameter. */
static unsigned char *add(struct db_params *params, enum db_type type, size_t size)
{
    if (params->element_type == DB_VOID) {
        next_item(params, type)->size = size;
        return reserve(params, size);
    }
    assert(params->element_type == type);
    unsigned char *at = reserve(params, 4 + size);
    if (at == NULL) {
        return NULL;
    }
    params->element_count++;
    put_big_endian(at, (uint32_t)size, 4);
    return at + 4;
}

static void add_integer(struct db_params *params, enum db_type type, uint64_t value, size_t size)
{
    unsigned char *at = add(params, type, size);
    if (at != NULL) {
        put_big_endian(at, value, size);
    }
}

/* Outside an array the bytes stay the caller's; inside they are copied. */
static void add_bytes(struct db_params *params, enum db_type type, const void *bytes, size_t size)
{
    if (size > DB_PARAMS_SIZE_MAX) {
        (void)err_set(&params->err, ERR_PERMANENT, "parameters_too_large", "a parameter of %zu bytes", size);
        return;
    }
    if (params->element_type == DB_VOID) {
        struct db_param *item = next_item(params, type);
        item->borrowed = bytes;
        item->size = size;
        return;
    }
    unsigned char *at = add(params, type, size);
    if (at != NULL && size > 0) {
        memcpy(at, bytes, size);
    }
}

void db_params_done(struct db_params *params)
{
    free(params->storage);
    *params = (struct db_params){.count = 0};
}

void db_params_clear(struct db_params *params)
{
    params->count = 0;
    params->storage_size = 0;
    params->element_type = DB_VOID;
    err_clear(&params->err);
}

void db_params_null(struct db_params *params, enum db_type type)
{
    if (params->element_type == DB_VOID) {
        next_item(params, type)->is_null = true;
        return;
    }
    assert(params->element_type == type);
    unsigned char *at = reserve(params, 4);
    if (at != NULL) {
        put_big_endian(at, UINT32_MAX, 4);
        params->element_count++;
        params->has_null_element = true;
    }
}

void db_params_bool(struct db_params *params, bool value)
{
    add_integer(params, DB_BOOL, value ? 1 : 0, 1);
}

void db_params_int2(struct db_params *params, int16_t value)
{
    add_integer(params, DB_INT2, (uint16_t)value, 2);
}

void db_params_int4(struct db_params *params, int32_t value)
{
    add_integer(params, DB_INT4, (uint32_t)value, 4);
}

void db_params_int8(struct db_params *params, int64_t value)
{
    add_integer(params, DB_INT8, (uint64_t)value, 8);
}

void db_params_float8(struct db_params *params, double value)
{
    uint64_t bits;
    static_assert(sizeof bits == sizeof value, "float8 is an IEEE double");
    memcpy(&bits, &value, sizeof bits);
    add_integer(params, DB_FLOAT8, bits, 8);
}

void db_params_xid8(struct db_params *params, uint64_t value)
{
    add_integer(params, DB_XID8, value, 8);
}

void db_params_uuid(struct db_params *params, const unsigned char *uuid)
{
    if (uuid == NULL) {
        db_params_null(params, DB_UUID);
        return;
    }
    unsigned char *at = add(params, DB_UUID, UUID_SIZE);
    if (at != NULL) {
        memcpy(at, uuid, UUID_SIZE);
    }
}

void db_params_timestamptz(struct db_params *params, int64_t unix_us)
{
    add_integer(params, DB_TIMESTAMPTZ, (uint64_t)(unix_us - POSTGRES_EPOCH_US), 8);
}

void db_params_bytea(struct db_params *params, struct bytes bytes)
{
    if (bytes.data == NULL) {
        db_params_null(params, DB_BYTEA);
    } else {
        add_bytes(params, DB_BYTEA, bytes.data, bytes.size);
    }
}

void db_params_text(struct db_params *params, const char *text)
{
    if (text == NULL) {
        db_params_null(params, DB_TEXT);
    } else {
        add_bytes(params, DB_TEXT, text, strlen(text));
    }
}

void db_params_text_bytes(struct db_params *params, struct bytes text)
{
    if (text.data == NULL) {
        db_params_null(params, DB_TEXT);
        return;
    }
    if (memchr(text.data, '\0', text.size) != NULL) {
        (void)err_set(&params->err, ERR_PERMANENT, "text_has_nul", "a text must not contain a NUL byte");
    }
    add_bytes(params, DB_TEXT, text.data, text.size);
}

void db_params_literal(struct db_params *params, const char *text)
{
    assert(params->element_type == DB_VOID);
    struct db_param *item = next_item(params, DB_VOID);
    item->is_text = true;
    item->is_null = text == NULL;
    item->borrowed = text;
    item->size = text == NULL ? 0 : strlen(text);
}

void db_params_array_open(struct db_params *params, enum db_type element_type)
{
    assert(params->element_type == DB_VOID);
    next_item(params, db_type_array(element_type));
    params->element_type = element_type;
    params->element_count = 0;
    params->has_null_element = false;
    (void)reserve(params, ARRAY_HEADER_SIZE);
}

void db_params_array_close(struct db_params *params)
{
    assert(params->element_type != DB_VOID);
    enum db_type element_type = params->element_type;
    params->element_type = DB_VOID;
    if (params->err.kind != ERR_NONE) {
        return;
    }
    struct db_param *item = &params->items[params->count - 1];
    unsigned char *header = params->storage + item->offset;
    bool is_empty = params->element_count == 0;
    put_big_endian(header, is_empty ? 0 : 1, 4);
    put_big_endian(header + 4, params->has_null_element ? 1 : 0, 4);
    put_big_endian(header + 8, (uint64_t)element_type, 4);
    if (is_empty) {
        params->storage_size = item->offset + ARRAY_HEADER_SIZE_EMPTY;
    } else {
        put_big_endian(header + 12, (uint32_t)params->element_count, 4);
        put_big_endian(header + 16, 1, 4);
    }
    item->size = params->storage_size - item->offset;
}
