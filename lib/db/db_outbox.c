/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots of the outbox and the two streams of their difference. The
 * invariant: a row that commits is in exactly one difference of a chain of
 * snapshots, whatever ids and transaction ids its neighbours have.
 */
#include "db/db_outbox.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "db_private.h"

#define SQL_SEQUENCE "coalesce(pg_catalog.pg_sequence_last_value('onceward.outbox_id_seq'), 0)"

/* ---- Bites ---- */

#define SQL_EVENT                                                                                                      \
    "id, lane, event_id::text, tenant, topic, key, type, source, subject, time, content_type, dataschema, "            \
    "traceparent,"                                                                                                     \
    " header_names, header_values, value"

#define EVENT_COLUMNS                                                                                                  \
    DB_INT8, DB_INT2, DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT, DB_TIMESTAMPTZ, DB_TEXT, DB_TEXT, \
        DB_TEXT, DB_TEXT_ARRAY, DB_BYTEA_ARRAY, DB_BYTEA
#define EVENT_COLUMN_COUNT 16

/* Sizes are summed before any value is fetched: octet_length() does not read what is stored out of line. */
#define SQL_BYTES_BEFORE                                                                                               \
    "sum(octet_length(value)) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - octet_length(value) AS bytes_before"

/* Stream B by the index (xid, id), one probe for each transaction of `late`. */
#define SQL_LATE(position, floor, lanes, count)                                                                        \
    "SELECT found.* FROM late CROSS JOIN LATERAL (SELECT o.* FROM onceward.outbox o"                                   \
    " WHERE (o.xid, o.id) > (late.xid, " position "::int8) AND (o.xid, o.id) <= (late.xid, " floor "::int8)"           \
    " AND o.lane = ANY (" lanes ") ORDER BY o.xid, o.id LIMIT " count ") found ORDER BY id LIMIT " count

#define SQL_LATE_XIDS(from, to)                                                                                        \
    "late AS MATERIALIZED (SELECT x.xid FROM pg_catalog.pg_snapshot_xip(" from ") AS x (xid)"                          \
    " WHERE pg_catalog.pg_visible_in_snapshot(x.xid, " to "))"

/* Stream A by the index on id. */
#define SQL_WINDOW(from, to, position, until, lanes, count)                                                            \
    "SELECT o.* FROM onceward.outbox o WHERE o.id > " position " AND o.id <= " until " AND o.lane = ANY (" lanes ")"   \
    " AND pg_catalog.pg_visible_in_snapshot(o.xid, " to ") AND NOT pg_catalog.pg_visible_in_snapshot(o.xid, " from ")" \
    " ORDER BY id LIMIT " count

static const struct db_statement READ_LATE = {
    .sql = "WITH " SQL_LATE_XIDS("$1::pg_snapshot",
                                 "$2::pg_snapshot") " SELECT " SQL_EVENT " FROM (SELECT found.*, " SQL_BYTES_BEFORE
                                                    " FROM (" SQL_LATE("$3", "$4", "$5",
                                                                       "$6") ") found) bite"
                                                                             " WHERE bytes_before < $7 ORDER BY id",
    .columns = {EVENT_COLUMNS},
};

static const struct db_statement READ_WINDOW = {
    .sql = "SELECT " SQL_EVENT " FROM (SELECT o.*, " SQL_BYTES_BEFORE " FROM (" SQL_WINDOW(
        "$1::pg_snapshot", "$2::pg_snapshot", "$3", "$4", "$5", "$6") ") o) bite"
                                                                      " WHERE bytes_before < $7 ORDER BY id",
    .columns = {EVENT_COLUMNS},
};

struct db_outbox_memory {
    PGresult *result;
    struct event *events;
    char (*times)[CLOCK_TEXT_SIZE];
    struct event_header *headers; /* Of all events, one after another. */
    char *names;                  /* Their names, terminated: in the result they are not. */
};

static void memory_free(struct db_outbox_memory *memory)
{
    db_result_clear(&memory->result);
    free(memory->events);
    free(memory->times);
    free(memory->headers);
    free(memory->names);
    free(memory);
}

