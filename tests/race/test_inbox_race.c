/* SPDX-License-Identifier: Apache-2.0
 *
 * Rivals on one inbox: three consumers get every event several times, in
 * batches that overlap in every way, and each event has one effect. The broken
 * twin, which looks first and inserts then into an inbox without its key, must
 * fail the same test.
 */
#include "cmocka_all.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/uuid.h"
#include "db/db.h"
#include "db/db_inbox.h"
#include "db/db_sink.h"
#include "db/db_tx.h"
#include "db_private.h"
#include "postgres_fixture.h"

#define EVENT_COUNT 10000
#define TWIN_EVENT_COUNT 600 /* Enough to be caught. */
#define RIVAL_COUNT 3
#define COPY_COUNT 5
#define BATCH_COUNT 100
#define RUN_COUNT 10
#define CAUGHT_COUNT_MIN 9

typedef bool claim_function(struct db_tx *tx, int32_t scope_id, const struct db_inbox_item *items, size_t count,
                            bool *ret_is_fresh, struct err *err);

struct race {
    struct postgres_fixture *postgres;
    struct uuid ids[EVENT_COUNT];
    size_t event_count;
    claim_function *claim;
    pthread_barrier_t barrier;
};

struct rival {
    struct race *race;
    unsigned seed;
    int failures;
    pthread_t thread;
};

static bool claim_by_key(struct db_tx *tx, int32_t scope_id, const struct db_inbox_item *items, size_t count,
                         bool *ret_is_fresh, struct err *err)
{
    return db_inbox_claim(tx, scope_id, DB_INBOX_OWN, items, count, ret_is_fresh, err);
}

static const struct db_statement TWIN_INSERT = {
    .sql = "INSERT INTO onceward.inbox (scope_id, event_id, payload_hash) SELECT $1, unnest($2::uuid[]), 0",
};

static bool claim_by_look(struct db_tx *tx, int32_t scope_id, const struct db_inbox_item *items, size_t count,
                          bool *ret_is_fresh, struct err *err)
{
    struct db_inbox_answer answers[BATCH_COUNT];
    if (!db_inbox_known(tx, scope_id, DB_INBOX_OWN, items, count, answers, err)) {
        return false;
    }
    DB_PARAMS(params);
    db_params_int4(&params, scope_id);
    db_params_array_open(&params, DB_UUID);
    for (size_t i = 0; i < count; i++) {
        ret_is_fresh[i] = !answers[i].is_known;
        if (ret_is_fresh[i]) {
            db_params_uuid(&params, items[i].event_id.bytes);
        }
    }
    db_params_array_close(&params);
    return db_exec(db_tx_db(tx), &TWIN_INSERT, &params, NULL, err);
}

static int compare_items(const void *left, const void *right)
{
    const struct db_inbox_item *one = left;
    const struct db_inbox_item *other = right;
    return uuid_compare(&one->event_id, &other->event_id);
}

static bool apply_effects(struct db_tx *tx, struct db_sink *sink, const struct db_inbox_item *items,
                          const bool *is_fresh, size_t count, struct err *err)
{
    struct event events[BATCH_COUNT];
    struct db_sink_event sink_events[BATCH_COUNT];
    char texts[BATCH_COUNT][UUID_TEXT_SIZE];
    size_t fresh_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_fresh[i]) {
            uuid_to_text(&items[i].event_id, texts[fresh_count]);
            events[fresh_count] = (struct event){.event_id = texts[fresh_count], .value = {"{}", 2}};
            sink_events[fresh_count] = (struct db_sink_event){.event = &events[fresh_count]};
            fresh_count++;
        }
    }
    return fresh_count == 0 || db_sink_apply(tx, sink, sink_events, fresh_count, err);
}

/* One batch in one transaction; again until it is committed. */
static bool run_batch(struct race *race, struct db *db, struct db_sink *sink, int32_t scope_id,
                      struct db_inbox_item *items, size_t count)
{
    bool is_fresh[BATCH_COUNT];
    qsort(items, count, sizeof *items, compare_items);
    for (int attempt = 0; attempt < 20; attempt++) {
        DB_TX_AUTO struct db_tx *tx = NULL;
        struct err err = ERR_INIT;
        if (db_tx_begin(db, &tx, &err) && race->claim(tx, scope_id, items, count, is_fresh, &err) &&
            apply_effects(tx, sink, items, is_fresh, count, &err) && db_tx_commit(&tx, &err) == DB_TX_COMMITTED) {
            return true;
        }
    }
    return false;
}

