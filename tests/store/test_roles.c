/* SPDX-License-Identifier: Apache-2.0
 *
 * Each role can do what its program needs, and nothing else: every row is one
 * statement, tried in a transaction that is taken back.
 */
#include "cmocka_all.h"

#include <stdlib.h>

#include "db_private.h"
#include "db_fixture.h"
#include "postgres_fixture.h"

#define ALLOWED ""
#define DENIED "42501"

struct role_case {
    const char *name;
    const char *role;
    const char *sql;
    const char *code; /* The SQLSTATE that is expected, "" for success. */
};

#define PRODUCER "onceward_producer"
#define RELAY "onceward_relay"
#define CONSUMER "onceward_consumer"
#define OPERATOR "onceward_operator"
#define PUBLISHER "onceward_publisher"

#define OUTBOX_ROW "gen_random_uuid(), 't', 'k', 'x', '/s', now(), ''"
#define OUTBOX_ROW_DEFERRED "gen_random_uuid(), 't', 'k', 'x', '/s', now(), '{}', '{}', 'a', 'published', 'c', 'r'"
#define PROGRESS_COLUMNS                                                                                               \
    "(lane, seq, owner, incarnation, attempt, kind, snapshot_from, from_floor, position, claimed_to, "                 \
    "system_identifier)"
#define PROGRESS_ROW "0, 1, 'r', gen_random_uuid(), gen_random_uuid(), 'taken', '3:3:', 0, 0, 0, 1"
#define CURSOR_COLUMNS                                                                                                 \
    "(consumer, scope, topic, partition, seq, owner, incarnation, attempt, kind, next_offset, cluster_id)"
#define CURSOR_ROW "'c', 'live', 't', 0, 0, 'o', gen_random_uuid(), gen_random_uuid(), 'registered', 0, 'x'"