/* A row without an id has only a snapshot. */
static int count_events(const PGresult *result)
{
    int count = db_result_rows(result);
    return count == 1 && db_is_null(result, 0, 0) ? 0 : count;
}

/* Counts what the headers of all rows need. */
static void measure_headers(const PGresult *result, size_t *ret_count, size_t *ret_names_size)
{
    *ret_count = 0;
    *ret_names_size = 0;
    for (int row = 0; row < count_events(result); row++) {
        struct db_array names = db_get_array(result, row, 13, DB_TEXT);
        struct bytes name;
        while (db_array_next(&names, &name)) {
            *ret_count += 1;
            *ret_names_size += name.size + 1;
        }
    }
}

static struct db_outbox_memory *memory_new(PGresult *result)
{
    size_t header_count;
    size_t names_size;
    measure_headers(result, &header_count, &names_size);
    size_t count = (size_t)count_events(result);
    struct db_outbox_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL) {
        return NULL;
    }
    memory->events = calloc(count + 1, sizeof *memory->events);
    memory->times = calloc(count + 1, sizeof *memory->times);
    memory->headers = calloc(header_count + 1, sizeof *memory->headers);
    memory->names = malloc(names_size + 1);
    if (memory->events == NULL || memory->times == NULL || memory->headers == NULL || memory->names == NULL) {
        memory_free(memory);
        return NULL;
    }
    memory->result = result;
    return memory;
}

static size_t fill_headers(const PGresult *result, int row, struct event_header *headers, char **namesp)
{
    struct db_array names = db_get_array(result, row, 13, DB_TEXT);
    struct db_array values = db_get_array(result, row, 14, DB_BYTEA);
    struct bytes name;
    struct bytes value;
    size_t count = 0;
    while (db_array_next(&names, &name) && db_array_next(&values, &value)) {
        memcpy(*namesp, name.data, name.size);
        (*namesp)[name.size] = '\0';
        headers[count++] = (struct event_header){.name = *namesp, .value = value};
        *namesp += name.size + 1;
    }
    return count;
}

static void fill_event(struct db_outbox_memory *memory, int row, struct event *event)
{
    const PGresult *result = memory->result;
    clock_to_text(db_get_timestamptz(result, row, 9), memory->times[row]);
    *event = (struct event){
        .outbox_id = db_get_int8(result, row, 0),
        .lane = db_get_int2(result, row, 1),
        .event_id = db_get_text(result, row, 2),
        .tenant = db_get_text(result, row, 3),
        .topic = db_get_text(result, row, 4),
        .key = db_get_text(result, row, 5),
        .type = db_get_text(result, row, 6),
        .source = db_get_text(result, row, 7),
        .subject = db_get_text_or_null(result, row, 8),
        .time = memory->times[row],
        .content_type = db_get_text_or_null(result, row, 10),
        .dataschema = db_get_text_or_null(result, row, 11),
        .traceparent = db_get_text_or_null(result, row, 12),
        .value = db_get_bytes(result, row, 15),
    };
}

/* Takes the result. */
static bool make_bite(PGresult *result, const struct db_outbox_range *range, struct db_outbox_bite *ret_bite,
                      struct err *err)
{
    struct db_outbox_memory *memory = memory_new(result);
    if (memory == NULL) {
        db_result_clear(&result);
        return err_set(err, ERR_FATAL, "memory", "no memory for a bite of the outbox");
    }
    int count = count_events(result);
    struct event_header *headers = memory->headers;
    char *names = memory->names;
    int64_t bytes = 0;
    for (int row = 0; row < count; row++) {
        struct event *event = &memory->events[row];
        fill_event(memory, row, event);
        event->headers = headers;
        event->header_count = fill_headers(result, row, headers, &names);
        headers += event->header_count;
        bytes += (int64_t)event->value.size;
        assert(row == 0 || event[-1].outbox_id < event->outbox_id);
    }
    *ret_bite = (struct db_outbox_bite){.events = memory->events,
                                        .count = (size_t)count,
                                        .is_cut = count == range->row_count_max || bytes >= range->bytes_max,
                                        .memory = memory};
    return true;
}

