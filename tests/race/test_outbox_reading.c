/* SPDX-License-Identifier: Apache-2.0
 *
 * The reading of the outbox under rivals: eight writers whose transactions
 * last 0 to 20 ms, some rolled back, some with savepoints, beside a stranger
 * who keeps one open all the while. Nothing is lost, nothing comes twice, the
 * order per key is right and all of it is prompt. The same test on the ways of
 * reading that look right and are not must find each of them out, although they
 * do as well where writing and reading take turns.
 */
#include "cmocka_all.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "base/clock.h"
#include "db/db_lease.h"
#include "fake_publisher.h"
#include "postgres_fixture.h"
#include "relay.h"

#define WRITER_COUNT 8
#define KEY_COUNT 64
#define EVENT_PER_KEY_MAX 4000
#define LATENCY_MAX_MS 500
#define FORCED_PAUSE_MS 30
#define LAST_WAIT_MS 200
#define LAST_ROUND_MAX 100
#define RUN_COUNT 10
#define CAUGHT_COUNT_MIN 9
#define TWIN_EVENT_COUNT 400 /* Enough to be caught. */

/* What is known of the n-th event of a key. */
struct fate {
    _Atomic int64_t committed_ms; /* 0: it was not. */
    int64_t published_ms;
    atomic_int published_count;
};

enum reading { READING_BY_SNAPSHOTS, READING_BY_ID };

struct trial {
    const char *conninfo;
    enum reading reading;
    relay_look *look;
    int event_count_min;
    int duration_ms_max;
    bool takes_turns; /* One writer, and the reader looks between its transactions. */
    pthread_mutex_t turn;
    pthread_barrier_t start;
    struct fate (*fates)[EVENT_PER_KEY_MAX];
    int last_published[KEY_COUNT];
    atomic_int committed_count;
    atomic_bool is_over;
    int disorder_count;
    int64_t deadline_ms;
};

struct findings {
    int committed;
    int lost;
    int twice;
    int phantom; /* Published and never committed. */
    int disorder;
    int64_t latency_max_ms;
};

static void begin_turn(struct trial *trial)
{
    if (trial->takes_turns) {
        pthread_mutex_lock(&trial->turn);
    }
}

/* A mutex is not fair: whoever ends a turn sleeps for a moment, and the other gets his. */
static void end_turn(struct trial *trial)
{
    if (trial->takes_turns) {
        pthread_mutex_unlock(&trial->turn);
        usleep(1000);
    }
}

/* ---- Writers ---- */

static PGconn *connect_or_fail(const char *conninfo)
{
    PGconn *conn = PQconnectdb(conninfo);
    assert(PQstatus(conn) == CONNECTION_OK);
    return conn;
}

static void run_sql(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK) {
        print_error("%s: %s\n", sql, PQerrorMessage(conn));
        abort();
    }
    PQclear(result);
}

/* The key's next number, under the lock of its row: the order of the events is the order of this lock. */
static int next_number(PGconn *conn, int key)
{
    char sql[128];
    snprintf(sql, sizeof sql, "UPDATE test_keys SET number = number + 1 WHERE key = %d RETURNING number", key);
    PGresult *result = PQexec(conn, sql);
    assert(PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1);
    int number = atoi(PQgetvalue(result, 0, 0));
    PQclear(result);
    assert(number < EVENT_PER_KEY_MAX);
    return number;
}

static void insert_event(PGconn *conn, int key, int number)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             "INSERT INTO onceward.outbox (tenant, event_id, topic, key, type, source, time, value) VALUES"
             " ('default', gen_random_uuid(), 'orders', 'key-%d', 't', '/test', clock_timestamp(), '%d %d')",
             key, key, number);
    run_sql(conn, sql);
}

static void write_once(struct trial *trial, PGconn *conn, unsigned *seed)
{
    int key = rand_r(seed) % KEY_COUNT;
    int count = 1 + rand_r(seed) % 4;
    bool is_rolled_back = rand_r(seed) % 10 == 0;
    int first = 0;
    run_sql(conn, "BEGIN");
    for (int i = 0; i < count; i++) {
        if (rand_r(seed) % 5 == 0) {
            run_sql(conn, "SAVEPOINT here");
            insert_event(conn, key, next_number(conn, key));
            run_sql(conn, "ROLLBACK TO here");
        }
        int number = next_number(conn, key);
        first = i == 0 ? number : first;
        insert_event(conn, key, number);
    }
    usleep((useconds_t)(rand_r(seed) % 20) * 1000);
    run_sql(conn, is_rolled_back ? "ROLLBACK" : "COMMIT");
    int64_t now_ms = clock_monotonic_ms();
    for (int i = 0; !is_rolled_back && i < count; i++) {
        atomic_store(&trial->fates[key][first + i].committed_ms, now_ms);
        atomic_fetch_add(&trial->committed_count, 1);
    }
}

