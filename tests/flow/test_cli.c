/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line as its callers meet it: each command on a real database and
 * broker, every exit code, and one JSON object whatever happens.
 */
#include "cmocka_all.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "cli.h"
#include "cli_kit.h"
#include "db_fixture.h"
#include "kafka_fixture.h"
#include "postgres_fixture.h"
#include "wire/wire_json.h"

static struct postgres_fixture *migrated;
static struct postgres_fixture *empty;
static struct postgres_fixture *changed;
static struct kafka_fixture *kafka;

static void point_at(struct postgres_fixture *postgres, const char *role)
{
    const char *conninfo =
        role == NULL ? postgres_fixture_conninfo(postgres) : postgres_fixture_conninfo_as(postgres, role);
    assert_int_equal(setenv("ONCEWARD_DATABASE", conninfo, 1), 0);
}

/* ---- Cases -------------------------------------------------------------------------------------------------- */

enum where { MIGRATED, EMPTY, CHANGED, NOWHERE, AS_RELAY, AS_OPERATOR, AS_STRANGER };

struct call_case {
    const char *name;
    enum where where;
    const char *const *arguments;
    int code;
    const char *out;    /* Part of what is written to standard output; NULL: nothing is. */
    const char *errors; /* The same of standard error. */
};

static const struct call_case call_cases[] = {
    {"help", NOWHERE, ARGUMENTS("--help"), 0, "topic add NAME", NULL},
    {"help of a command by flag", NOWHERE, ARGUMENTS("topic", "add", "--help"), 0, "--partitions N", NULL},
    {"help of a command by word", NOWHERE, ARGUMENTS("help", "events"), 0, "--before N", NULL},
    {"the first word of some commands names them", NOWHERE, ARGUMENTS("topic"), 2, NULL, "topic add, topic list"},
    {"a second word that is none, too", NOWHERE, ARGUMENTS("route", "ad"), 2, NULL, "route add, route list"},
    {"a type with a blank has no route", MIGRATED, ARGUMENTS("route", "add", "a b", "alone"), 2, NULL, "has a blank"},
    {"help of the commands that begin with a word", NOWHERE, ARGUMENTS("help", "token"), 0, "token revoke TOKEN_ID",
     NULL},
    {"the same by flag", NOWHERE, ARGUMENTS("dlq", "--help"), 0, "dlq acknowledge", NULL},
    {"help of no second word", NOWHERE, ARGUMENTS("help", "token", "make"), 2, NULL, "\"token make\""},
    {"help of no command", NOWHERE, ARGUMENTS("help", "nonsense"), 2, NULL, "no command is called"},
    {"version by flag", NOWHERE, ARGUMENTS("--version"), 0, "onceward " ONCEWARD_VERSION, NULL},
    {"version by word", NOWHERE, ARGUMENTS("version"), 0, "schema", NULL},
    {"bad option", NOWHERE, ARGUMENTS("status", "--nonsense"), 2, NULL, "nonsense"},
    {"all bad settings at once", NOWHERE, ARGUMENTS("events", "--limit", "0", "--before", "x"), 2, NULL, "2 mistakes"},
    {"no command", NOWHERE, ARGUMENTS("--no-broker"), 2, NULL, "no command"},
    {"unknown command", NOWHERE, ARGUMENTS("statsu"), 2, NULL, "statsu"},
    {"too few arguments", NOWHERE, ARGUMENTS("route", "add", "one"), 2, NULL, "usage: onceward route add TYPE TOPIC"},
    {"too many arguments", NOWHERE, ARGUMENTS("status", "now"), 2, NULL, "usage: onceward status\n"},
    {"another command's flag", NOWHERE, ARGUMENTS("status", "--partitions", "3"), 2, NULL, "partitions"},
    {"a status that is none", MIGRATED, ARGUMENTS("events", "--status", "lost"), 2, NULL, "pending, claimed"},
    {"an event id of nobody", MIGRATED, ARGUMENTS("events", "123"), 1, NULL, "no event 123"},
    {"an event that is nowhere", MIGRATED, ARGUMENTS("events", "01a22b2d-8acd-7f8c-ab30-5fd2271711f5"), 1, NULL,
     "no event"},
    {"database away", NOWHERE, ARGUMENTS("status"), 5, NULL, "database"},
    {"database not migrated", EMPTY, ARGUMENTS("status"), 6, NULL, "onceward migrate"},
    {"dry run of a migration", EMPTY, ARGUMENTS("migrate", "--dry-run"), 0, "pending", NULL},
    {"a dry run changed nothing", EMPTY, ARGUMENTS("topic", "list"), 6, NULL, "onceward migrate"},
    {"migration that was changed", CHANGED, ARGUMENTS("migrate"), 6, NULL, "other contents"},
    {"nothing to migrate", MIGRATED, ARGUMENTS("migrate"), 0, "Nothing to do", NULL},
    {"role without the right", AS_RELAY, ARGUMENTS("topic", "add", "t", "--no-broker"), 4, NULL, "permission denied"},
    {"role of the operator", AS_OPERATOR, ARGUMENTS("topic", "add", "by.operator", "--no-broker"), 0, "added", NULL},
    {"topic without broker", MIGRATED, ARGUMENTS("topic", "add", "alone", "--no-broker"), 0, "added", NULL},
    {"topic with a limit", MIGRATED, ARGUMENTS("topic", "add", "alone", "--no-broker", "--event-bytes-max", "5000"), 0,
     "changed", NULL},
    {"topic as it is", MIGRATED, ARGUMENTS("topic", "add", "alone", "--no-broker"), 0, "unchanged", NULL},
    {"topic that Kafka does not allow", MIGRATED, ARGUMENTS("topic", "add", "a b", "--no-broker"), 1, NULL, "topics"},
    {"topics listed", MIGRATED, ARGUMENTS("topic", "list"), 0, "5 000 B", NULL},
    {"route to an unknown topic", MIGRATED, ARGUMENTS("route", "add", "t", "nowhere"), 1, NULL, "onceward topic add"},
    {"route", MIGRATED, ARGUMENTS("route", "add", "some.type", "alone"), 0, "added", NULL},
    {"route again", MIGRATED, ARGUMENTS("route", "add", "some.type", "alone"), 0, "unchanged", NULL},
    {"route with a schema", MIGRATED, ARGUMENTS("route", "add", "some.type", "alone", "--dataschema", "urn:x"), 0,
     "changed", NULL},
    {"routes listed", MIGRATED, ARGUMENTS("route", "list"), 0, "urn:x", NULL},
    {"no token yet", AS_OPERATOR, ARGUMENTS("token", "list", "--tenant", "nobody"), 0, "No token yet", NULL},
    {"scope that is none", AS_OPERATOR, ARGUMENTS("token", "create", "billing", "--scopes", "submit,write"), 2, NULL,
     "\"write\" is no scope"},
    {"token's name that is none", AS_OPERATOR, ARGUMENTS("token", "create", "a b"), 2, NULL, "a name has"},
    {"tenant that is none", AS_OPERATOR, ARGUMENTS("token", "create", "billing", "--tenant", "a/b"), 2, NULL,
     "a tenant has"},
    {"token's id that is none", AS_OPERATOR, ARGUMENTS("token", "revoke", "owt_1"), 2, NULL, "token list"},
    {"token that is unknown", AS_OPERATOR, ARGUMENTS("token", "revoke", "01a22b2d-8acd-7f8c-ab30-5fd2271711f5"), 1,
     NULL, "no token"},
    {"token by a role without the right", AS_RELAY, ARGUMENTS("token", "create", "billing"), 4, NULL,
     "permission denied"},
    {"a role that does not exist", AS_STRANGER, ARGUMENTS("status"), 4, NULL, "FATAL: role \"stranger\" does not"},
    {"no events", MIGRATED, ARGUMENTS("events", "--topic", "nowhere"), 0, "No event.", NULL},
    {"no relay alive", MIGRATED, ARGUMENTS("status"), 3, "no live relay", NULL},
    {"no broker named", MIGRATED, ARGUMENTS("topic", "add", "t", "--kafka="), 2, NULL, "kafka"},
};

