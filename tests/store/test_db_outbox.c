/* SPDX-License-Identifier: Apache-2.0
 *
 * Differences of the outbox on a real server: the two streams, their order,
 * their bounds in rows and bytes, gaps, what events look like, and what is
 * refused.
 */
#include "cmocka_all.h"

#include <stdlib.h>

#include "db/db.h"
#include "db/db_outbox.h"
#include "db/db_tx.h"
#include "db/db_partition.h"
#include "db_fixture.h"
#include "postgres_fixture.h"

#include <libpq-fe.h>

#define ALL_LANES 0xffU

struct store {
    struct postgres_fixture *fixture;
    struct db *db;
    PGconn *writer;
};

static int setup(void **state)
{
    struct store *store = calloc(1, sizeof *store);
    store->fixture = postgres_fixture_new();
    assert_non_null(store->fixture);
    store->db = db_fixture_open(postgres_fixture_conninfo_as(store->fixture, "onceward_relay"));
    store->writer = PQconnectdb(postgres_fixture_conninfo(store->fixture));
    *state = store;
    return 0;
}

static int teardown(void **state)
{
    struct store *store = *state;
    PQfinish(store->writer);
    db_close(&store->db);
    postgres_fixture_free(&store->fixture);
    free(store);
    return 0;
}

#define INSERT                                                                                                         \
    "INSERT INTO onceward.outbox (tenant, event_id, topic, key, type, source, time, value) SELECT 'default',"          \
    " gen_random_uuid(), 'orders', 'key-' || n, 't', '/test', now(), convert_to(repeat('x', %d), 'UTF8')"              \
    " FROM generate_series(1, %d) n"

static void insert(PGconn *conn, int count, int size)
{
    char sql[512];
    snprintf(sql, sizeof sql, INSERT, size, count);
    PGresult *result = PQexec(conn, sql);
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
}

static void run(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);
    assert_true(PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_TUPLES_OK);
    PQclear(result);
}

static struct db_outbox_snapshot take(struct store *store)
{
    struct err err = ERR_INIT;
    struct db_outbox_look look;
    assert_true(db_outbox_look(store->db, NULL, 0, &look, &err));
    assert_true(look.has_news);
    assert_false(look.is_read);
    return look.snapshot; /* Its text is the caller's: there is nothing else to free. */
}

static struct db_outbox_range between(const struct db_outbox_snapshot *from, const struct db_outbox_snapshot *to)
{
    return (struct db_outbox_range){.from_text = from->text,
                                    .from_floor = from->floor,
                                    .to_text = to->text,
                                    .lanes = ALL_LANES,
                                    .row_count_max = 1000,
                                    .bytes_max = 1024 * 1024};
}

static struct db_outbox_bite late(struct store *store, const struct db_outbox_range *range, int64_t position)
{
    struct err err = ERR_INIT;
    struct db_outbox_bite bite;
    bool is_read = db_outbox_read_late(store->db, range, position, &bite, &err);
    assert_string_equal(err.text, "");
    assert_true(is_read);
    return bite;
}

static struct db_outbox_bite window(struct store *store, const struct db_outbox_range *range, int64_t position,
                                    int64_t until)
{
    struct err err = ERR_INIT;
    struct db_outbox_bite bite;
    bool is_read = db_outbox_read_window(store->db, range, position, until, &bite, &err);
    assert_string_equal(err.text, "");
    assert_true(is_read);
    return bite;
}

static void test_db_outbox_reads_each_row_in_one_of_two_streams(void **state)
{
    struct store *store = *state;
    PGconn *slow = PQconnectdb(postgres_fixture_conninfo(store->fixture));
    run(slow, "BEGIN");
    insert(slow, 3, 10);          /* ids 1 to 3, open. */
    insert(store->writer, 3, 10); /* 4 to 6. */
    struct db_outbox_snapshot from = take(store);
    assert_int_equal(from.floor, 6);
    run(slow, "COMMIT");
    insert(store->writer, 2, 10); /* 7 and 8. */
    struct db_outbox_snapshot to = take(store);
    const struct db_outbox_range range = between(&from, &to);
    struct db_outbox_bite b = late(store, &range, 0);
    assert_int_equal(b.count, 3);
    assert_int_equal(b.events[0].outbox_id, 1);
    assert_int_equal(b.events[2].outbox_id, 3);
    assert_false(b.is_cut);
    struct db_outbox_bite a = window(store, &range, from.floor, to.ceiling);
    assert_int_equal(a.count, 2);
    assert_int_equal(a.events[0].outbox_id, 7);
    db_outbox_bite_done(&a);
    db_outbox_bite_done(&b);
    free(from.text);
    free(to.text);
    PQfinish(slow);
}

