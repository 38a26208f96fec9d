/* SPDX-License-Identifier: Apache-2.0
 *
 * Statements that can be a sink, and those with which events would be taken for
 * applied though nothing was done with them.
 */
#include "cmocka_all.h"

#include "sinks/sink_statement.h"

struct statement_case {
    const char *name;
    const char *statement;
    const char *text; /* Part of what is wrong; NULL: nothing is. */
};

#define NO_EFFECT "must be one INSERT"
#define NO_EVENTS "does not read"

static const struct statement_case cases[] = {
    {"an insert", "INSERT INTO t SELECT ce_id FROM events", NULL},
    {"an update, in small letters", "update t set n = 1 from events e where e.kafka_key = t.id", NULL},
    {"a delete", "DELETE FROM t USING events WHERE id = kafka_key", NULL},
    {"a merge", "MERGE INTO t USING events ON id = ce_id WHEN NOT MATCHED THEN INSERT VALUES (ce_id)", NULL},
    {"a statement with a WITH", "WITH a AS (SELECT * FROM events) INSERT INTO t SELECT * FROM a", NULL},
    {"a comment before it", "-- what it is for\n/* select */ INSERT INTO t SELECT 1 FROM events", NULL},
    {"strings and dollars", "insert into t select 'it''s', $x$ -- $x$, \"a\"\"b\" from events", NULL},
    {"a table of this name that is filled from them", "INSERT INTO events SELECT 1 FROM events", NULL},
    {"a constant", "SELECT 1", NO_EFFECT},
    {"a look at the events", "SELECT * FROM events", NO_EFFECT},
    {"a WITH that only looks", "WITH a AS (SELECT 1) SELECT * FROM events", NO_EFFECT},
    {"a writing word that is a string only", "SELECT 'insert', count(*) FROM events", NO_EFFECT},
    {"nothing", "", NO_EFFECT},
    {"an insert without the events", "INSERT INTO t VALUES (1)", NO_EVENTS},
    {"events in a comment only", "INSERT INTO t VALUES (1) -- events", NO_EVENTS},
    {"events in a string only", "INSERT INTO t VALUES ('events')", NO_EVENTS},
    {"events as a target only", "INSERT INTO events VALUES (1)", NO_EVENTS},
    {"a part of a word", "INSERT INTO t SELECT 1 FROM my_events", NO_EVENTS},
    {"a string that does not end", "INSERT INTO t SELECT 'x FROM events", NO_EVENTS},
};

static void test_sink_statement(void **state)
{
    const struct statement_case *row = *state;
    struct err err = ERR_INIT;
    bool is_good = sink_statement_check(row->statement, &err);
    assert_int_equal(is_good, row->text == NULL);
    if (row->text != NULL) {
        assert_non_null(strstr(err.text, row->text));
        assert_string_equal(err.code, "sink_statement_invalid");
    }
}

int main(void)
{
    struct CMUnitTest tests[COUNT_OF(cases)];
    FILL_CASES(tests, test_sink_statement, cases);
    return cmocka_run_group_tests_name("test_sink_statement", tests, NULL, NULL);
}
