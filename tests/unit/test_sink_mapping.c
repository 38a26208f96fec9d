/* SPDX-License-Identifier: Apache-2.0
 *
 * From table mappings to statements, and the mappings that are refused.
 */
#include "cmocka_all.h"

#include "sinks/sink_mapping.h"

struct mapping_case {
    const char *name;
    const char *keys[3];
    const char *pairs[5];
    const char *code; /* NULL: the statement is sql. */
    const char *sql;
};

static const struct db_sink_column columns[] = {
    {"id", "text"}, {"seq", "bigint"}, {"digits", "text"}, {"body", "bytea"}, {"doc", "jsonb"}, {"a\"b", "integer"},
};

static const struct mapping_case cases[] = {
    {"an upsert with its guard",
     {"id"},
     {"id=ce_id", "seq=ce_sequence", "doc=/data/x~1y'z"},
     NULL,
     "INSERT INTO public.t AS target (\"id\", \"seq\", \"doc\") SELECT \"id\", \"seq\", \"doc\" FROM (SELECT DISTINCT "
     "ON "
     "(\"id\") * FROM (SELECT e.ce_id::text AS \"id\", e.ce_sequence::bigint AS \"seq\", (e.value_json "
     "#>ARRAY['data','x/y''z']::text[])::jsonb AS \"doc\", e.ord AS \"onceward ord\" FROM events e) AS fresh ORDER BY "
     "\"id\", \"seq\" DESC, \"onceward ord\" DESC) AS newest ORDER BY \"id\" ON CONFLICT (\"id\") DO UPDATE SET "
     "\"seq\" = "
     "excluded.\"seq\", \"doc\" = excluded.\"doc\" WHERE target.\"seq\" IS NULL OR target.\"seq\" < excluded.\"seq\""},
    {"rows that are only added, bytes and quoted names",
     {NULL},
     {"body=value", "a\"b=/n"},
     NULL,
     "INSERT INTO public.t AS target (\"body\", \"a\"\"b\") SELECT \"body\", \"a\"\"b\" FROM (SELECT "
     "e.value_bytes::bytea AS \"body\", (e.value_json #>> ARRAY['n']::text[])::integer AS \"a\"\"b\", e.ord AS "
     "\"onceward "
     "ord\" FROM events e) AS fresh ORDER BY \"onceward ord\""},
    {"keys alone",
     {"id"},
     {"id=kafka_key"},
     NULL,
     "INSERT INTO public.t AS target (\"id\") SELECT \"id\" FROM (SELECT DISTINCT ON (\"id\") * FROM (SELECT "
     "e.kafka_key::text AS \"id\", e.ord AS \"onceward ord\" FROM events e) AS fresh ORDER BY \"id\", \"onceward ord\" "
     "DESC) AS newest ORDER BY \"id\" ON CONFLICT (\"id\") DO NOTHING"},
    {"a sequence as text keeps its width",
     {NULL},
     {"digits=ce_sequence"},
     NULL,
     "INSERT INTO public.t AS target (\"digits\") SELECT \"digits\" FROM (SELECT lpad(e.ce_sequence::text, 20, "
     "'0')::text AS \"digits\", e.ord AS \"onceward ord\" FROM events e) AS fresh ORDER BY \"onceward ord\""},
    {"no pairs", {NULL}, {NULL}, "mapping_invalid", NULL},
    {"no equals sign", {NULL}, {"id"}, "mapping_invalid", NULL},
    {"an unknown path", {NULL}, {"id=ce_nothing"}, "mapping_invalid", NULL},
    {"a pointer with a bad escape", {NULL}, {"id=/a~2"}, "mapping_invalid", NULL},
    {"a column twice", {NULL}, {"id=ce_id", "id=ce_type"}, "mapping_invalid", NULL},
    {"a key that is not mapped", {"seq"}, {"id=ce_id"}, "mapping_invalid", NULL},
    {"an upsert without guard", {"id"}, {"id=ce_id", "doc=value"}, "mapping_unguarded", NULL},
    {"a column that the table lacks", {NULL}, {"other=ce_id"}, "mapping_invalid", NULL},
};

static size_t count_of(const char *const *texts, size_t count_max)
{
    size_t count = 0;
    while (count < count_max && texts[count] != NULL) {
        count++;
    }
    return count;
}

static void test_sink_mapping_makes_a_statement(void **state)
{
    const struct mapping_case *row = *state;
    struct sink_mapping mapping = {
        .table = "t",
        .keys = row->keys,
        .key_count = count_of(row->keys, COUNT_OF(row->keys)),
        .pairs = row->pairs,
        .pair_count = count_of(row->pairs, COUNT_OF(row->pairs)),
    };
    struct err err = ERR_INIT;
    struct buf sql;
    buf_init(&sql, 65536);
    bool is_good = sink_mapping_check(&mapping, &err) &&
                   sink_mapping_sql(&mapping, "public.t", columns, COUNT_OF(columns), &sql, &err);
    if (row->code != NULL) {
        assert_false(is_good);
        assert_string_equal(err.code, row->code);
    } else {
        assert_true(is_good);
        assert_string_equal(sql.data, row->sql);
    }
    buf_done(&sql);
}

int main(void)
{
    return RUN_CASES("sink_mapping", test_sink_mapping_makes_a_statement, cases);
}