static const char *const away = "host=127.0.0.1 port=1 user=nobody dbname=nothing";

static void choose_where(enum where where)
{
    switch (where) {
    case MIGRATED: point_at(migrated, NULL); return;
    case EMPTY: point_at(empty, NULL); return;
    case CHANGED: point_at(changed, NULL); return;
    case NOWHERE: assert_int_equal(setenv("ONCEWARD_DATABASE", away, 1), 0); return;
    case AS_RELAY: point_at(migrated, "onceward_relay"); return;
    case AS_STRANGER: point_at(migrated, "stranger"); return;
    case AS_OPERATOR: point_at(migrated, "onceward_operator"); return;
    }
}

static void test_cli_answers(void **state)
{
    const struct call_case *row = *state;
    choose_where(row->where);
    struct cli_call call = cli_call(row->arguments);
    cli_call_assert_part("standard output", call.out, row->out);
    cli_call_assert_part("standard error", call.errors, row->errors);
    assert_int_equal(call.code, row->code);
    cli_call_done(&call);
}

/* The same call with --json: one object, nothing on standard error, the same exit code. */
static void test_cli_answers_in_json(void **state)
{
    const struct call_case *row = *state;
    const char *arguments[CLI_CALL_ARGUMENT_COUNT_MAX + 1] = {NULL};
    bool is_flag_only = strncmp(row->arguments[0], "--help", 6) == 0 || strncmp(row->arguments[0], "--version", 9) == 0;
    size_t count = 0;
    for (; row->arguments[count] != NULL; count++) {
        is_flag_only = is_flag_only || strcmp(row->arguments[count], "--help") == 0;
        arguments[count] = row->arguments[count];
    }
    if (is_flag_only) {
        return;
    }
    arguments[count] = "--json";
    choose_where(row->where);
    struct cli_call call = cli_call(arguments);
    struct err err = ERR_INIT;
    struct wire_value root;
    if (!wire_json_check(call.out, strlen(call.out), &root, &err)) {
        fail_msg("%s: %s", err.text, call.out);
    }
    assert_int_equal(root.kind, WIRE_OBJECT);
    struct wire_value format = wire_json_member(&root, "format");
    assert_int_equal(format.kind, WIRE_NUMBER);
    struct wire_value error = wire_json_member(&root, "error");
    bool is_error = row->code != 0 && row->code != 3;
    assert_int_equal(error.kind, is_error ? WIRE_OBJECT : WIRE_ABSENT);
    assert_string_equal(call.errors, "");
    assert_int_equal(call.code, row->code);
    cli_call_done(&call);
}