static void *write_events(void *context)
{
    struct trial *trial = context;
    PGconn *conn = connect_or_fail(trial->conninfo);
    static atomic_uint next_seed = 1;
    unsigned seed = atomic_fetch_add(&next_seed, 1);
    pthread_barrier_wait(&trial->start);
    while (atomic_load(&trial->committed_count) < trial->event_count_min && clock_monotonic_ms() < trial->deadline_ms) {
        begin_turn(trial);
        write_once(trial, conn, &seed);
        end_turn(trial);
    }
    PQfinish(conn);
    return NULL;
}

/* One more event of each key. */
static void write_last(struct trial *trial, PGconn *conn, int *ret_numbers)
{
    begin_turn(trial);
    run_sql(conn, "BEGIN");
    for (int key = 0; key < KEY_COUNT; key++) {
        ret_numbers[key] = next_number(conn, key);
        insert_event(conn, key, ret_numbers[key]);
    }
    run_sql(conn, "COMMIT");
    int64_t now_ms = clock_monotonic_ms();
    for (int key = 0; key < KEY_COUNT; key++) {
        atomic_store(&trial->fates[key][ret_numbers[key]].committed_ms, now_ms);
    }
    end_turn(trial);
}

static bool are_published(const struct trial *trial, const int *numbers)
{
    for (int key = 0; key < KEY_COUNT; key++) {
        if (atomic_load(&trial->fates[key][numbers[key]].published_count) == 0) {
            return false;
        }
    }
    return true;
}

/* When an event of each key that was committed after all others is published, what is not published never will be. A
 * reader that loses can lose the last ones too: then others follow. */
static void await_last(struct trial *trial)
{
    PGconn *conn = connect_or_fail(trial->conninfo);
    int numbers[KEY_COUNT];
    bool is_read = false;
    for (int round = 0; !is_read && round < LAST_ROUND_MAX; round++) {
        write_last(trial, conn, numbers);
        for (int waited_ms = 0; !is_read && waited_ms < LAST_WAIT_MS; waited_ms += 5) {
            usleep(5000);
            is_read = are_published(trial, numbers);
        }
    }
    PQfinish(conn);
    assert_true(is_read);
}

/* Somebody who has nothing to do with us, with a transaction id, open from before the first event to after the last. */
static PGconn *begin_stranger(const char *conninfo)
{
    PGconn *conn = connect_or_fail(conninfo);
    run_sql(conn, "BEGIN");
    run_sql(conn, "SELECT pg_current_xact_id()");
    return conn;
}

/* ---- Readers ---- */

static void published(void *context, const struct event *event)
{
    struct trial *trial = context;
    int key = -1;
    int number = -1;
    int matched = sscanf(event->value.data, "%d %d", &key, &number);
    assert(matched == 2 && key >= 0 && key < KEY_COUNT && number > 0 && number < EVENT_PER_KEY_MAX);
    struct fate *fate = &trial->fates[key][number];
    fate->published_ms = clock_monotonic_ms();
    atomic_fetch_add(&fate->published_count, 1);
    trial->disorder_count += number <= trial->last_published[key];
    trial->last_published[key] = number;
}

static struct publisher *open_fake(void *context, bool is_single, struct err *err)
{
    (void)is_single;
    (void)err;
    const struct fake_publisher_options options = {.acknowledged = published, .context = context};
    return fake_publisher_new(&options);
}

static void *read_by_snapshots(void *context)
{
    struct trial *trial = context;
    struct err err = ERR_INIT;
    struct db_settings settings = DB_SETTINGS_INIT;
    settings.conninfo = trial->conninfo;
    struct db *db = db_open(&settings, &err);
    assert(db != NULL);
    const struct db_lane_owner owner = {
        .relay = "reader", .incarnation = uuid_v7_new(clock_realtime_ms()), .lease_ms = 600000};
    const struct relay_pump_options pump = {.open = open_fake, .context = trial, .outstanding_count_max = 10000};
    static struct relay relay;
    bool is_ready = relay_init(&relay, &relay_limits_default, &owner, relay_pump_new(&pump, &err), &err) &&
                    db_lease_register(db, &owner, &err);
    assert(is_ready);
    relay.db = db;
    relay.look = trial->look;
    for (int lane = 0; lane < EVENT_LANE_COUNT; lane++) {
        bool is_taken = false;
        is_ready = relay_claim_lane(&relay, lane, &is_taken, &err);
        assert(is_ready && is_taken);
    }
    pthread_barrier_wait(&trial->start);
    while (!atomic_load(&trial->is_over)) {
        bool is_busy = false;
        begin_turn(trial);
        if (!relay_step(&relay, 1, &is_busy, &err)) {
            print_error("%s\n", err.text);
            abort();
        }
        end_turn(trial);
        if (!is_busy) {
            usleep(1000);
        }
    }
    relay_done(&relay);
    db_close(&db);
    return NULL;
}