static const struct role_case cases[] = {
    /* What each program does. */
    {"producer submits", PRODUCER,
     "INSERT INTO onceward.requests (tenant, request_id, type, fingerprint) VALUES ('t', gen_random_uuid(), 'x', '');"
     "SELECT FROM onceward.requests FOR NO KEY UPDATE SKIP LOCKED;"
     "INSERT INTO onceward.submissions VALUES ('t', gen_random_uuid(), gen_random_uuid(), now())"
     " ON CONFLICT DO NOTHING;"
     "INSERT INTO onceward.outbox (tenant, event_id, topic, key, type, source, time, value)"
     " VALUES ('t', " OUTBOX_ROW ") RETURNING id",
     ALLOWED},
    {"producer stores a document", PRODUCER,
     "INSERT INTO onceward.documents (tenant, request_id, document_id, position, name, media_type, size, sha256,"
     " content) VALUES ('t', gen_random_uuid(), 'd', 1, 'n', 'm', 0, sha256(''), '')",
     ALLOWED},
    {"producer removes a document's bytes", PRODUCER, "UPDATE onceward.documents SET content = NULL, name = ''",
     ALLOWED},
    {"operator erases", OPERATOR,
     "UPDATE onceward.documents SET content = NULL, name = ''; UPDATE onceward.requests SET data = NULL;"
     "UPDATE onceward.outbox SET value = '{\"erased\":true}'; UPDATE onceward.deferred SET value = '{\"erased\":true}';"
     "UPDATE onceward.idempotency_keys SET body = ''",
     ALLOWED},
    {"producer makes partitions ahead", PRODUCER, "SELECT onceward.outbox_make_partitions()", ALLOWED},
    {"producer reads what became of events", PRODUCER,
     "SELECT * FROM onceward.events e LEFT JOIN LATERAL onceward.event_place(e.lane, e.outbox_id) ON true;"
     "SELECT * FROM onceward.deliveries; SELECT * FROM onceward.flow; SELECT * FROM onceward.routes;"
     "SELECT consumer, scope, topic, partition, seq FROM onceward.consumer_progress",
     ALLOWED},
    {"relay takes a lane and writes its log", RELAY,
     "INSERT INTO onceward.relays (relay, incarnation, until) VALUES ('r', gen_random_uuid(), now());"
     "UPDATE onceward.lanes SET owner = 'r' WHERE lane = 0;"
     "INSERT INTO onceward.lane_progress " PROGRESS_COLUMNS " VALUES (" PROGRESS_ROW ") ON CONFLICT DO NOTHING;"
     "DELETE FROM onceward.lane_progress WHERE created_at < now() - interval '1 hour'",
     ALLOWED},
    {"relay reads the outbox and its sequence", RELAY,
     "SELECT * FROM onceward.outbox WHERE id > 0 ORDER BY id LIMIT 1;"
     "SELECT pg_sequence_last_value('onceward.outbox_id_seq'), pg_current_xact_id(), pg_current_snapshot(),"
     " (SELECT system_identifier FROM pg_control_system()), pg_walfile_name(pg_current_wal_lsn())",
     ALLOWED},
    {"relay defers", RELAY,
     "INSERT INTO onceward.deferred (id, lane, tenant, event_id, topic, key, type, source, time, header_names,"
     " header_values, value, state, reason_code, reason) VALUES (1, 0, 't', gen_random_uuid(), 't', 'k', 'x', '/s',"
     " now(), '{}', '{}', '', 'parked', 'c', 'r'); UPDATE onceward.deferred SET state = 'published'",
     ALLOWED},
    {"consumer says why a partition stands still", CONSUMER,
     "INSERT INTO onceward.consumer_stops VALUES ('c', 'live', 't', 0, 1, gen_random_uuid(), 'code', 'why');"
     "DELETE FROM onceward.consumer_stops; SELECT * FROM onceward.consumer_state",
     ALLOWED},
    {"consumer acknowledges no dead letter", CONSUMER, "UPDATE onceward.dead_letters SET acknowledged_at = now()",
     DENIED},
    {"consumer retires nobody", CONSUMER, "INSERT INTO onceward.consumer_retirements VALUES ('c')", DENIED},
    {"operator retires, acknowledges and looks", OPERATOR,
     "INSERT INTO onceward.consumer_retirements VALUES ('c'); UPDATE onceward.dead_letters SET acknowledged_at = now(),"
     " acknowledged_by = 'b', acknowledged_reason = 'r'; SELECT * FROM onceward.retired_consumers;"
     "SELECT onceward.consumer_is_connected('c')",
     ALLOWED},
    {"operator changes no dead letter", OPERATOR, "UPDATE onceward.dead_letters SET reason = ''", DENIED},
    {"operator deletes no dead letter", OPERATOR, "DELETE FROM onceward.dead_letters", DENIED},
    {"consumer applies", CONSUMER,
     "INSERT INTO onceward.consumer_progress " CURSOR_COLUMNS " VALUES (" CURSOR_ROW ");"
     "INSERT INTO onceward.inbox_scopes (consumer) VALUES ('c');"
     "INSERT INTO onceward.inbox (scope_id, payload_hash, event_id)"
     " VALUES (1, 1, onceward.uuid_v7_floor(now())) ON CONFLICT DO NOTHING RETURNING event_id;"
     "INSERT INTO onceward.inbox_foreign (scope_id, payload_hash, source, id) VALUES (1, 1, 's', 'i');"
     "INSERT INTO onceward.sources VALUES ('c', 's', 'foreign'); UPDATE onceward.inbox SET status = 'failed';"
     "DELETE FROM onceward.consumer_progress WHERE created_at < now() - interval '1 hour'",
     ALLOWED},
    {"consumer dead-letters", CONSUMER,
     "INSERT INTO onceward.dead_letters (consumer, scope, topic, partition, record_offset, record_hash, header_names,"
     " header_values, reason_code, reason) VALUES ('c', 'live', 't', 0, 0, '', '{}', '{}', 'c', 'r')"
     " ON CONFLICT DO NOTHING",
     ALLOWED},
    {"consumer makes partitions ahead", CONSUMER, "SELECT onceward.inbox_make_partitions()", ALLOWED},
    {"operator adds topics and routes", OPERATOR,
     "INSERT INTO onceward.topics (topic) VALUES ('x'); INSERT INTO onceward.routes (type, topic) VALUES ('x', 'x');"
     "INSERT INTO onceward.audit (action, object) VALUES ('a', 'o')",
     ALLOWED},
    {"operator looks at everything", OPERATOR,
     "SELECT * FROM onceward.flow; SELECT * FROM onceward.lane_state; SELECT * FROM onceward.dead_letters;"
     "SELECT * FROM onceward.documents; SELECT * FROM onceward.audit; SELECT * FROM onceward.schema_migrations;"
     "SELECT pg_sequence_last_value('onceward.outbox_id_seq')",
     ALLOWED},
    {"operator makes and revokes a token", OPERATOR,
     "INSERT INTO onceward.tokens (tenant, name, slot, token_hash, scopes) VALUES ('t', 'n', 1, sha256(''), '{read}');"
     "UPDATE onceward.tokens SET revoked_at = now(); SELECT tenant, name, scopes FROM onceward.tokens",
     ALLOWED},
    {"producer looks a token up", PRODUCER,
     "SELECT tenant, scopes FROM onceward.tokens WHERE token_hash = sha256('') AND revoked_at IS NULL", ALLOWED},
    {"publisher publishes", PUBLISHER, "SELECT onceward.publish('known', 'k', 'x', '{}')", ALLOWED},
    {"publisher makes an id to keep", PUBLISHER, "SELECT onceward.uuid_v7()", ALLOWED},

    /* The outbox's identity belongs to nobody. */
    {"producer writes xid", PRODUCER,
     "INSERT INTO onceward.outbox (xid, tenant, event_id, topic, key, type, source, time, value)"
     " VALUES ('3', 't', " OUTBOX_ROW ")",
     DENIED},
    {"producer writes id", PRODUCER,
     "INSERT INTO onceward.outbox (id, tenant, event_id, topic, key, type, source, time, value)"
     " OVERRIDING SYSTEM VALUE VALUES (5, 't', " OUTBOX_ROW ")",
     DENIED},
    {"producer writes lane", PRODUCER,
     "INSERT INTO onceward.outbox (lane, tenant, event_id, topic, key, type, source, time, value)"
     " VALUES (5, 't', " OUTBOX_ROW ")",
     "428C9"},
    {"producer moves the sequence", PRODUCER, "SELECT nextval('onceward.outbox_id_seq')", DENIED},
    {"producer sets the sequence", PRODUCER, "SELECT setval('onceward.outbox_id_seq', 1)", DENIED},
    {"relay moves the sequence", RELAY, "SELECT nextval('onceward.outbox_id_seq')", DENIED},

    /* What is written once stays. */
    {"producer changes an event", PRODUCER, "UPDATE onceward.outbox SET value = ''", DENIED},
    {"producer deletes events", PRODUCER, "DELETE FROM onceward.outbox", DENIED},
    {"producer empties the outbox", PRODUCER, "TRUNCATE onceward.outbox", DENIED},
    {"producer forgets no submission of today", PRODUCER,
     "DELETE FROM onceward.submissions; SELECT 1 / count(*) FROM onceward.submissions", ALLOWED},
    {"producer changes a submission", PRODUCER, "UPDATE onceward.submissions SET event_id = gen_random_uuid()", DENIED},
    {"producer changes a document", PRODUCER, "UPDATE onceward.documents SET content = ''", DENIED},
    {"relay writes an event", RELAY,
     "INSERT INTO onceward.outbox (tenant, event_id, topic, key, type, source, time, value)"
     " VALUES ('t', " OUTBOX_ROW ")",
     DENIED},
    {"relay deletes events", RELAY, "DELETE FROM onceward.outbox", DENIED},
    {"relay changes its log", RELAY, "UPDATE onceward.lane_progress SET position = 0", DENIED},
    {"relay makes a lane", RELAY, "INSERT INTO onceward.lanes VALUES (7)", DENIED},
    {"relay renames a lane", RELAY, "UPDATE onceward.lanes SET lane = 7", DENIED},
    {"consumer changes its log", CONSUMER, "UPDATE onceward.consumer_progress SET next_offset = 0", DENIED},
    {"consumer forgets an event", CONSUMER, "DELETE FROM onceward.inbox", DENIED},
    {"consumer changes a payload's hash", CONSUMER, "UPDATE onceward.inbox SET payload_hash = 0", DENIED},
    {"consumer deletes a dead letter", CONSUMER, "DELETE FROM onceward.dead_letters", DENIED},
    {"operator changes a lane's log", OPERATOR, "UPDATE onceward.lane_progress SET position = 0", DENIED},
    {"operator changes the audit", OPERATOR, "UPDATE onceward.audit SET actor = 'nobody'", DENIED},
    {"operator deletes from the audit", OPERATOR, "DELETE FROM onceward.audit", DENIED},
    {"operator changes an inbox", OPERATOR, "DELETE FROM onceward.inbox", DENIED},
    {"operator changes a deferred event", OPERATOR, "UPDATE onceward.deferred SET value = ''", DENIED},
    {"operator changes an event", OPERATOR, "UPDATE onceward.outbox SET value = ''", DENIED},
    {"operator changes a document", OPERATOR, "UPDATE onceward.documents SET content = ''", DENIED},
    {"operator changes a request", OPERATOR, "UPDATE onceward.requests SET data = ''", DENIED},
    {"operator deletes no submitted request", OPERATOR,
     "DELETE FROM onceward.requests; SELECT 1 / count(*) FROM onceward.requests", ALLOWED},

    {"operator gives a token another tenant", OPERATOR, "UPDATE onceward.tokens SET tenant = 'u'", DENIED},
    {"operator gives a token another scope", OPERATOR, "UPDATE onceward.tokens SET scopes = '{admin}'", DENIED},
    {"operator deletes a token", OPERATOR, "DELETE FROM onceward.tokens", DENIED},
    {"operator reads a token's hash", OPERATOR, "SELECT token_hash FROM onceward.tokens", DENIED},
    {"operator lets a role read a tenant", OPERATOR, "INSERT INTO onceward.tenant_readers VALUES ('r', 't')", DENIED},

    /* What is another program's. */
    {"producer makes a token", PRODUCER,
     "INSERT INTO onceward.tokens (tenant, name, slot, token_hash, scopes) VALUES ('t', 'n', 1, sha256(''), '{read}')",
     DENIED},
    {"producer keeps a token alive", PRODUCER, "UPDATE onceward.tokens SET revoked_at = NULL", DENIED},
    {"relay reads tokens", RELAY, "SELECT tenant FROM onceward.tokens", DENIED},
    {"consumer reads tokens", CONSUMER, "SELECT tenant FROM onceward.tokens", DENIED},
    {"publisher reads tokens", PUBLISHER, "SELECT tenant FROM onceward.tokens", DENIED},
    {"producer takes a lane", PRODUCER, "UPDATE onceward.lanes SET owner = 'p'", DENIED},
    {"producer writes a lane's log", PRODUCER,
     "INSERT INTO onceward.lane_progress " PROGRESS_COLUMNS " VALUES (" PROGRESS_ROW ")", DENIED},
    {"producer adds a topic", PRODUCER, "INSERT INTO onceward.topics (topic) VALUES ('x')", DENIED},
    {"producer adds a route", PRODUCER, "INSERT INTO onceward.routes (type, topic) VALUES ('x', 'known')", DENIED},
    {"producer writes an inbox", PRODUCER, "UPDATE onceward.inbox SET status = 'completed'", DENIED},
    {"relay reads requests", RELAY, "SELECT * FROM onceward.requests", DENIED},
    {"relay reads documents", RELAY, "SELECT * FROM onceward.documents", DENIED},
    {"relay reads stored answers", RELAY, "SELECT * FROM onceward.idempotency_keys", DENIED},
    {"relay reads an inbox", RELAY, "SELECT * FROM onceward.inbox", DENIED},
    {"relay adds a topic", RELAY, "INSERT INTO onceward.topics (topic) VALUES ('x')", DENIED},
    {"consumer reads the outbox", CONSUMER, "SELECT * FROM onceward.outbox", DENIED},
    {"consumer reads documents", CONSUMER, "SELECT * FROM onceward.documents", DENIED},
    {"consumer takes a lane", CONSUMER, "UPDATE onceward.lanes SET owner = 'c'", DENIED},
    {"publisher writes the outbox itself", PUBLISHER,
     "INSERT INTO onceward.outbox (tenant, event_id, topic, key, type, source, time, value)"
     " VALUES ('t', " OUTBOX_ROW ")",
     DENIED},
    {"publisher reads the outbox", PUBLISHER, "SELECT * FROM onceward.outbox", DENIED},
    {"publisher reads topics", PUBLISHER, "SELECT * FROM onceward.topics", DENIED},
    {"publisher makes partitions", PUBLISHER, "SELECT onceward.outbox_make_partitions()", DENIED},
    {"relay publishes", RELAY, "SELECT onceward.publish('known', 'k', 'x', '{}')", DENIED},
    {"consumer publishes", CONSUMER, "SELECT onceward.publish('known', 'k', 'x', '{}')", DENIED},

    /* Nobody makes, changes or drops anything. */
    {"producer makes a table", PRODUCER, "CREATE TABLE onceward.mine (x int)", DENIED},
    {"relay makes a table", RELAY, "CREATE TABLE onceward.mine (x int)", DENIED},
    {"consumer makes a table", CONSUMER, "CREATE TABLE onceward.mine (x int)", DENIED},
    {"operator makes a table", OPERATOR, "CREATE TABLE onceward.mine (x int)", DENIED},
    {"publisher makes a table", PUBLISHER, "CREATE TABLE onceward.mine (x int)", DENIED},
    {"operator changes a function", OPERATOR,
     "CREATE OR REPLACE FUNCTION onceward.uuid_v7() RETURNS uuid LANGUAGE sql AS 'SELECT NULL::uuid'", DENIED},
    {"operator drops a table", OPERATOR, "DROP TABLE onceward.dead_letters", DENIED},
    {"operator drops a partition", OPERATOR, "DROP TABLE onceward.outbox_000000000000001", DENIED},
    {"operator marks a migration as applied", OPERATOR, "DELETE FROM onceward.schema_migrations", DENIED},
    {"producer becomes the relay", PRODUCER, "SET ROLE onceward_relay", DENIED},
    {"operator gives itself a right", OPERATOR,
     "GRANT DELETE ON onceward.audit TO onceward_operator; DELETE FROM onceward.audit", DENIED},
    {"somebody else looks", "onceward_test_stranger", "SELECT * FROM onceward.topics", DENIED},
    {"somebody else publishes", "onceward_test_stranger", "SELECT onceward.publish('known', 'k', 'x', '{}')", DENIED},
};