static void add_bounds(struct db_params *params, const struct db_outbox_range *range)
{
    assert(range->row_count_max > 0 && range->bytes_max > 0 && range->lanes != 0);
    db_params_array_open(params, DB_INT2);
    for (int lane = 0; lane < EVENT_LANE_COUNT; lane++) {
        if ((range->lanes >> lane & 1U) != 0) {
            db_params_int2(params, (int16_t)lane);
        }
    }
    db_params_array_close(params);
    db_params_int8(params, range->row_count_max);
    db_params_int8(params, range->bytes_max);
}

static bool read_bite(struct db *db, const struct db_statement *statement, const struct db_outbox_range *range,
                      int64_t position, int64_t until, struct db_outbox_bite *ret_bite, struct err *err)
{
    DB_PARAMS(params);
    db_params_literal(&params, range->from_text);
    db_params_literal(&params, range->to_text);
    db_params_int8(&params, position);
    db_params_int8(&params, until);
    add_bounds(&params, range);
    PGresult *result = NULL;
    return db_exec(db, statement, &params, &result, err) && make_bite(result, range, ret_bite, err);
}

bool db_outbox_read_late(struct db *db, const struct db_outbox_range *range, int64_t position,
                         struct db_outbox_bite *ret_bite, struct err *err)
{
    return read_bite(db, &READ_LATE, range, position, range->from_floor, ret_bite, err);
}

bool db_outbox_read_window(struct db *db, const struct db_outbox_range *range, int64_t position, int64_t until,
                           struct db_outbox_bite *ret_bite, struct err *err)
{
    assert(position >= range->from_floor && until > position);
    return read_bite(db, &READ_WINDOW, range, position, until, ret_bite, err);
}

void db_outbox_bite_done(struct db_outbox_bite *bite)
{
    if (bite->memory != NULL) {
        memory_free(bite->memory);
    }
    *bite = (struct db_outbox_bite){.events = NULL};
}

/* ---- Looking: a snapshot and the first bite up to it ---- */

/* Of the statement's own snapshot, which is older than anything that it reads: so the ceiling is newer. */
#define SQL_SNAPSHOT                                                                                                   \
    "taken.snapshot::text, pg_catalog.pg_snapshot_xmax(taken.snapshot), " SQL_SEQUENCE ", " DB_SQL_SERVER
#define SNAPSHOT_COLUMNS DB_TEXT, DB_XID8, DB_INT8, DB_SERVER_COLUMNS

/* The floor is older than the own xid: what OFFSET stands behind is done before what reads from it. Without news there
 * is no xid and nothing is written. */
static const struct db_statement TAKE_FLOOR = {
    .sql = "SELECT f.floor, CASE WHEN f.floor > $1 OR EXISTS (SELECT FROM pg_catalog.pg_snapshot_xip($2::pg_snapshot)"
           " AS x (xid) WHERE pg_catalog.pg_visible_in_snapshot(x.xid, pg_catalog.pg_current_snapshot()))"
           " THEN pg_catalog.pg_current_xact_id() END FROM (SELECT " SQL_SEQUENCE " AS floor OFFSET 0) f",
    .columns = {DB_INT8, DB_XID8},
};

static const struct db_statement TAKE_SNAPSHOT = {
    .sql = "SELECT " SQL_SNAPSHOT " FROM (SELECT pg_catalog.pg_current_snapshot() AS snapshot) taken",
    .columns = {SNAPSHOT_COLUMNS},
};

/* With both streams of the difference from $1 to this very snapshot, whose rows are what the statement sees: B up to
 * from's floor $2, A up to $3. Each has the plan of its own statement above. The snapshot stands in the first row,
 * which has nothing else where there are no events. */