/* Every event COPY_COUNT times, in an order of the rival's own. */
static void run_rival_on(struct rival *rival, struct db *db, struct db_sink *sink)
{
    struct race *race = rival->race;
    int32_t scope_id = 0;
    struct err err = ERR_INIT;
    if (!db_inbox_scope(db, "race", "live", &scope_id, &err)) {
        rival->failures++;
        return;
    }
    for (int copy = 0; copy < COPY_COUNT; copy++) {
        for (size_t begin = 0; begin < race->event_count; begin += BATCH_COUNT) {
            struct db_inbox_item items[BATCH_COUNT];
            size_t shift = (size_t)rand_r(&rival->seed) % (BATCH_COUNT / 2);
            for (size_t i = 0; i < BATCH_COUNT; i++) {
                items[i] = (struct db_inbox_item){.event_id = race->ids[(begin + shift + i) % race->event_count]};
            }
            rival->failures += run_batch(race, db, sink, scope_id, items, BATCH_COUNT) ? 0 : 1;
        }
    }
}

static void *run_rival(void *context)
{
    struct rival *rival = context;
    struct db_settings settings = DB_SETTINGS_INIT;
    struct err err = ERR_INIT;
    settings.conninfo = postgres_fixture_conninfo(rival->race->postgres);
    struct db *db = db_open(&settings, &err);
    struct db_sink *sink = db_sink_new("INSERT INTO effects (id) SELECT ce_id FROM events", DB_SINK_NAMED, &err);
    pthread_barrier_wait(&rival->race->barrier);
    if (db == NULL || sink == NULL) {
        rival->failures++;
    } else {
        run_rival_on(rival, db, sink);
    }
    db_close(&db);
    db_sink_free(&sink);
    return NULL;
}

static void start_rivals(struct race *race, int rival_count)
{
    struct rival rivals[RIVAL_COUNT];
    int failures = 0;
    assert_int_equal(pthread_barrier_init(&race->barrier, NULL, (unsigned)rival_count), 0);
    for (int i = 0; i < rival_count; i++) {
        rivals[i] = (struct rival){.race = race, .seed = (unsigned)i + 1};
        assert_int_equal(pthread_create(&rivals[i].thread, NULL, run_rival, &rivals[i]), 0);
    }
    for (int i = 0; i < rival_count; i++) {
        pthread_join(rivals[i].thread, NULL);
        failures += rivals[i].failures;
    }
    pthread_barrier_destroy(&race->barrier);
    assert_int_equal(failures, 0);
}

/* Runs the rivals and gives the number of effects beyond the first, over all events. */
static long long race_once(claim_function *claim, int rival_count, size_t event_count, bool has_key)
{
    static struct race race;
    race.postgres = postgres_fixture_new();
    race.claim = claim;
    race.event_count = event_count;
    assert_non_null(race.postgres);
    postgres_fixture_exec(race.postgres, "CREATE TABLE effects (id text)");
    if (!has_key) {
        postgres_fixture_exec(race.postgres, "ALTER TABLE onceward.inbox DROP CONSTRAINT inbox_pkey;"
                                             "CREATE INDEX ON onceward.inbox (scope_id, event_id)");
    }
    int64_t now_ms = postgres_fixture_number(race.postgres, "SELECT (extract(epoch FROM now()) * 1000)::bigint");
    for (size_t i = 0; i < event_count; i++) {
        race.ids[i] = uuid_v7_new(now_ms + (int64_t)i / 16);
    }
    start_rivals(&race, rival_count);
    assert_int_equal(postgres_fixture_number(race.postgres, "SELECT count(DISTINCT id) FROM effects"), event_count);
    long long repeated = postgres_fixture_number(race.postgres, "SELECT count(*) - count(DISTINCT id) FROM effects");
    postgres_fixture_free(&race.postgres);
    return repeated;
}

static void test_inbox_gives_each_event_to_one_rival(void **state)
{
    (void)state;
    assert_int_equal(race_once(claim_by_key, RIVAL_COUNT, EVENT_COUNT, true), 0);
}

static void test_inbox_without_its_key_does_well_alone(void **state)
{
    (void)state;
    assert_int_equal(race_once(claim_by_look, 1, TWIN_EVENT_COUNT, false), 0);
}

static void test_inbox_without_its_key_is_caught(void **state)
{
    (void)state;
    int caught_count = 0;
    for (int run = 0; run < RUN_COUNT; run++) {
        caught_count += race_once(claim_by_look, RIVAL_COUNT, TWIN_EVENT_COUNT, false) > 0;
    }
    print_message("caught in %d of %d runs\n", caught_count, RUN_COUNT);
    assert_true(caught_count >= CAUGHT_COUNT_MIN);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inbox_gives_each_event_to_one_rival),
        cmocka_unit_test(test_inbox_without_its_key_does_well_alone),
        cmocka_unit_test(test_inbox_without_its_key_is_caught),
    };
    return cmocka_run_group_tests_name("inbox_race", tests, NULL, NULL);
}