/* ---- On a broker -------------------------------------------------------------------------------------------- */

static void test_cli_makes_a_topic_on_the_broker(void **state)
{
    (void)state;
    point_at(migrated, NULL);
    char name[300];
    assert_in_range(snprintf(name, sizeof name, "%s.cli", kafka_fixture_topic(kafka)), 1, sizeof name - 1);
    struct cli_call call = cli_call(ARGUMENTS("topic", "add", name, "--partitions", "2", "--event-bytes-max", "3000",
                                              "--topic.retention.ms=3600000", "--json"));
    assert_int_equal(call.code, 0);
    cli_call_assert_member(&call, "topic.broker", "made");
    cli_call_assert_member(&call, "topic.table", "added");
    assert_int_equal(cli_call_number(&call, "topic.partitions"), 2);
    assert_int_equal(cli_call_number(&call, "topic.event_bytes_max"), 3000);
    cli_call_done(&call);
    call = cli_call(ARGUMENTS("topic", "add", name, "--json"));
    assert_int_equal(call.code, 0);
    cli_call_assert_member(&call, "topic.broker", "was there");
    cli_call_assert_member(&call, "topic.table", "unchanged");
    cli_call_done(&call);
    call = cli_call(ARGUMENTS("topic", "add", name, "--partitions", "5", "--json"));
    assert_int_equal(call.code, 3);
    assert_int_equal(cli_call_number(&call, "topic.partitions"), 2);
    cli_call_done(&call);
    call = cli_call(ARGUMENTS("topic", "add", name, "--event-bytes-max", "3001", "--json"));
    assert_int_equal(call.code, 6);
    cli_call_assert_member(&call, "error.code", "topic_limit_too_high");
    cli_call_done(&call);
    call = cli_call(ARGUMENTS("topic", "add", name, "--kafka=127.0.0.1:1", "--json"));
    assert_int_equal(call.code, 5);
    cli_call_done(&call);
}