static const struct db_statement TAKE_AND_READ = {
    .sql = "WITH taken AS MATERIALIZED (SELECT pg_catalog.pg_current_snapshot() AS snapshot), " SQL_LATE_XIDS(
        "$1::pg_snapshot",
        "(SELECT snapshot FROM taken)") ", "
                                        "bite AS (SELECT found.*, " SQL_BYTES_BEFORE
                                        ", row_number() OVER (ORDER BY id) AS number FROM ("
                                        "(" SQL_LATE("0", "$2", "$4", "$5") ") UNION ALL (" SQL_WINDOW(
                                            "$1::pg_snapshot", "(SELECT snapshot FROM taken)", "$2", "$3", "$4",
                                            "$5") ") ORDER BY id LIMIT $5) found)"
                                                  " SELECT " SQL_EVENT
                                                  ", first.* FROM (SELECT * FROM bite WHERE bytes_before < $6) bite"
                                                  " FULL JOIN (SELECT " SQL_SNAPSHOT
                                                  ", 1::int8 AS number FROM taken OFFSET 0) first"
                                                  " ON bite.number = first.number ORDER BY id",
    .columns = {EVENT_COLUMNS, SNAPSHOT_COLUMNS, DB_INT8},
};

/* Two transactions, one after the other, in one journey. */
static bool take(struct db *db, const struct db_outbox_range *from, struct db_call *snapshot, PGresult **ret_floor,
                 struct err *err)
{
    DB_PARAMS(params);
    db_params_int8(&params, from == NULL ? -1 : from->from_floor);
    db_params_literal(&params, from == NULL ? "1:1:" : from->from_text);
    struct db_call calls[] = {{.statement = &TAKE_FLOOR, .params = &params, .ends_transaction = true}, *snapshot};
    size_t first = FAILPOINT_IS_ARMED("relay.after_own_xid") ? 1 : 2;
    if (!db_exec_all(db, calls, first, err)) {
        return false;
    }
    FAILPOINT("relay.after_own_xid");
    if (first == 1 && !db_exec_all(db, &calls[1], 1, err)) {
        db_calls_clear(calls, 1);
        return false;
    }
    *ret_floor = calls[0].result;
    snapshot->result = calls[1].result;
    assert(db_result_rows(*ret_floor) == 1 && db_result_rows(snapshot->result) > 0);
    return true;
}

/* The snapshot's columns begin at column. */
static bool read_snapshot(const struct db *db, const PGresult *floor, const PGresult *result, int column,
                          struct db_outbox_look *ret_look, struct err *err)
{
    if (!db_check_server(db, result, column + 3, err)) {
        return false;
    }
    ret_look->has_news = !db_is_null(floor, 0, 1);
    if (!ret_look->has_news) {
        return true;
    }
    uint64_t own_xid = db_get_xid8(floor, 0, 1);
    uint64_t xmax = db_get_xid8(result, 0, column + 1);
    if (xmax <= own_xid) {
        return err_set(err, ERR_TRANSIENT, "snapshot_stale",
                       "the snapshot ends at %" PRIu64 ", before our own transaction %" PRIu64, xmax, own_xid);
    }
    struct db_outbox_snapshot *snapshot = &ret_look->snapshot;
    *snapshot = (struct db_outbox_snapshot){.text = strdup(db_get_text(result, 0, column)),
                                            .floor = db_get_int8(floor, 0, 0),
                                            .ceiling = db_get_int8(result, 0, column + 2)};
    assert(snapshot->floor <= snapshot->ceiling);
    return snapshot->text != NULL || err_set(err, ERR_FATAL, "memory", "no memory for a snapshot");
}

bool db_outbox_look(struct db *db, const struct db_outbox_range *range, int64_t until, struct db_outbox_look *ret_look,
                    struct err *err)
{
    DB_PARAMS(params);
    DB_RESULT(floor);
    struct db_call call = {.statement = &TAKE_SNAPSHOT};
    *ret_look = (struct db_outbox_look){.has_news = false};
    if (range != NULL) {
        assert(until >= range->from_floor);
        db_params_literal(&params, range->from_text);
        db_params_int8(&params, range->from_floor);
        db_params_int8(&params, until);
        add_bounds(&params, range);
        call = (struct db_call){.statement = &TAKE_AND_READ, .params = &params};
    }
    bool is_good = take(db, range, &call, &floor, err) &&
                   read_snapshot(db, floor, call.result, range == NULL ? 0 : EVENT_COLUMN_COUNT, ret_look, err);
    if (is_good && ret_look->has_news && range != NULL) {
        is_good = ret_look->is_read = make_bite(call.result, range, &ret_look->bite, err);
        call.result = NULL;
    }
    db_calls_clear(&call, 1);
    if (!is_good) {
        db_outbox_look_done(ret_look);
    }
    return is_good;
}

