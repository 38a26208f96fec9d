/* SPDX-License-Identifier: Apache-2.0
 *
 * No role that reads reaches another tenant's row: each table that has a tenant
 * is looked at as each kind of reader. The programs' own roles and their routes
 * are tried over HTTP (flow.test_producer_tenants).
 */
#include "cmocka_all.h"

#include <stdlib.h>

#include "db_private.h"
#include "db_fixture.h"
#include "postgres_fixture.h"

#define READER "onceward_test_reader"    /* May see the tenant "one". */
#define BOTH "onceward_test_reader_both" /* May see "one" and "two". */
#define NONE "onceward_test_reader_none" /* A reader of nobody. */

static const char *const tables[] = {"requests", "documents", "submissions", "outbox", "deferred"};

#define TABLE_COUNT (sizeof tables / sizeof *tables)

static struct postgres_fixture *postgres;

/* As many rows as this role sees, after the statements. */
static int64_t count_as(const char *role, const char *before, const char *table, const char *condition)
{
    char sql[300];
    static struct db_statement counting; /* A connection knows a statement by its address, and lives for one. */
    struct err err = ERR_INIT;
    struct db *db = db_fixture_open(postgres_fixture_conninfo_as(postgres, role));
    DB_RESULT(result);
    assert_in_range(snprintf(sql, sizeof sql, "SELECT count(*) FROM onceward.%s WHERE %s", table, condition), 1,
                    sizeof sql - 1);
    counting = (struct db_statement){.sql = sql, .columns = {DB_INT8}};
    assert_ok(before[0] == '\0' || db_exec_script(db, before, &err), &err);
    assert_ok(db_exec_row(db, &counting, NULL, &result, &err), &err);
    int64_t count = db_get_int8(result, 0, 0);
    db_close(&db);
    return count;
}

static void test_tenants_readers_see_their_own_rows_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        assert_int_equal(count_as(READER, "", tables[i], "true"), 1);
        assert_int_equal(count_as(READER, "", tables[i], "tenant = 'two'"), 0);
        assert_int_equal(count_as(BOTH, "", tables[i], "true"), 2);
        assert_int_equal(count_as(NONE, "", tables[i], "true"), 0);
    }
}

/* Nothing that a session can say makes it another one's. */
static void test_tenants_no_setting_widens_the_view(void **state)
{
    (void)state;
    static const char *const tries[] = {
        "SET onceward.tenant = 'two'",
        "SET row_security = on",
        ("SET search_path = onceward; CREATE TEMP TABLE tenant_readers (role name, tenant text);"
         "INSERT INTO tenant_readers VALUES (current_user, 'two')"),
        "SET ROLE onceward_reader",
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        for (size_t j = 0; j < TABLE_COUNT; j++) {
            assert_int_equal(count_as(READER, tries[i], tables[j], "tenant = 'two'"), 0);
        }
    }
    assert_int_equal(count_as(READER, "", "tenant_readers", "true"), 1); /* Nor does it learn who else there is. */
}

struct denied_case {
    const char *name;
    const char *sql;
};

static const struct denied_case denied_cases[] = {
    {"with row security off", "SET row_security = off; SELECT * FROM onceward.requests"},
    {"through the view of events", "SELECT * FROM onceward.events"},
    {"through the view of deliveries", "SELECT * FROM onceward.deliveries"},
    {"past the parent of the outbox", "SELECT * FROM onceward.outbox_000000000000001"},
    {"among the stored answers", "SELECT * FROM onceward.idempotency_keys"},
    {"among the tokens", "SELECT * FROM onceward.tokens"},
    {"among the dead letters", "SELECT * FROM onceward.dead_letters"},
    {"in an inbox", "SELECT * FROM onceward.inbox"},
    {"by giving itself the tenant", "INSERT INTO onceward.tenant_readers VALUES (current_user, 'two')"},
    {"by changing its tenant", "UPDATE onceward.tenant_readers SET tenant = 'two'"},
    {"by writing a request", "UPDATE onceward.requests SET tenant = 'one'"},
    {"as the producer", "SET ROLE onceward_producer"},
};

static void test_tenants_denied(void **state)
{
    const struct denied_case *row = *state;
    struct err err = ERR_INIT;
    struct db *db = db_fixture_open(postgres_fixture_conninfo_as(postgres, READER));
    assert_false(db_exec_script(db, row->sql, &err));
    assert_string_equal(err.code, "42501");
    db_close(&db);
}