static void test_cli_changes_a_token_without_a_gap(void **state)
{
    (void)state;
    point_at(migrated, "onceward_operator");
    struct cli_call call = cli_call(ARGUMENTS("token", "create", "svc", "--tenant", "acme", "--json"));
    assert_int_equal(call.code, 0);
    cli_call_assert_member(&call, "token.tenant", "acme");
    cli_call_assert_member(&call, "token.scopes.0", "submit");
    cli_call_assert_member(&call, "token.scopes.1", "read");
    char *first = cli_call_text(&call, "token.token_id");
    char *secret = cli_call_text(&call, "token.token");
    assert_int_equal(strncmp(secret, "owt_", 4), 0);
    assert_int_equal(strlen(secret), 68);
    cli_call_done(&call);
    call =
        cli_call(ARGUMENTS("token", "create", "svc", "--tenant", "acme", "--scopes", "admin", "--expires-days", "9"));
    assert_int_equal(call.code, 0);
    cli_call_done(&call);
    call = cli_call(ARGUMENTS("token", "create", "svc", "--tenant", "acme", "--json"));
    assert_int_equal(call.code, 6);
    cli_call_assert_member(&call, "error.code", "tokens_two_live");
    cli_call_done(&call);
    call = cli_call(ARGUMENTS("token", "revoke", first));
    assert_int_equal(call.code, 0);
    cli_call_done(&call);
    call = cli_call(ARGUMENTS("token", "create", "svc", "--tenant", "acme"));
    assert_int_equal(call.code, 0);
    cli_call_done(&call);
    call = cli_call(ARGUMENTS("token", "list", "--tenant", "acme", "--json"));
    cli_call_assert_member(&call, "tokens.0.token_id", first);
    cli_call_assert_member(&call, "tokens.0.state", "revoked");
    cli_call_assert_member(&call, "tokens.1.state", "live");
    assert_null(strstr(call.out, secret));
    cli_call_done(&call);
    char sql[300];
    assert_in_range(snprintf(sql, sizeof sql,
                             "SELECT count(*) FROM onceward.tokens WHERE token_id = '%s' AND token_hash = sha256('%s')",
                             first, secret),
                    1, sizeof sql - 1);
    assert_int_equal(postgres_fixture_number(migrated, sql), 1);
    free(first);
    free(secret);
}

static void test_cli_takes_the_limit_of_an_existing_topic(void **state)
{
    (void)state;
    point_at(migrated, NULL);
    struct cli_call call = cli_call(ARGUMENTS("topic", "add", kafka_fixture_topic(kafka), "--json"));
    assert_int_equal(call.code, 0);
    cli_call_assert_member(&call, "topic.broker", "was there");
    assert_int_equal(cli_call_number(&call, "topic.event_bytes_max"), 2000);
    cli_call_done(&call);
}

/* ---- One event's way ---------------------------------------------------------------------------------------- */

/* An event that was settled at a place and applied by one consumer, one that the broker refused, one that waits; and a
 * dead letter of the first at a second consumer. */