/* The twin that everybody writes first. */
static void *read_by_id(void *context)
{
    struct trial *trial = context;
    PGconn *conn = connect_or_fail(trial->conninfo);
    long long last = 0;
    pthread_barrier_wait(&trial->start);
    while (!atomic_load(&trial->is_over)) {
        char sql[128];
        begin_turn(trial);
        snprintf(sql, sizeof sql, "SELECT id, value FROM onceward.outbox WHERE id > %lld ORDER BY id", last);
        PGresult *result = PQexec(conn, sql);
        assert(PQresultStatus(result) == PGRES_TUPLES_OK);
        for (int row = 0; row < PQntuples(result); row++) {
            last = atoll(PQgetvalue(result, row, 0));
            size_t size;
            unsigned char *value = PQunescapeBytea((unsigned char *)PQgetvalue(result, row, 1), &size);
            const struct event event = {.value = {value, size}};
            published(trial, &event);
            PQfreemem(value);
        }
        PQclear(result);
        end_turn(trial);
        usleep(1000);
    }
    PQfinish(conn);
    return NULL;
}

/* ---- Snapshots that are taken wrongly ---- */

static PGconn *twin_conn;

static int64_t twin_number(const char *sql)
{
    PGresult *result = PQexec(twin_conn, sql);
    assert(PQresultStatus(result) == PGRES_TUPLES_OK);
    int64_t number = atoll(PQgetvalue(result, 0, 0));
    PQclear(result);
    return number;
}

static void twin_text(const char *sql, char **ret_text, int64_t *ret_number)
{
    PGresult *result = PQexec(twin_conn, sql);
    assert(PQresultStatus(result) == PGRES_TUPLES_OK);
    *ret_text = strdup(PQgetvalue(result, 0, 0));
    *ret_number = atoll(PQgetvalue(result, 0, 1));
    PQclear(result);
}

#define SEQUENCE "coalesce(pg_sequence_last_value('onceward.outbox_id_seq'), 0)"

/* A snapshot and nothing that was read up to it. */
static bool give(struct db_outbox_snapshot snapshot, struct db_outbox_look *ret_look)
{
    *ret_look = (struct db_outbox_look){.has_news = true, .snapshot = snapshot};
    return true;
}

/* No transaction id of its own between floor and snapshot. */
static bool look_without_own_xid(struct db *db, const struct db_outbox_range *range, int64_t until,
                                 struct db_outbox_look *ret_look, struct err *err)
{
    (void)db;
    (void)range;
    (void)until;
    (void)err;
    struct db_outbox_snapshot snapshot = {.floor = twin_number("SELECT " SEQUENCE)};
    twin_text("SELECT pg_current_snapshot()::text, " SEQUENCE, &snapshot.text, &snapshot.ceiling);
    return give(snapshot, ret_look);
}

/* The ceiling is older than the snapshot. */
static bool look_for_ceiling_first(struct db *db, const struct db_outbox_range *range, int64_t until,
                                   struct db_outbox_look *ret_look, struct err *err)
{
    (void)db;
    (void)range;
    (void)until;
    (void)err;
    struct db_outbox_snapshot snapshot;
    twin_text("SELECT pg_current_xact_id(), " SEQUENCE, &snapshot.text, &snapshot.floor);
    free(snapshot.text);
    snapshot.ceiling = twin_number("SELECT " SEQUENCE);
    usleep(FORCED_PAUSE_MS * 1000);
    int64_t unused;
    twin_text("SELECT pg_current_snapshot()::text, 0", &snapshot.text, &unused);
    return give(snapshot, ret_look);
}

/* ---- Trials ---- */

static struct findings judge(const struct trial *trial)
{
    struct findings findings = {.disorder = trial->disorder_count};
    for (int key = 0; key < KEY_COUNT; key++) {
        for (int number = 0; number < EVENT_PER_KEY_MAX; number++) {
            const struct fate *fate = &trial->fates[key][number];
            int64_t committed_ms = atomic_load(&fate->committed_ms);
            findings.committed += committed_ms > 0;
            findings.lost += committed_ms > 0 && fate->published_count == 0;
            findings.twice += fate->published_count > 1;
            findings.phantom += committed_ms == 0 && fate->published_count > 0;
            if (committed_ms > 0 && fate->published_ms - committed_ms > findings.latency_max_ms) {
                findings.latency_max_ms = fate->published_ms - committed_ms;
            }
        }
    }
    return findings;
}

