/* SPDX-License-Identifier: Apache-2.0
 *
 * The cursor log. Three things stand in every insert: the key decides between
 * rivals, the seq stops one who slept while old rows were deleted, the attempt
 * stops one who remembers a seq of before a restore. The invariant: no row is
 * ever updated, and the last one is never deleted.
 */
#include "db/db_progress.h"

#include <assert.h>
#include <string.h>

#include "db_inbox_private.h"

static const char *const kind_names[] = {
    [DB_PROGRESS_REGISTERED] = "registered",
    [DB_PROGRESS_TAKEN] = "taken",
    [DB_PROGRESS_MOVED] = "moved",
    [DB_PROGRESS_REWOUND] = "rewound",
};

static enum db_progress_kind kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof kind_names / sizeof kind_names[0]; i++) {
        if (strcmp(kind_names[i], name) == 0) {
            return (enum db_progress_kind)i;
        }
    }
    assert(false && "no such kind of progress row");
    return DB_PROGRESS_MOVED;
}

static void add_self(struct db_params *params, const struct db_progress_self *self)
{
    db_params_text(params, self->consumer);
    db_params_text(params, self->scope);
}

static void add_owner(struct db_params *params, const struct db_progress_self *self)
{
    db_params_text(params, self->owner);
    db_params_uuid(params, self->incarnation.bytes);
}

static void add_places(struct db_params *params, const struct db_progress_place *places, size_t count)
{
    db_params_array_open(params, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_params_text(params, places[i].topic);
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_INT4);
    for (size_t i = 0; i < count; i++) {
        db_params_int4(params, places[i].partition);
    }
    db_params_array_close(params);
}

static void add_numbers(struct db_params *params, const int64_t *numbers, size_t count)
{
    db_params_array_open(params, DB_INT8);
    for (size_t i = 0; i < count; i++) {
        db_params_int8(params, numbers[i]);
    }
    db_params_array_close(params);
}

static const struct db_statement IS_REGISTERED = {
    .sql = "SELECT EXISTS (SELECT FROM onceward.consumer_progress WHERE consumer = $1 AND scope = $2 AND topic = $3)",
    .columns = {DB_BOOL},
};

bool db_progress_is_registered(struct db *db, const struct db_progress_self *self, const char *topic,
                               bool *ret_is_registered, struct err *err)
{
    DB_PARAMS(params);
    add_self(&params, self);
    db_params_text(&params, topic);
    DB_RESULT(result);
    if (!db_exec_row(db, &IS_REGISTERED, &params, &result, err)) {
        return false;
    }
    *ret_is_registered = db_get_bool(result, 0, 0);
    return true;
}

static const struct db_statement REGISTER = {
    .sql =
        "INSERT INTO onceward.consumer_progress (consumer, scope, owner, incarnation, attempt, cluster_id, kind, seq, "
        "topic, partition, next_offset) "
        "SELECT $1, $2, $3, $4, gen_random_uuid(), $5, 'registered', 0, p.topic, p.partition, p.next_offset "
        "FROM unnest($6::text[], $7::int4[], $8::int8[]) AS p (topic, partition, next_offset) "
        "WHERE NOT EXISTS (SELECT FROM onceward.consumer_progress c WHERE c.consumer = $1 AND c.scope = $2 "
        "AND c.topic = p.topic AND c.partition = p.partition) "
        "ORDER BY p.topic, p.partition ON CONFLICT DO NOTHING",
};

bool db_progress_register(struct db *db, const struct db_progress_self *self, const struct db_progress_place *places,
                          const int64_t *next_offsets, size_t count, const char *cluster_id, struct err *err)
{
    assert(count > 0);
    DB_PARAMS(params);
    add_self(&params, self);
    add_owner(&params, self);
    db_params_text(&params, cluster_id);
    add_places(&params, places, count);
    add_numbers(&params, next_offsets, count);
    return db_exec(db, &REGISTER, &params, NULL, err);
}

/* Where a row's columns begin in a result, in the order of read_row(). */
#define ROW_COLUMNS                                                                                                    \
    DB_INT8 /* seq */, DB_UUID /* attempt */, DB_UUID /* incarnation */, DB_TEXT /* kind */,                           \
        DB_INT8 /* next_offset */, DB_INT8 /* last_offset */, DB_BYTEA /* last_hash */, DB_TEXT /* cluster_id */