/* A table with a tenant that is added later cannot be forgotten. */
static void test_tenants_every_table_with_a_tenant_is_guarded(void **state)
{
    (void)state;
    char names[1024];
    postgres_fixture_text(postgres,
                          "SELECT coalesce(string_agg(relname, ' '), '') FROM pg_class c JOIN pg_namespace n"
                          " ON n.oid = relnamespace WHERE nspname = 'onceward' AND relkind IN ('r', 'p')"
                          " AND NOT relispartition AND NOT relrowsecurity AND EXISTS (SELECT FROM pg_attribute"
                          " WHERE attrelid = c.oid AND attname = 'tenant')",
                          names, sizeof names);
    assert_string_equal(names, "");
    postgres_fixture_text(postgres,
                          "SELECT coalesce(string_agg(relname, ' '), '') FROM pg_class c JOIN pg_namespace n"
                          " ON n.oid = relnamespace WHERE nspname = 'onceward' AND relrowsecurity AND relname <>"
                          " 'tenant_readers' AND 2 <> (SELECT count(*) FROM pg_policy WHERE polrelid = c.oid"
                          " AND polpermissive)",
                          names, sizeof names);
    assert_string_equal(names, "");
}

/* The relay reads the outbox by windows of ids, and nothing else may be planned for that. */
static void test_tenants_guards_do_not_change_the_relays_plan(void **state)
{
    (void)state;
    char plan[4096];
    postgres_fixture_exec(postgres, "CREATE FUNCTION public.plan_of(sql text) RETURNS SETOF text LANGUAGE plpgsql AS $$"
                                    "BEGIN PERFORM set_config('enable_seqscan', 'off', true),"
                                    " set_config('role', 'onceward_relay', true); RETURN NEXT current_user;"
                                    " RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || sql; END $$");
    postgres_fixture_text(postgres,
                          "SELECT string_agg(line, E'\\n') FROM public.plan_of($q$SELECT id FROM onceward.outbox o"
                          " WHERE id > 5 AND id <= 1000 AND lane = ANY ('{0,1}') AND"
                          " pg_visible_in_snapshot(xid, '9:9:') ORDER BY id LIMIT 10$q$) AS p (line)",
                          plan, sizeof plan);
    assert_non_null(strstr(plan, "onceward_relay"));
    assert_non_null(strstr(plan, "Index Cond: ((id > 5) AND (id <= 1000))"));
    assert_null(strstr(plan, "SubPlan"));
}

#define OUTBOX_ROW "gen_random_uuid(), 't', 'k', 'x', '/s', now(), ''"

static int setup_group(void **state)
{
    (void)state;
    postgres = postgres_fixture_new();
    if (postgres == NULL) {
        return -1;
    }
    postgres_fixture_exec(postgres, "DO $$ DECLARE name text; BEGIN FOREACH name IN ARRAY ARRAY['" READER "', '" BOTH
                                    "', '" NONE "'] LOOP BEGIN"
                                    " EXECUTE format('CREATE ROLE %I LOGIN', name);"
                                    " EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END;"
                                    " EXECUTE format('GRANT onceward_reader TO %I', name); END LOOP; END $$");
    postgres_fixture_exec(postgres, "INSERT INTO onceward.tenant_readers (role, tenant) VALUES ('" READER "', 'one'),"
                                    " ('" BOTH "', 'one'), ('" BOTH "', 'two')");
    postgres_fixture_exec(
        postgres,
        "INSERT INTO onceward.requests (tenant, request_id, type, fingerprint) SELECT t, gen_random_uuid(), 'x', ''"
        " FROM unnest(ARRAY['one', 'two']) t;"
        "INSERT INTO onceward.documents (tenant, request_id, document_id, position, name, media_type, size, sha256,"
        " content) SELECT tenant, request_id, 'd', 1, 'n', 'm', 0, sha256(''), '' FROM onceward.requests;"
        "INSERT INTO onceward.submissions SELECT tenant, request_id, gen_random_uuid(), now() FROM onceward.requests;"
        "INSERT INTO onceward.outbox (tenant, event_id, topic, key, type, source, time, value)"
        " SELECT tenant, " OUTBOX_ROW " FROM onceward.requests;"
        "INSERT INTO onceward.deferred (id, lane, tenant, event_id, topic, key, type, source, time, header_names,"
        " header_values, value, state, reason_code, reason) SELECT id, lane, tenant, event_id, topic, key, type, "
        "source,"
        " time, header_names, header_values, value, 'parked', 'c', 'r' FROM onceward.outbox");
    return 0;
}

static int teardown_group(void **state)
{
    (void)state;
    postgres_fixture_free(&postgres);
    return 0;
}

#define DENIED_COUNT (sizeof denied_cases / sizeof *denied_cases)

int main(void)
{
    struct CMUnitTest tests[DENIED_COUNT + 4] = {
        cmocka_unit_test(test_tenants_readers_see_their_own_rows_alone),
        cmocka_unit_test(test_tenants_no_setting_widens_the_view),
        cmocka_unit_test(test_tenants_every_table_with_a_tenant_is_guarded),
        cmocka_unit_test(test_tenants_guards_do_not_change_the_relays_plan),
    };
    for (size_t i = 0; i < DENIED_COUNT; i++) {
        tests[4 + i] = (struct CMUnitTest){.name = denied_cases[i].name,
                                           .test_func = test_tenants_denied,
                                           .initial_state = (void *)(uintptr_t)&denied_cases[i]};
    }
    return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
