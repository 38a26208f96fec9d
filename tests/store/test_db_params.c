/* SPDX-License-Identifier: Apache-2.0
 *
 * Every type as a parameter and as a column, on a real server.
 */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session_fixture.h"

static const struct db_statement ECHO = {
    .sql = "SELECT $1::bool, $2::int2, $3::int4, $4::int8, $5::float8, $6::xid8, $7::uuid, $8::timestamptz, $9::bytea,"
           " $10::text, $11::text, $12::pg_snapshot::text",
    .columns = {DB_BOOL, DB_INT2, DB_INT4, DB_INT8, DB_FLOAT8, DB_XID8, DB_UUID, DB_TIMESTAMPTZ, DB_BYTEA, DB_TEXT,
                DB_TEXT, DB_TEXT},
};

static void test_db_exec_carries_every_type_both_ways(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    const unsigned char uuid[16] = {1, 2, 3, 255, 0, 9, [15] = 16};
    DB_PARAMS(params);
    db_params_bool(&params, true);
    db_params_int2(&params, -2);
    db_params_int4(&params, -70000);
    db_params_int8(&params, INT64_MIN);
    db_params_float8(&params, 0.1);
    db_params_xid8(&params, UINT64_C(0xFFFFFFFF00000001));
    db_params_uuid(&params, uuid);
    db_params_timestamptz(&params, INT64_C(1700000000123456));
    db_params_bytea(&params, (struct bytes){.data = "a\0b", .size = 3});
    db_params_text(&params, "Zürich ✓");
    db_params_text(&params, NULL);
    db_params_literal(&params, "10:20:10,14");
    DB_RESULT(result);
    assert_ok(db_exec_row(fixture->db, &ECHO, &params, &result, &err), &err);
    assert_true(db_get_bool(result, 0, 0));
    assert_int_equal(db_get_int2(result, 0, 1), -2);
    assert_int_equal(db_get_int4(result, 0, 2), -70000);
    assert_true(db_get_int8(result, 0, 3) == INT64_MIN);
    assert_true(db_get_float8(result, 0, 4) == 0.1);
    assert_true(db_get_xid8(result, 0, 5) == UINT64_C(0xFFFFFFFF00000001));
    assert_memory_equal(db_get_uuid(result, 0, 6), uuid, 16);
    assert_true(db_get_timestamptz(result, 0, 7) == INT64_C(1700000000123456));
    struct bytes bytes = db_get_bytes(result, 0, 8);
    assert_int_equal(bytes.size, 3);
    assert_memory_equal(bytes.data, "a\0b", 3);
    assert_string_equal(db_get_text(result, 0, 9), "Zürich ✓");
    assert_null(db_get_text_or_null(result, 0, 10));
    assert_string_equal(db_get_text(result, 0, 11), "10:20:10,14");
}

static void test_db_exec_carries_arrays_with_nulls(void **state)
{
    static const struct db_statement ARRAYS = {
        .sql = "SELECT $1::int8[], $2::text[], $3::uuid[], array_length($2, 1), ($2)[1]",
        .columns = {DB_INT8_ARRAY, DB_TEXT_ARRAY, DB_UUID_ARRAY, DB_INT4, DB_TEXT},
    };
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    DB_PARAMS(params);
    for (int round = 0; round < 2; round++) {
        db_params_clear(&params);
        db_params_array_open(&params, DB_INT8);
        for (int64_t i = 0; i < 1000; i++) {
            db_params_int8(&params, i * 1000000007);
        }
        db_params_array_close(&params);
        db_params_array_open(&params, DB_TEXT);
        db_params_text(&params, "one");
        db_params_text(&params, NULL);
        db_params_text(&params, "");
        db_params_array_close(&params);
        db_params_array_open(&params, DB_UUID);
        db_params_array_close(&params);
        DB_RESULT(result);
        assert_ok(db_exec_row(fixture->db, &ARRAYS, &params, &result, &err), &err);
        struct db_array array = db_get_array(result, 0, 0, DB_INT8);
        assert_int_equal(array.count, 1000);
        struct bytes element;
        for (int64_t i = 0; db_array_next(&array, &element); i++) {
            assert_true(db_decode_int8(element) == i * 1000000007);
        }
        array = db_get_array(result, 0, 1, DB_TEXT);
        assert_true(db_array_next(&array, &element));
        assert_memory_equal(element.data, "one", 3);
        assert_true(db_array_next(&array, &element));
        assert_null(element.data);
        assert_true(db_array_next(&array, &element));
        assert_non_null(element.data);
        assert_int_equal(element.size, 0);
        assert_false(db_array_next(&array, &element));
        array = db_get_array(result, 0, 2, DB_UUID);
        assert_false(db_array_next(&array, &element));
        assert_int_equal(db_get_int4(result, 0, 3), 3);
        assert_string_equal(db_get_text(result, 0, 4), "one");
    }
}

static void test_db_exec_refuses_text_with_nul(void **state)
{
    static const struct db_statement TEXT = {.sql = "SELECT $1::text", .columns = {DB_TEXT}};
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    DB_PARAMS(params);
    db_params_text_bytes(&params, (struct bytes){.data = "a\0b", .size = 3});
    assert_false(db_exec(fixture->db, &TEXT, &params, NULL, &err));
    assert_int_equal(err.kind, ERR_PERMANENT);
    assert_string_equal(err.code, "text_has_nul");
    assert_true(db_is_usable(fixture->db));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_DB(test_db_exec_carries_every_type_both_ways),
        ON_DB(test_db_exec_carries_arrays_with_nulls),
        ON_DB(test_db_exec_refuses_text_with_nul),
        POOLED(test_db_exec_carries_every_type_both_ways, setup, teardown),
        POOLED(test_db_exec_carries_arrays_with_nulls, setup, teardown),
        POOLED(test_db_exec_refuses_text_with_nul, setup, teardown),
    };
    return cmocka_run_group_tests_name("test_db_params", tests, setup_group, teardown_group);
}