static struct uuid uuid_of(const unsigned char *bytes)
{
    struct uuid uuid;
    memcpy(uuid.bytes, bytes, sizeof uuid.bytes);
    return uuid;
}

static void read_row(const PGresult *result, int row, int column, struct db_progress_row *ret_row)
{
    *ret_row = (struct db_progress_row){
        .seq = db_get_int8(result, row, column),
        .attempt = uuid_of(db_get_uuid(result, row, column + 1)),
        .incarnation = uuid_of(db_get_uuid(result, row, column + 2)),
        .kind = kind_of(db_get_text(result, row, column + 3)),
        .next_offset = db_get_int8(result, row, column + 4),
        .last_offset = DB_PROGRESS_OFFSET_NONE,
    };
    struct bytes hash = db_get_bytes(result, row, column + 6);
    if (!db_is_null(result, row, column + 5) && hash.size == DB_PROGRESS_HASH_SIZE) {
        ret_row->last_offset = db_get_int8(result, row, column + 5);
        memcpy(ret_row->last_hash, hash.data, DB_PROGRESS_HASH_SIZE);
    }
    const char *cluster_id = db_get_text(result, row, column + 7);
    strncpy(ret_row->cluster_id, cluster_id, sizeof ret_row->cluster_id - 1);
}

/* ord is the place's index in the arrays, from 1. */
static const struct db_statement TAKE = {
    .sql =
        "WITH places AS MATERIALIZED (SELECT * FROM unnest($5::text[], $6::int4[]) "
        "WITH ORDINALITY AS p (topic, partition, ord)), "
        "taken AS (INSERT INTO onceward.consumer_progress (consumer, scope, topic, partition, seq, owner, incarnation, "
        "attempt, kind, next_offset, last_offset, last_hash, cluster_id) "
        "SELECT $1, $2, p.topic, p.partition, last.seq + 1, $3, $4, gen_random_uuid(), 'taken', last.next_offset, "
        "last.last_offset, last.last_hash, last.cluster_id FROM places p CROSS JOIN LATERAL ("
        "SELECT * FROM onceward.consumer_progress c WHERE c.consumer = $1 AND c.scope = $2 AND c.topic = p.topic "
        "AND c.partition = p.partition ORDER BY c.seq DESC LIMIT 1) last "
        "ORDER BY p.topic, p.partition ON CONFLICT DO NOTHING "
        "RETURNING topic, partition, seq, attempt, incarnation, kind, next_offset, last_offset, last_hash, cluster_id) "
        "SELECT p.ord, t.seq, t.attempt, t.incarnation, t.kind, t.next_offset, t.last_offset, t.last_hash, "
        "t.cluster_id FROM taken t JOIN places p USING (topic, partition)",
    .columns = {DB_INT8, ROW_COLUMNS},
};

bool db_progress_take(struct db *db, const struct db_progress_self *self, const struct db_progress_place *places,
                      size_t count, struct db_progress_row *ret_rows, bool *ret_is_taken, struct err *err)
{
    assert(count > 0);
    DB_PARAMS(params);
    add_self(&params, self);
    add_owner(&params, self);
    add_places(&params, places, count);
    DB_RESULT(result);
    if (!db_exec(db, &TAKE, &params, &result, err)) {
        return false;
    }
    memset(ret_is_taken, 0, count * sizeof *ret_is_taken);
    for (int row = 0; row < db_result_rows(result); row++) {
        size_t index = (size_t)db_get_int8(result, row, 0) - 1;
        assert(index < count);
        read_row(result, row, 1, &ret_rows[index]);
        ret_is_taken[index] = true;
    }
    return true;
}