void db_outbox_look_done(struct db_outbox_look *look)
{
    free(look->snapshot.text);
    db_outbox_bite_done(&look->bite);
    *look = (struct db_outbox_look){.has_news = false};
}

/* ---- What is asked beside the reading ---- */

/* Of each lane the first event above its floor and its position, and the first of each transaction that ran in from.
 * Rows that a lane's to does not show, with ids below its position, are missed until the next difference. */
static const struct db_statement OLDEST_UNPUBLISHED = {
    .sql = "SELECT coalesce(greatest(extract(epoch FROM clock_timestamp() - min(first.time)), 0), 0)::float8"
           " FROM onceward.lanes l CROSS JOIN LATERAL ("
           "SELECT p.snapshot_from, p.from_floor, p.snapshot_to, p.position FROM onceward.lane_progress p"
           " WHERE p.lane = l.lane ORDER BY p.seq DESC LIMIT 1) p CROSS JOIN LATERAL ("
           "(SELECT o.time FROM onceward.outbox o WHERE o.id > greatest(p.from_floor, p.position) AND o.lane = l.lane"
           " AND NOT pg_catalog.pg_visible_in_snapshot(o.xid, p.snapshot_from) ORDER BY o.id LIMIT 1)"
           " UNION ALL "
           "SELECT late.time FROM pg_catalog.pg_snapshot_xip(p.snapshot_from) AS x (xid) CROSS JOIN LATERAL ("
           "SELECT o.time FROM onceward.outbox o WHERE (o.xid, o.id) > (x.xid, p.position)"
           " AND (o.xid, o.id) <= (x.xid, p.from_floor) AND o.lane = l.lane ORDER BY o.xid, o.id LIMIT 1) late) first",
    .columns = {DB_FLOAT8},
};

bool db_outbox_oldest_unpublished(struct db *db, double *ret_age_seconds, struct err *err)
{
    DB_RESULT(result);
    if (!db_exec_row(db, &OLDEST_UNPUBLISHED, NULL, &result, err)) {
        return false;
    }
    *ret_age_seconds = db_get_float8(result, 0, 0);
    return true;
}

static const struct db_statement READ_CACHE = {
    .sql = "SELECT seqcache FROM pg_catalog.pg_sequence WHERE seqrelid = 'onceward.outbox_id_seq'::regclass",
    .columns = {DB_INT8},
};

bool db_outbox_check_sequence(struct db *db, struct err *err)
{
    DB_RESULT(result);
    if (!db_exec_row(db, &READ_CACHE, NULL, &result, err)) {
        return false;
    }
    int64_t cache = db_get_int8(result, 0, 0);
    if (cache != 1) {
        return err_set(err, ERR_FATAL, "sequence_cached",
                       "the sequence of the outbox has CACHE %" PRId64 " and must have CACHE 1, or events are lost",
                       cache);
    }
    return true;
}

static const struct db_statement READ_TOPICS = {
    .sql = "SELECT topic, in_flight_per_key FROM onceward.topics WHERE in_flight_per_key > 1 ORDER BY topic",
    .columns = {DB_TEXT, DB_INT4},
};

bool db_outbox_each_topic(struct db *db, void (*visit)(void *context, const char *topic, int in_flight_per_key),
                          void *context, struct err *err)
{
    DB_RESULT(result);
    if (!db_exec(db, &READ_TOPICS, NULL, &result, err)) {
        return false;
    }
    for (int row = 0; row < db_result_rows(result); row++) {
        visit(context, db_get_text(result, row, 0), db_get_int4(result, row, 1));
    }
    return true;
}