static void make_events(char *ret_first, char *ret_parked, size_t size)
{
    postgres_fixture_exec(migrated, "INSERT INTO onceward.topics (topic) VALUES ('way') ON CONFLICT DO NOTHING");
    postgres_fixture_text(migrated, "SELECT onceward.publish('way', 'a key', 'way.type', '{}')", ret_first, size);
    postgres_fixture_text(migrated, "SELECT onceward.publish('way', 'a key', 'way.type', '{}')", ret_parked, size);
    postgres_fixture_exec(
        migrated,
        "INSERT INTO onceward.deferred (id, lane, tenant, event_id, topic, key, type, source, time, header_names,"
        " header_values, value, state, reason_code, reason) SELECT id, lane, tenant, event_id, topic, key, type, "
        "source,"
        " time, header_names, header_values, value, 'parked', 'MSG_SIZE_TOO_LARGE', 'the broker''s word'"
        " FROM onceward.outbox ORDER BY id DESC LIMIT 1");
    postgres_fixture_exec(
        migrated,
        "INSERT INTO onceward.lane_progress (lane, seq, owner, incarnation, attempt, kind, snapshot_from, from_floor,"
        " position, claimed_to, system_identifier, settled_ids, settled_least, settled_greatest, settled_topics,"
        " settled_partitions, settled_offsets) SELECT o.lane, 1, 'test', gen_random_uuid(), gen_random_uuid(), 'moved',"
        " pg_current_snapshot(), o.id, o.id, o.id, 1, ARRAY[o.id - 1], o.id - 1, o.id - 1, ARRAY['way'], ARRAY[3],"
        " ARRAY[77] FROM onceward.outbox o ORDER BY id DESC LIMIT 1");
    postgres_fixture_exec(migrated, "INSERT INTO onceward.inbox_scopes (consumer) VALUES ('orders')");
    postgres_fixture_exec(migrated, "INSERT INTO onceward.inbox (scope_id, payload_hash, event_id)"
                                    " SELECT scope_id, 1, (SELECT event_id FROM onceward.outbox ORDER BY id LIMIT 1)"
                                    " FROM onceward.inbox_scopes");
    postgres_fixture_exec(
        migrated, "INSERT INTO onceward.dead_letters (consumer, scope, topic, partition, record_offset, record_hash,"
                  " event_id, header_names, header_values, reason_code, reason) SELECT 'strict', 'live', 'way', 3, 77,"
                  " 'hash', event_id::text, '{}', '{}', 'sink_refused', 'no such column'"
                  " FROM onceward.outbox ORDER BY id LIMIT 1");
    postgres_fixture_exec(
        migrated,
        "INSERT INTO onceward.consumer_progress (consumer, scope, topic, partition, seq, owner, incarnation,"
        " attempt, kind, next_offset, cluster_id) VALUES ('orders', 'live', 'way', 3, 0, 'one',"
        " gen_random_uuid(), gen_random_uuid(), 'registered', 78, 'c'),"
        " ('slow', 'live', 'way', 3, 0, 'one', gen_random_uuid(), gen_random_uuid(), 'registered', 77, 'c'),"
        " ('beyond', 'live', 'way', 3, 0, 'one', gen_random_uuid(), gen_random_uuid(), 'registered', 78, 'c')");
    postgres_fixture_exec(migrated, "SELECT onceward.publish('way', 'another key', 'way.other', '{}')");
}

static void test_cli_shows_an_events_whole_way(void **state)
{
    (void)state;
    point_at(migrated, "onceward_operator");
    char first[64];
    char parked[64];
    make_events(first, parked, sizeof first);
    struct cli_call call = cli_call(ARGUMENTS("events", first, "--json"));
    assert_int_equal(call.code, 0);
    cli_call_assert_member(&call, "event.status", "completed");
    assert_int_equal(cli_call_number(&call, "outbox.0.partition"), 3);
    assert_int_equal(cli_call_number(&call, "outbox.0.offset"), 77);
    cli_call_assert_member(&call, "deliveries.0.consumer", "beyond");
    cli_call_assert_member(&call, "deliveries.0.status", "passed");
    cli_call_assert_member(&call, "deliveries.1.consumer", "orders");
    cli_call_assert_member(&call, "deliveries.1.status", "completed");
    cli_call_assert_member(&call, "deliveries.2.consumer", "slow");
    cli_call_assert_member(&call, "deliveries.2.status", "waiting");
    cli_call_assert_member(&call, "deliveries.3.status", "dead_letter");
    cli_call_assert_member(&call, "deliveries.3.reason_code", "sink_refused");
    cli_call_done(&call);
    call = cli_call(ARGUMENTS("events", parked, "--json"));
    cli_call_assert_member(&call, "event.status", "failed");
    cli_call_assert_member(&call, "outbox.0.deferred", "parked");
    cli_call_assert_member(&call, "outbox.0.reason", "the broker's word");
    cli_call_done(&call);
}