/* The look-up by seq >= mine is an index probe at the log's end, whatever its length. */
static const struct db_statement MOVE = {
    .sql =
        "WITH moves AS MATERIALIZED (SELECT * FROM unnest($5::text[], $6::int4[], $7::int8[], $8::uuid[], $9::uuid[], "
        "$10::int8[], $11::int8[], $12::bytea[], $13::int4[]) WITH ORDINALITY AS m (topic, partition, seq, attempt, "
        "next_attempt, next_offset, last_offset, last_hash, records, ord)), "
        "moved AS (INSERT INTO onceward.consumer_progress (consumer, scope, topic, partition, seq, owner, incarnation, "
        "attempt, kind, next_offset, last_offset, last_hash, records, cluster_id) "
        "SELECT $1, $2, m.topic, m.partition, last.seq + 1, $3, $4, m.next_attempt, 'moved', m.next_offset, "
        "m.last_offset, m.last_hash, m.records, last.cluster_id FROM moves m CROSS JOIN LATERAL ("
        "SELECT c.seq, c.attempt, c.cluster_id FROM onceward.consumer_progress c WHERE c.consumer = $1 "
        "AND c.scope = $2 AND c.topic = m.topic AND c.partition = m.partition AND c.seq >= m.seq "
        "ORDER BY c.seq DESC LIMIT 1) last WHERE last.seq = m.seq AND last.attempt = m.attempt "
        "ORDER BY m.ord ON CONFLICT DO NOTHING RETURNING topic, partition) "
        "SELECT m.ord FROM moved JOIN moves m USING (topic, partition)",
    .columns = {DB_INT8},
};

static void add_moves(struct db_params *params, const struct db_progress_move *moves, size_t count)
{
#define ADD_ARRAY(type, statement)                                                                                     \
    do {                                                                                                               \
        db_params_array_open(params, type);                                                                            \
        for (size_t i = 0; i < count; i++) {                                                                           \
            statement;                                                                                                 \
        }                                                                                                              \
        db_params_array_close(params);                                                                                 \
    } while (0)
    ADD_ARRAY(DB_TEXT, db_params_text(params, moves[i].place.topic));
    ADD_ARRAY(DB_INT4, db_params_int4(params, moves[i].place.partition));
    ADD_ARRAY(DB_INT8, db_params_int8(params, moves[i].seq));
    ADD_ARRAY(DB_UUID, db_params_uuid(params, moves[i].attempt.bytes));
    ADD_ARRAY(DB_UUID, db_params_uuid(params, moves[i].next_attempt.bytes));
    ADD_ARRAY(DB_INT8, db_params_int8(params, moves[i].next_offset));
    ADD_ARRAY(DB_INT8, db_params_int8(params, moves[i].last_offset));
    ADD_ARRAY(DB_BYTEA, db_params_bytea(params, ((struct bytes){moves[i].last_hash, DB_PROGRESS_HASH_SIZE})));
    ADD_ARRAY(DB_INT4, db_params_int4(params, moves[i].record_count));
#undef ADD_ARRAY
}

static struct db_call move_call(const struct db_progress_self *self, const struct db_progress_moves *moves,
                                struct db_params *params)
{
    assert(moves->count > 0);
    add_self(params, self);
    add_owner(params, self);
    add_moves(params, moves->moves, moves->count);
    return (struct db_call){.statement = &MOVE, .params = params};
}

/* True if all of them moved. */
static bool read_moved(const struct db_progress_moves *moves, const PGresult *result)
{
    memset(moves->ret_has_moved, 0, moves->count * sizeof *moves->ret_has_moved);
    for (int row = 0; row < db_result_rows(result); row++) {
        size_t index = (size_t)db_get_int8(result, row, 0) - 1;
        assert(index < moves->count);
        moves->ret_has_moved[index] = true;
    }
    return (size_t)db_result_rows(result) == moves->count;
}

bool db_progress_move(struct db *db, const struct db_progress_self *self, const struct db_progress_move *moves,
                      size_t count, bool *ret_has_moved, struct db_tx **ret_tx, struct err *err)
{
    const struct db_progress_moves all = {moves, count, ret_has_moved};
    DB_PARAMS(params);
    struct db_call call = move_call(self, &all, &params);
    if (!db_exec_begin(db, &call, 1, ret_tx, err)) {
        return false;
    }
    (void)read_moved(&all, call.result);
    db_calls_clear(&call, 1);
    return true;
}

bool db_progress_move_and_claim(struct db *db, const struct db_progress_self *self,
                                const struct db_progress_moves *moves, const struct db_inbox_claim *claim,
                                struct db_tx **ret_tx, struct err *err)
{
    DB_PARAMS(moved);
    DB_PARAMS(claimed);
    struct db_call calls[] = {move_call(self, moves, &moved), db_inbox_claim_call(claim, &claimed)};
    if (!db_exec_begin(db, calls, 2, ret_tx, err)) {
        return false;
    }
    if (read_moved(moves, calls[0].result)) {
        db_inbox_claim_read(claim, calls[1].result);
    } else {
        db_tx_rollback(ret_tx);
    }
    db_calls_clear(calls, 2);
    return true;
}