static void test_db_outbox_orders_late_rows_of_many_transactions_by_id(void **state)
{
    struct store *store = *state;
    PGconn *writers[3];
    for (int i = 0; i < 3; i++) {
        writers[i] = PQconnectdb(postgres_fixture_conninfo(store->fixture));
        run(writers[i], "BEGIN");
        run(writers[i], "SELECT pg_current_xact_id()");
    }
    for (int i = 0; i < 9; i++) {
        insert(writers[(i * 2) % 3], 1, 10);
    }
    struct db_outbox_snapshot from = take(store);
    for (int i = 0; i < 3; i++) {
        run(writers[i], "COMMIT");
        PQfinish(writers[i]);
    }
    struct db_outbox_snapshot to = take(store);
    struct db_outbox_range range = between(&from, &to);
    range.row_count_max = 4;
    int64_t position = 0;
    for (int64_t id = 1; id <= 9;) {
        struct db_outbox_bite bite = late(store, &range, position);
        assert_true(bite.count > 0);
        assert_int_equal(bite.is_cut, bite.count == 4);
        for (size_t i = 0; i < bite.count; i++, id++) {
            assert_int_equal(bite.events[i].outbox_id, id);
        }
        position = bite.events[bite.count - 1].outbox_id;
        db_outbox_bite_done(&bite);
    }
    free(from.text);
    free(to.text);
}

static void test_db_outbox_bounds_a_bite_by_bytes(void **state)
{
    struct store *store = *state;
    struct db_outbox_snapshot from = take(store);
    insert(store->writer, 10, 1000);
    struct db_outbox_snapshot to = take(store);
    struct db_outbox_range range = between(&from, &to);
    range.bytes_max = 2500;
    struct db_outbox_bite bite = window(store, &range, from.floor, to.ceiling);
    assert_int_equal(bite.count, 3); /* The one that passes the bound is the last. */
    assert_true(bite.is_cut);
    db_outbox_bite_done(&bite);
    range.bytes_max = 1;
    bite = window(store, &range, from.floor, to.ceiling);
    assert_int_equal(bite.count, 1); /* A great one goes alone. */
    db_outbox_bite_done(&bite);
    free(from.text);
    free(to.text);
}

static void test_db_outbox_reads_only_its_lanes(void **state)
{
    struct store *store = *state;
    struct db_outbox_snapshot from = take(store);
    insert(store->writer, 200, 10);
    struct db_outbox_snapshot to = take(store);
    struct db_outbox_range range = between(&from, &to);
    size_t total = 0;
    for (int lane = 0; lane < EVENT_LANE_COUNT; lane++) {
        range.lanes = 1U << lane;
        struct db_outbox_bite bite = window(store, &range, from.floor, to.ceiling);
        for (size_t i = 0; i < bite.count; i++) {
            assert_int_equal(bite.events[i].lane, lane);
        }
        total += bite.count;
        db_outbox_bite_done(&bite);
    }
    assert_int_equal(total, 200);
    free(from.text);
    free(to.text);
}