static void test_cli_lists_events_by_what_became_of_them(void **state)
{
    (void)state;
    static const struct {
        const char *flag;
        const char *value;
        int count;
    } ROWS[] = {
        {"--status", "completed", 1}, {"--status", "failed", 1}, {"--status", "pending", 1},
        {"--status", "claimed", 0},   {"--type", "way.type", 2}, {"--key", "another key", 1},
        {"--tenant", "other", 0},     {"--topic", "way", 3},     {"--before", "2", 1},
        {"--limit", "2", 2},
    };
    point_at(migrated, "onceward_operator");
    for (size_t i = 0; i < COUNT_OF(ROWS); i++) {
        struct cli_call call = cli_call(ARGUMENTS("events", ROWS[i].flag, ROWS[i].value, "--json"));
        struct wire_value events = cli_call_member(&call, "events");
        struct wire_iterator iterator = wire_json_begin(&events);
        struct wire_value item;
        int count = 0;
        while (wire_json_next(&iterator, NULL, &item)) {
            count++;
        }
        if (count != ROWS[i].count) {
            fail_msg("%s %s: %d events in %s", ROWS[i].flag, ROWS[i].value, count, call.out);
        }
        cli_call_done(&call);
    }
}

static void test_cli_status_names_what_is_not_well(void **state)
{
    (void)state;
    point_at(migrated, "onceward_operator");
    struct cli_call call = cli_call(ARGUMENTS("status", "--json"));
    assert_int_equal(call.code, 3);
    assert_int_equal(cli_call_number(&call, "outbox.backlog"), 1);
    assert_int_equal(cli_call_number(&call, "outbox.parked"), 1);
    assert_int_equal(cli_call_number(&call, "outbox.dead_letters"), 1);
    assert_int_equal(cli_call_number(&call, "inboxes.0.completed"), 1);
    assert_int_equal(cli_call_number(&call, "consumers.1.next_offset"), 78);
    assert_int_equal(cli_call_number(&call, "lanes.7.lane"), 7);
    assert_true(strstr(call.out, "1 parked") != NULL && strstr(call.out, "1 dead letter waits") != NULL);
    cli_call_done(&call);
}

/* Nobody is connected as any of the three, and what was published lies ahead of one's cursor since a minute. */
static void test_cli_status_names_a_consumer_that_is_gone_or_stands_still(void **state)
{
    (void)state;
    point_at(migrated, "onceward_operator");
    struct cli_call call = cli_call(ARGUMENTS("status", "--json"));
    assert_true(strstr(call.out, "Consumer slow is gone") != NULL);
    assert_true(strstr(call.out, "stands still") == NULL); /* It was published just now. */
    cli_call_done(&call);
    postgres_fixture_exec(migrated, "UPDATE onceward.lane_progress SET created_at = now() - interval '1 minute';"
                                    "UPDATE onceward.consumer_progress SET created_at = now() - interval '1 minute'");
    char conninfo[512];
    assert_in_range(snprintf(conninfo, sizeof conninfo, "%s application_name='onceward-consumer slow'",
                             postgres_fixture_conninfo(migrated)),
                    1, sizeof conninfo - 1);
    struct db *session = db_fixture_open(conninfo);
    call = cli_call(ARGUMENTS("status", "--json"));
    assert_int_equal(call.code, 3);
    assert_true(strstr(call.out, "Consumer slow is gone") == NULL);
    assert_true(strstr(call.out, "Consumer orders is gone") != NULL);
    assert_true(strstr(call.out, "Consumer slow stands still at way/3, offset 77, though 77 was published") != NULL);
    assert_true(strstr(call.out, "Consumer orders stands still") == NULL);
    assert_int_equal(cli_call_number(&call, "consumers.2.overdue_offset"), 77);
    cli_call_done(&call);
    db_close(&session);
}

static void test_cli_migrates_an_empty_database(void **state)
{
    (void)state;
    point_at(empty, NULL);
    struct cli_call call = cli_call(ARGUMENTS("migrate", "--json"));
    assert_int_equal(call.code, 0);
    cli_call_assert_member(&call, "migrations.0.state", "applied");
    cli_call_done(&call);
    call = cli_call(ARGUMENTS("topic", "list"));
    assert_int_equal(call.code, 0);
    cli_call_done(&call);
}

