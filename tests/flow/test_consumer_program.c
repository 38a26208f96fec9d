/* SPDX-License-Identifier: Apache-2.0
 *
 * onceward-consumer as a command: help, version, and every mistake at once.
 */
#include "cmocka_all.h"

#include "program.h"

#define WAIT_MS 10000

struct call_case {
    const char *name;
    const char *arguments[12];
    int status;
    const char *says[5];
};

static const struct call_case cases[] = {
    {"help", {"--help"}, 0, {"onceward-consumer", "--sink-columns", "--start"}},
    {"version", {"--version"}, 0, {"onceward-consumer"}},
    {"an option that does not exist", {"--no-such-option", "1"}, 2, {"no-such-option"}},
    {"all mistakes at once",
     {"--batch-records-max", "0", "--topics", "t"},
     2,
     {"database", "consumer", "batch_records_max"}},
    {"a start that is none",
     {"--database=dbname=x", "--consumer=c", "--topics=t", "--sink-sql=x", "--start=tomorrow", "--check"},
     2,
     {"start", "tomorrow"}},
    {"a statement that does nothing with the events",
     {"--database=dbname=x", "--consumer=c", "--topics=t", "--sink-sql=SELECT 1", "--check"},
     2,
     {"must be one INSERT"}},
    {"no sink", {"--database", "x=y", "--consumer", "c", "--topics", "t", "--check"}, 2, {"sink_table and sink_sql"}},
    {"an unguarded mapping",
     {"--database=dbname=x", "--consumer=c", "--topics=t", "--sink-table=t", "--sink-key=a",
      "--sink-columns=a=ce_id,b=value", "--check"},
     2,
     {"ce_sequence"}},
    {"good settings",
     {"--database=dbname=x", "--consumer=c", "--topics=t", "--sink-sql=insert into t select 1 from events", "--check"},
     0,
     {NULL}},
    {"a property that delivery depends on",
     {"--database=dbname=x", "--consumer=c", "--topics=t", "--sink-sql=insert into t select 1 from events",
      "--kafka.auto.offset.reset=latest", "--listen=127.0.0.1:0"},
     1,
     {"auto.offset.reset cannot be set"}},
};

static void test_consumer_program_answers(void **state)
{
    const struct call_case *row = *state;
    struct program *program = program_start("onceward-consumer", row->arguments, NULL);
    int status = program_wait(program, WAIT_MS);
    for (size_t i = 0; i < COUNT_OF(row->says) && row->says[i] != NULL; i++) {
        if (!program_logs(program, row->says[i], 0)) {
            program_show_log(program);
            fail_msg("it does not say \"%s\"", row->says[i]);
        }
    }
    assert_int_equal(status, row->status);
    program_free(&program);
}

int main(void)
{
    return RUN_CASES("consumer_program", test_consumer_program_answers, cases);
}