static struct postgres_fixture *postgres;

static void test_roles(void **state)
{
    const struct role_case *row = *state;
    struct err err = ERR_INIT;
    struct db *db = db_fixture_open(postgres_fixture_conninfo_as(postgres, row->role));
    struct db_tx *tx = NULL;
    assert_true(db_tx_begin(db, &tx, &err));
    bool ok = db_exec_script(db, row->sql, &err);
    db_tx_rollback(&tx);
    db_close(&db);
    if (strcmp(ok ? "" : err.code, row->code) != 0) {
        fail_msg("%s where \"%s\" was expected: %s", err.code, row->code, err.text);
    }
}

/* A role of another database of the cluster owns nothing here either. */
static void test_roles_own_nothing(void **state)
{
    (void)state;
    assert_int_equal(postgres_fixture_number(postgres, "SELECT count(*) FROM pg_class c JOIN pg_roles r"
                                                       " ON r.oid = c.relowner WHERE r.rolname LIKE 'onceward%'"),
                     0);
    assert_int_equal(postgres_fixture_number(postgres, "SELECT count(*) FROM pg_proc p JOIN pg_roles r"
                                                       " ON r.oid = p.proowner WHERE r.rolname LIKE 'onceward%'"),
                     0);
    assert_int_equal(postgres_fixture_number(postgres, "SELECT count(*) FROM pg_authid WHERE rolname LIKE 'onceward%'"
                                                       " AND (rolpassword IS NOT NULL OR rolsuper OR rolcreaterole"
                                                       " OR rolcreatedb OR rolbypassrls OR rolreplication)"),
                     0);
}

