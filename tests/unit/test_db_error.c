/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of Postgres' errors: each row by its SQLSTATE and its name in the manual.
 */
#include "cmocka_all.h"

#include "db_private.h"

struct error_case {
    const char *name;
    const char *sqlstate;
    enum err_kind kind;
};

static const struct error_case cases[] = {
    {"no SQLSTATE", NULL, ERR_TRANSIENT},
    {"empty SQLSTATE", "", ERR_TRANSIENT},
    {"08006 connection_failure", "08006", ERR_TRANSIENT},
    {"0A000 feature_not_supported", "0A000", ERR_FATAL},
    {"21000 cardinality_violation", "21000", ERR_PERMANENT},
    {"22021 character_not_in_repertoire", "22021", ERR_PERMANENT},
    {"22P02 invalid_text_representation", "22P02", ERR_PERMANENT},
    {"23505 unique_violation", "23505", ERR_PERMANENT},
    {"23514 check_violation", "23514", ERR_PERMANENT},
    {"25006 read_only_sql_transaction", "25006", ERR_TRANSIENT},
    {"25P02 in_failed_sql_transaction", "25P02", ERR_FATAL},
    {"25P03 idle_in_transaction_session_timeout", "25P03", ERR_TRANSIENT},
    {"26000 invalid_sql_statement_name", "26000", ERR_FATAL},
    {"28P01 invalid_password", "28P01", ERR_FATAL},
    {"3D000 invalid_catalog_name", "3D000", ERR_FATAL},
    {"40001 serialization_failure", "40001", ERR_TRANSIENT},
    {"40002 transaction_integrity_constraint_violation", "40002", ERR_PERMANENT},
    {"40P01 deadlock_detected", "40P01", ERR_TRANSIENT},
    {"42501 insufficient_privilege", "42501", ERR_FATAL},
    {"42P01 undefined_table", "42P01", ERR_FATAL},
    {"53100 disk_full", "53100", ERR_TRANSIENT},
    {"53300 too_many_connections", "53300", ERR_TRANSIENT},
    {"54000 program_limit_exceeded", "54000", ERR_PERMANENT},
    {"55000 object_not_in_prerequisite_state", "55000", ERR_TRANSIENT},
    {"55P03 lock_not_available", "55P03", ERR_TRANSIENT},
    {"57014 query_canceled", "57014", ERR_TRANSIENT},
    {"57P01 admin_shutdown", "57P01", ERR_TRANSIENT},
    {"57P04 database_dropped", "57P04", ERR_FATAL},
    {"58030 io_error", "58030", ERR_TRANSIENT},
    {"P0001 raise_exception", "P0001", ERR_PERMANENT},
    {"XX000 internal_error", "XX000", ERR_TRANSIENT},
    {"XX001 data_corrupted", "XX001", ERR_FATAL},
    {"an unknown class", "ZZ999", ERR_PERMANENT},
};

static void test_db_error_kind_of(void **state)
{
    const struct error_case *row = *state;
    assert_int_equal(db_error_kind(row->sqlstate), row->kind);
}

int main(void)
{
    return RUN_CASES("test_db_error", test_db_error_kind_of, cases);
}