static void prepare(struct postgres_fixture *fixture)
{
    postgres_fixture_exec(fixture, "CREATE TABLE test_keys (key integer PRIMARY KEY, number integer NOT NULL)");
    postgres_fixture_exec(fixture, "INSERT INTO test_keys SELECT k, 0 FROM generate_series(0, 63) k");
}

static void run_rivals(struct trial *trial)
{
    int writer_count = trial->takes_turns ? 1 : WRITER_COUNT;
    pthread_t reader;
    pthread_t writers[WRITER_COUNT];
    pthread_mutex_init(&trial->turn, NULL);
    pthread_barrier_init(&trial->start, NULL, (unsigned)writer_count + 1);
    pthread_create(&reader, NULL, trial->reading == READING_BY_ID ? read_by_id : read_by_snapshots, trial);
    for (int i = 0; i < writer_count; i++) {
        pthread_create(&writers[i], NULL, write_events, trial);
    }
    for (int i = 0; i < writer_count; i++) {
        pthread_join(writers[i], NULL);
    }
    await_last(trial);
    atomic_store(&trial->is_over, true);
    pthread_join(reader, NULL);
    pthread_barrier_destroy(&trial->start);
    pthread_mutex_destroy(&trial->turn);
}

static struct findings run_trial(struct trial *trial)
{
    struct postgres_fixture *fixture = postgres_fixture_new();
    assert_non_null(fixture);
    prepare(fixture);
    trial->conninfo = postgres_fixture_conninfo(fixture);
    trial->fates = calloc(KEY_COUNT, sizeof *trial->fates);
    assert_non_null(trial->fates);
    trial->deadline_ms = clock_monotonic_ms() + trial->duration_ms_max;
    twin_conn = connect_or_fail(trial->conninfo);
    PGconn *stranger = trial->takes_turns ? NULL : begin_stranger(trial->conninfo);
    run_rivals(trial);
    PQfinish(stranger);
    PQfinish(twin_conn);
    struct findings findings = judge(trial);
    free(trial->fates);
    postgres_fixture_free(&fixture);
    print_message("%d committed: %d lost, %d twice, %d out of order, %d never committed; at most %" PRId64 " ms\n",
                  findings.committed, findings.lost, findings.twice, findings.disorder, findings.phantom,
                  findings.latency_max_ms);
    return findings;
}

static void assert_flawless(const struct findings *findings)
{
    assert_int_equal(findings->lost, 0);
    assert_int_equal(findings->twice, 0);
    assert_int_equal(findings->phantom, 0);
    assert_int_equal(findings->disorder, 0);
}

static void test_relay_reader_loses_nothing_and_is_prompt(void **state)
{
    (void)state;
    struct trial trial = {.look = db_outbox_look, .event_count_min = 5000, .duration_ms_max = 60000};
    struct findings findings = run_trial(&trial);
    assert_true(findings.committed >= 5000);
    assert_flawless(&findings);
    assert_true(findings.latency_max_ms < LATENCY_MAX_MS);
}

/* What differs from the right way is the one member that is set. */
static const struct twin {
    const char *name;
    enum reading reading;
    relay_look *look;
} twins[] = {
    {"a cursor of ids", READING_BY_ID, NULL},
    {"a floor without an own xid", READING_BY_SNAPSHOTS, look_without_own_xid},
    {"a ceiling before its snapshot", READING_BY_SNAPSHOTS, look_for_ceiling_first},
};

static struct findings run_twin(const struct twin *twin, bool takes_turns)
{
    struct trial trial = {.reading = twin->reading,
                          .look = twin->look,
                          .event_count_min = takes_turns ? TWIN_EVENT_COUNT / 4 : TWIN_EVENT_COUNT,
                          .duration_ms_max = 20000,
                          .takes_turns = takes_turns};
    return run_trial(&trial);
}

static void test_a_twin_does_well_alone_and_is_caught(void **state)
{
    const struct twin *twin = *state;
    struct findings alone = run_twin(twin, true);
    assert_true(alone.committed >= TWIN_EVENT_COUNT / 4);
    assert_flawless(&alone);
    int caught_count = 0;
    for (int run = 0; run < RUN_COUNT; run++) {
        caught_count += run_twin(twin, false).lost > 0;
    }
    print_message("caught in %d of %d runs\n", caught_count, RUN_COUNT);
    assert_true(caught_count >= CAUGHT_COUNT_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relay_reader_loses_nothing_and_is_prompt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) +
           RUN_CASES("outbox_reading", test_a_twin_does_well_alone_and_is_caught, twins);
}