static void test_db_outbox_gives_an_event_as_it_was_written(void **state)
{
    struct store *store = *state;
    struct db_outbox_snapshot from = take(store);
    run(store->writer,
        "INSERT INTO onceward.outbox (tenant, event_id, topic, key, type, source, subject, time, content_type, "
        "dataschema,"
        " traceparent, header_names, header_values, value) VALUES ('acme', '0198c0de-0000-7000-8000-0000000000ff', "
        "'orders',"
        " 'schlüssel', 'order.submitted', '/onceward', 'subject', '2026-11-30 06:07:08.123456+00', 'application/json',"
        " 'https://example.org/s', '00-11111111111111111111111111111111-2222222222222222-01', '{a,bc}',"
        " ARRAY['\\xff00'::bytea, ''::bytea], '\\x007b7d')");
    struct db_outbox_snapshot to = take(store);
    const struct db_outbox_range range = between(&from, &to);
    struct db_outbox_bite bite = window(store, &range, from.floor, to.ceiling);
    assert_int_equal(bite.count, 1);
    const struct event *event = &bite.events[0];
    assert_string_equal(event->tenant, "acme");
    assert_string_equal(event->event_id, "0198c0de-0000-7000-8000-0000000000ff");
    assert_string_equal(event->key, "schlüssel");
    assert_string_equal(event->time, "2026-11-30T06:07:08.123456Z");
    assert_string_equal(event->subject, "subject");
    assert_string_equal(event->dataschema, "https://example.org/s");
    assert_int_equal(event->value.size, 3);
    assert_memory_equal(event->value.data, "\0{}", 3);
    assert_int_equal(event->header_count, 2);
    assert_string_equal(event->headers[0].name, "a");
    assert_memory_equal(event->headers[0].value.data, "\xff\0", 2);
    assert_string_equal(event->headers[1].name, "bc");
    assert_int_equal(event->headers[1].value.size, 0);
    assert_non_null(event->headers[1].value.data);
    db_outbox_bite_done(&bite);
    free(from.text);
    free(to.text);
}

/* Every lane, from the snapshot on, as far as the bounds go. */
static struct db_outbox_look look_from(struct store *store, const struct db_outbox_snapshot *from, int64_t until,
                                       int32_t row_count_max)
{
    struct err err = ERR_INIT;
    struct db_outbox_range range = between(from, from);
    struct db_outbox_look look;
    range.row_count_max = row_count_max;
    range.to_text = NULL;
    assert_true(db_outbox_look(store->db, &range, until, &look, &err));
    assert_int_equal(look.is_read, look.has_news);
    return look;
}

static void test_db_outbox_has_news_when_an_id_was_given_or_a_writer_ended(void **state)
{
    struct store *store = *state;
    PGconn *slow = PQconnectdb(postgres_fixture_conninfo(store->fixture));
    struct db_outbox_snapshot snapshot = take(store);
    assert_false(look_from(store, &snapshot, 1000, 100).has_news);
    run(slow, "BEGIN");
    insert(slow, 1, 10);
    struct db_outbox_look look = look_from(store, &snapshot, 1000, 100);
    assert_true(look.has_news); /* An id, though not visible yet. */
    assert_int_equal(look.bite.count, 0);
    assert_int_equal(look.snapshot.ceiling, 1);
    free(snapshot.text);
    db_outbox_bite_done(&look.bite);
    snapshot = look.snapshot;
    assert_false(look_from(store, &snapshot, 1000, 100).has_news);
    run(slow, "COMMIT");
    look = look_from(store, &snapshot, 1000, 100);
    assert_true(look.has_news);
    assert_int_equal(look.bite.count, 1); /* Late, and nothing behind it. */
    db_outbox_look_done(&look);
    free(snapshot.text);
    PQfinish(slow);
}

/* Looks inside a transaction, so that one can see from elsewhere whether it has an xid. With one the look fails, since
 * no snapshot that is younger than its end can be had. */
static bool look_writes(struct store *store, const struct db_outbox_snapshot *from)
{
    struct err err = ERR_INIT;
    struct db_tx *tx = NULL;
    struct db_outbox_range range = between(from, from);
    struct db_outbox_look look;
    char count[8];
    assert_true(db_tx_begin(store->db, &tx, &err));
    bool is_taken = db_outbox_look(store->db, &range, 1000, &look, &err);
    assert_string_equal(err.code, is_taken ? "" : "snapshot_stale");
    postgres_fixture_text(store->fixture,
                          "SELECT count(backend_xid) FROM pg_stat_activity WHERE datname = current_database()", count,
                          sizeof count);
    db_tx_rollback(&tx);
    assert_int_equal(strcmp(count, "0") != 0, !is_taken);
    return !is_taken;
}

/* An idle relay must not use up transaction ids. */
static void test_db_outbox_takes_no_xid_without_news(void **state)
{
    struct store *store = *state;
    struct db_outbox_snapshot from = take(store);
    assert_false(look_writes(store, &from));
    insert(store->writer, 1, 10);
    assert_true(look_writes(store, &from));
    free(from.text);
}