static const struct db_statement LOOK = {
    .sql =
        "SELECT p.ord, EXISTS (SELECT FROM onceward.consumer_progress c WHERE c.consumer = $1 AND c.scope = $2 "
        "AND c.topic = p.topic AND c.partition = p.partition AND c.seq > p.seq AND c.incarnation <> $3 "
        "AND c.kind <> 'rewound'), "
        "last.seq, last.attempt, last.incarnation, last.kind, last.next_offset, last.last_offset, last.last_hash, "
        "last.cluster_id FROM unnest($4::text[], $5::int4[], $6::int8[]) WITH ORDINALITY AS p (topic, partition, seq, "
        "ord) CROSS JOIN LATERAL (SELECT * FROM onceward.consumer_progress c WHERE c.consumer = $1 AND c.scope = $2 "
        "AND c.topic = p.topic AND c.partition = p.partition ORDER BY c.seq DESC LIMIT 1) last",
    .columns = {DB_INT8, DB_BOOL, ROW_COLUMNS},
};

bool db_progress_look(struct db *db, const struct db_progress_self *self, const struct db_progress_place *places,
                      const int64_t *seqs, size_t count, struct db_progress_look *ret_looks, struct err *err)
{
    assert(count > 0);
    DB_PARAMS(params);
    add_self(&params, self);
    db_params_uuid(&params, self->incarnation.bytes);
    add_places(&params, places, count);
    add_numbers(&params, seqs, count);
    DB_RESULT(result);
    if (!db_exec(db, &LOOK, &params, &result, err)) {
        return false;
    }
    memset(ret_looks, 0, count * sizeof *ret_looks);
    for (int row = 0; row < db_result_rows(result); row++) {
        size_t index = (size_t)db_get_int8(result, row, 0) - 1;
        assert(index < count);
        ret_looks[index].has_last = true;
        ret_looks[index].has_stranger_after = db_get_bool(result, row, 1);
        read_row(result, row, 2, &ret_looks[index].last);
    }
    return true;
}

static const struct db_statement STOP = {
    .sql = "INSERT INTO onceward.consumer_stops (consumer, scope, topic, partition, seq, attempt, code, reason) "
           "VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
};

static void add_row(struct db_params *params, const struct db_progress_self *self, struct db_progress_place place,
                    int64_t seq)
{
    add_self(params, self);
    db_params_text(params, place.topic);
    db_params_int4(params, place.partition);
    db_params_int8(params, seq);
}

bool db_progress_stop(struct db *db, const struct db_progress_self *self, struct db_progress_place place, int64_t seq,
                      const struct uuid *attempt, const struct err *why, struct err *err)
{
    assert(why->code[0] != '\0');
    DB_PARAMS(params);
    add_row(&params, self, place, seq);
    db_params_uuid(&params, attempt->bytes);
    db_params_text(&params, why->code);
    db_params_text(&params, why->text);
    return db_exec(db, &STOP, &params, NULL, err);
}

static const struct db_statement PRUNE = {
    .sql =
        "WITH stops AS (DELETE FROM onceward.consumer_stops WHERE consumer = $1 AND scope = $2 AND topic = $3 "
        "AND partition = $4 AND seq < $5 AND created_at < clock_timestamp() - interval '1 hour') "
        "DELETE FROM onceward.consumer_progress WHERE consumer = $1 AND scope = $2 AND topic = $3 AND partition = $4 "
        "AND seq < $5 AND created_at < clock_timestamp() - interval '1 hour' "
        "AND seq < (SELECT min(seq) + 5000 FROM onceward.consumer_progress WHERE consumer = $1 AND scope = $2 "
        "AND topic = $3 AND partition = $4)",
};

bool db_progress_prune(struct db *db, const struct db_progress_self *self, struct db_progress_place place, int64_t seq,
                       struct err *err)
{
    DB_PARAMS(params);
    add_row(&params, self, place, seq);
    return db_exec(db, &PRUNE, &params, NULL, err);
}