/* docs/cli.md has each command, each of its flags, and each exit code. */
static void test_cli_is_described(void **state)
{
    (void)state;
    FILE *file = fopen(ONCEWARD_SOURCE_DIR "/docs/cli.md", "re");
    assert_non_null(file);
    static char text[65536];
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (const struct cli_command *command = cli_commands; command->name != NULL; command++) {
        char wanted[128];
        assert_in_range(snprintf(wanted, sizeof wanted, "| `%s", command->name), 1, sizeof wanted - 1);
        cli_call_assert_part("docs/cli.md", text, wanted);
        for (size_t i = 0; command->flags[i] != NULL; i++) {
            assert_in_range(snprintf(wanted, sizeof wanted, "--%s", command->flags[i]), 1, sizeof wanted - 1);
            for (char *at = wanted; *at != '\0'; at++) {
                *at = *at == '_' ? '-' : *at;
            }
            cli_call_assert_part("docs/cli.md", text, wanted);
        }
    }
    for (int code = CLI_DONE; code <= CLI_REFUSED; code++) {
        char wanted[16];
        assert_in_range(snprintf(wanted, sizeof wanted, "\n| %d |", code), 1, sizeof wanted - 1);
        cli_call_assert_part("docs/cli.md", text, wanted);
    }
}

/* The binary itself: what main adds is little, and is here. */
static void test_cli_binary_exits_with_the_code(void **state)
{
    (void)state;
    static const struct {
        const char *command;
        int code;
    } ROWS[] = {{"--help", 0}, {"version --json", 0}, {"nonsense", 2}, {"--nonsense", 2}, {"version >/dev/full", 1}};
    for (size_t i = 0; i < COUNT_OF(ROWS); i++) {
        char line[512];
        assert_in_range(
            snprintf(line, sizeof line, ONCEWARD_BIN_DIR "/onceward %s 2>/dev/null >/dev/null", ROWS[i].command), 1,
            sizeof line - 1);
        if (strchr(ROWS[i].command, '>') != NULL) {
            *strrchr(line, '>') = '\0';
        }
        int status = system(line); /* NOLINT(cert-env33-c) */
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), ROWS[i].code);
    }
}

static int setup_group(void **state)
{
    static const char *const settings[] = {"max.message.bytes=2000", NULL};
    (void)state;
    log_init("test_cli", LOG_ERROR, stderr);
    migrated = postgres_fixture_new();
    changed = postgres_fixture_new();
    empty = postgres_fixture_new_empty();
    kafka = kafka_fixture_new_with(1, settings);
    if (migrated == NULL || changed == NULL || empty == NULL || kafka == NULL) {
        return -1;
    }
    postgres_fixture_exec(changed,
                          "UPDATE onceward.schema_migrations SET checksum = sha256('other') WHERE version = 1");
    return setenv("ONCEWARD_KAFKA", kafka_fixture_bootstrap(kafka), 1);
}

static int teardown_group(void **state)
{
    (void)state;
    kafka_fixture_free(&kafka);
    postgres_fixture_free(&empty);
    postgres_fixture_free(&changed);
    postgres_fixture_free(&migrated);
    return 0;
}

int main(void)
{
    const struct CMUnitTest others[] = {
        cmocka_unit_test(test_cli_makes_a_topic_on_the_broker),
        cmocka_unit_test(test_cli_changes_a_token_without_a_gap),
        cmocka_unit_test(test_cli_takes_the_limit_of_an_existing_topic),
        cmocka_unit_test(test_cli_shows_an_events_whole_way),
        cmocka_unit_test(test_cli_lists_events_by_what_became_of_them),
        cmocka_unit_test(test_cli_status_names_what_is_not_well),
        cmocka_unit_test(test_cli_status_names_a_consumer_that_is_gone_or_stands_still),
        cmocka_unit_test(test_cli_migrates_an_empty_database),
        cmocka_unit_test(test_cli_is_described),
        cmocka_unit_test(test_cli_binary_exits_with_the_code),
    };
    struct CMUnitTest tests[2 * COUNT_OF(call_cases) + COUNT_OF(others)];
    char names[COUNT_OF(call_cases)][128];
    FILL_CASES(tests, test_cli_answers, call_cases);
    FILL_CASES(tests + COUNT_OF(call_cases), test_cli_answers_in_json, call_cases);
    for (size_t i = 0; i < COUNT_OF(call_cases); i++) {
        assert_in_range(snprintf(names[i], sizeof names[i], "%s, in JSON", call_cases[i].name), 1, sizeof names[i] - 1);
        tests[COUNT_OF(call_cases) + i].name = names[i];
    }
    memcpy(tests + 2 * COUNT_OF(call_cases), others, sizeof others);
    return cmocka_run_group_tests_name("test_cli", tests, setup_group, teardown_group);
}