static void assert_ids(const struct db_outbox_bite *bite, int64_t first, size_t count)
{
    assert_int_equal(bite->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(bite->events[i].outbox_id, first + (int64_t)i);
    }
}

/* Ids 1 to 5 are late, 6 to 10 are new. */
static void test_db_outbox_looks_and_reads_both_streams_in_order_of_id(void **state)
{
    struct store *store = *state;
    PGconn *slow = PQconnectdb(postgres_fixture_conninfo(store->fixture));
    run(slow, "BEGIN");
    insert(slow, 5, 10);
    struct db_outbox_snapshot from = take(store);
    assert_int_equal(from.floor, 5);
    insert(store->writer, 5, 10);
    run(slow, "COMMIT");
    PQfinish(slow);
    static const struct {
        int64_t until;
        int32_t row_count_max;
        size_t count;
        bool is_cut;
    } cases[] = {
        {1000, 100, 10, false}, {8, 100, 8, false}, {5, 100, 5, false}, {1000, 7, 7, true}, {1000, 3, 3, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct db_outbox_look look = look_from(store, &from, cases[i].until, cases[i].row_count_max);
        assert_ids(&look.bite, 1, cases[i].count);
        assert_int_equal(look.bite.is_cut, cases[i].is_cut);
        assert_int_equal(look.snapshot.ceiling, 10);
        db_outbox_look_done(&look);
    }
    free(from.text);
}

static void test_db_outbox_tells_the_age_of_what_nobody_has_published(void **state)
{
    struct store *store = *state;
    struct err err = ERR_INIT;
    double age_seconds = -1;
    assert_true(db_outbox_oldest_unpublished(store->db, &age_seconds, &err));
    assert_true(age_seconds == 0);
    run(store->writer, "INSERT INTO onceward.outbox (tenant, event_id, topic, key, type, source, time, value) VALUES"
                       " ('default', gen_random_uuid(), 'orders', 'k', 't', '/test', now() - interval '90 s', 'x')");
    assert_true(db_outbox_oldest_unpublished(store->db, &age_seconds, &err));
    assert_true(age_seconds >= 90 && age_seconds < 150);
}

static void test_db_outbox_refuses_a_sequence_that_caches(void **state)
{
    struct store *store = *state;
    struct err err = ERR_INIT;
    assert_true(db_outbox_check_sequence(store->db, &err));
    run(store->writer, "ALTER SEQUENCE onceward.outbox_id_seq CACHE 10");
    assert_false(db_outbox_check_sequence(store->db, &err));
    assert_int_equal(err.kind, ERR_FATAL);
    assert_string_equal(err.code, "sequence_cached");
}

static void test_db_partition_makes_room_ahead(void **state)
{
    struct store *store = *state;
    struct err err = ERR_INIT;
    int made = -1;
    int64_t ids_ahead = 0;
    int64_t ids_a_day = 0;
    run(store->writer, "SELECT setval('onceward.outbox_id_seq', 2999000)");
    assert_true(db_partition_make(store->db, &made, &ids_ahead, &ids_a_day, &err));
    assert_true(made > 0);
    assert_true(ids_ahead > ids_a_day && ids_a_day >= 1000000);
    assert_true(db_partition_make(store->db, &made, &ids_ahead, &ids_a_day, &err));
    assert_int_equal(made, 0);
    insert(store->writer, 2000, 1); /* Across the border that was the end. */
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_db_outbox_reads_each_row_in_one_of_two_streams),
        STORE_TEST(test_db_outbox_orders_late_rows_of_many_transactions_by_id),
        STORE_TEST(test_db_outbox_bounds_a_bite_by_bytes),
        STORE_TEST(test_db_outbox_reads_only_its_lanes),
        STORE_TEST(test_db_outbox_gives_an_event_as_it_was_written),
        STORE_TEST(test_db_outbox_has_news_when_an_id_was_given_or_a_writer_ended),
        STORE_TEST(test_db_outbox_takes_no_xid_without_news),
        STORE_TEST(test_db_outbox_looks_and_reads_both_streams_in_order_of_id),
        STORE_TEST(test_db_outbox_tells_the_age_of_what_nobody_has_published),
        STORE_TEST(test_db_outbox_refuses_a_sequence_that_caches),
        STORE_TEST(test_db_partition_makes_room_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