/* With the owner's rights run few functions, and none can be led astray by a search_path. */
static void test_roles_cannot_lead_a_function_astray(void **state)
{
    (void)state;
    char names[512];
    postgres_fixture_text(postgres,
                          "SELECT string_agg(proname, ' ' ORDER BY proname) FROM pg_proc p JOIN pg_namespace n"
                          " ON n.oid = pronamespace WHERE nspname = 'onceward' AND prosecdef",
                          names, sizeof names);
    assert_string_equal(names, "inbox_make_partitions outbox_make_partitions publish");
    assert_int_equal(postgres_fixture_number(
                         postgres, "SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace"
                                   " WHERE nspname = 'onceward' AND NOT coalesce('search_path=pg_catalog, pg_temp' ="
                                   " ANY(proconfig), false)"),
                     0);
}

static int setup_group(void **state)
{
    (void)state;
    postgres = postgres_fixture_new();
    if (postgres == NULL) {
        return -1;
    }
    postgres_fixture_exec(postgres, "INSERT INTO onceward.topics (topic) VALUES ('known')");
    /* A submitted request of now, with a document, its event and a deferred one. */
    postgres_fixture_exec(
        postgres,
        "INSERT INTO onceward.requests (tenant, request_id, type, data, fingerprint)"
        " VALUES ('s', '00000000-0000-4000-8000-000000000001', 'x', '{}', '');"
        "INSERT INTO onceward.submissions VALUES ('s', '00000000-0000-4000-8000-000000000001', gen_random_uuid(), "
        "now());"
        "INSERT INTO onceward.documents (tenant, request_id, document_id, position, name, media_type, size, sha256,"
        " content) VALUES ('s', '00000000-0000-4000-8000-000000000001', 'd', 1, 'n', 'm', 1, sha256('a'), 'a');"
        "INSERT INTO onceward.outbox (tenant, event_id, topic, key, type, source, time, value) VALUES ('s', " OUTBOX_ROW
        "); INSERT INTO onceward.deferred (id, lane, tenant, event_id, topic, key, type, source, time, header_names,"
        " header_values, value, state, reason_code, reason) VALUES (1000, 0, 's', " OUTBOX_ROW_DEFERRED ")");
    postgres_fixture_exec(postgres, "DO $$ BEGIN CREATE ROLE onceward_test_stranger LOGIN;"
                                    " EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$");
    return 0;
}

static int teardown_group(void **state)
{
    (void)state;
    postgres_fixture_free(&postgres);
    return 0;
}

int main(void)
{
    struct CMUnitTest tests[COUNT_OF(cases) + 2] = {
        [COUNT_OF(cases)] = cmocka_unit_test(test_roles_own_nothing),
        [COUNT_OF(cases) + 1] = cmocka_unit_test(test_roles_cannot_lead_a_function_astray),
    };
    FILL_CASES(tests, test_roles, cases);
    return cmocka_run_group_tests_name("test_roles", tests, setup_group, teardown_group);
}
