/* SPDX-License-Identifier: Apache-2.0
 *
 * The submit transaction. Protects: the request is locked first and its
 * documents are read by a later statement (a sub-select of the same one would
 * keep the snapshot of before the lock and miss a document); an outbox row is
 * written only with its submission, whose primary key is the dedup.
 * What is written stands in db_submit_commit.c.
 *
 * Look-ups are LATERAL sub-selects that cannot be pulled up, so each is one
 * index probe per request whatever the statistics say.
 */
#include "db/db_submit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "db_submit_private.h"

/* ---- begin: lock and read -------------------------------------------------------------------------------------- */

/* What may be created here: one of all rivals gets it. Whoever got it after a rival's commit sees the rival's row in
 * the next statement, because the lock is let go only after the commit can be seen. */
static const struct db_statement CLAIM = {
    .sql = "SELECT i.n FROM unnest($1::text[], $2::uuid[], $3::int4[]) AS i(tenant, id, n) "
           "WHERE pg_try_advisory_xact_lock(hashtextextended(i.tenant || ' ' || i.id::text, 1))",
    .columns = {DB_INT4},
};

/* What exists and is free. */
static const struct db_statement LOCK = {
    .sql =
        "SELECT i.n, r.type, r.data, r.fingerprint, r.created_at, t.topic, t.dataschema, t.event_bytes_max::int8, "
        "r.erased_at "
        "FROM unnest($1::text[], $2::uuid[], $3::int4[]) AS i(tenant, id, n) "
        "CROSS JOIN LATERAL (SELECT r.type, r.data, r.fingerprint, r.created_at, r.erased_at FROM onceward.requests r "
        "WHERE r.tenant = i.tenant AND r.request_id = i.id FOR NO KEY UPDATE SKIP LOCKED) r "
        "LEFT JOIN LATERAL (SELECT o.topic, o.dataschema, p.event_bytes_max FROM onceward.routes o "
        "JOIN onceward.topics p ON p.topic = o.topic WHERE o.type = r.type OFFSET 0) t ON true",
    .columns = {DB_INT4, DB_TEXT, DB_BYTEA, DB_BYTEA, DB_TIMESTAMPTZ, DB_TEXT, DB_TEXT, DB_INT8, DB_TIMESTAMPTZ},
};

/* What exists at all, so that what was skipped is known to be busy; and whether it is submitted. */
static const struct db_statement LOOK = {
    .sql = "SELECT i.n, r.request_id IS NOT NULL, s.event_id, s.submitted_at "
           "FROM unnest($1::text[], $2::uuid[], $3::int4[]) AS i(tenant, id, n) "
           "LEFT JOIN LATERAL (SELECT r.request_id FROM onceward.requests r "
           "WHERE r.tenant = i.tenant AND r.request_id = i.id OFFSET 0) r ON true "
           "LEFT JOIN LATERAL (SELECT s.event_id, s.submitted_at FROM onceward.submissions s "
           "WHERE s.tenant = i.tenant AND s.request_id = i.id OFFSET 0) s ON true",
    .columns = {DB_INT4, DB_BOOL, DB_UUID, DB_TIMESTAMPTZ},
};

static const struct db_statement DOCUMENTS = {
    .sql = "SELECT i.n, d.document_id, d.name, d.media_type, d.size::int8, d.sha256 "
           "FROM unnest($1::text[], $2::uuid[], $3::int4[]) AS i(tenant, id, n) "
           "CROSS JOIN LATERAL (SELECT d.document_id, d.name, d.media_type, d.size, d.sha256, d.position "
           "FROM onceward.documents d WHERE d.tenant = i.tenant AND d.request_id = i.id OFFSET 0) d "
           "ORDER BY i.n, d.position",
    .columns = {DB_INT4, DB_TEXT, DB_TEXT, DB_TEXT, DB_INT8, DB_BYTEA},
};

static const struct db_statement ROUTES = {
    .sql = "SELECT i.n, t.topic, t.dataschema, t.event_bytes_max::int8 "
           "FROM unnest($1::text[], $2::int4[]) AS i(type, n) "
           "CROSS JOIN LATERAL (SELECT o.topic, o.dataschema, p.event_bytes_max FROM onceward.routes o "
           "JOIN onceward.topics p ON p.topic = o.topic WHERE o.type = i.type OFFSET 0) t",
    .columns = {DB_INT4, DB_TEXT, DB_TEXT, DB_INT8},
};

static const struct db_statement DEPLOYMENT = {
    .sql = "SELECT source, clock_timestamp() FROM onceward.deployment",
    .columns = {DB_TEXT, DB_TIMESTAMPTZ},
};

enum key_set { KEYS_KNOWN, KEYS_CLAIMED };

static bool is_in_set(const struct db_submit_key *key, enum key_set set)
{
    return !key->is_fresh && (set == KEYS_KNOWN || key->create_type != NULL);
}

/* $1 tenants, $2 ids, $3 their numbers. Returns how many. */
static size_t add_keys(struct db_params *params, const struct db_submit *submit, enum key_set set)
{
    size_t count = 0;
    db_params_array_open(params, DB_TEXT);
    for (size_t i = 0; i < submit->count; i++) {
        if (is_in_set(&submit->keys[i], set)) {
            db_params_text(params, submit->keys[i].tenant);
            count++;
        }
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_UUID);
    for (size_t i = 0; i < submit->count; i++) {
        if (is_in_set(&submit->keys[i], set)) {
            db_params_uuid(params, submit->keys[i].request_id.bytes);
        }
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_INT4);
    for (size_t i = 0; i < submit->count; i++) {
        if (is_in_set(&submit->keys[i], set)) {
            db_params_int4(params, (int32_t)i);
        }
    }
    db_params_array_close(params);
    return count;
}

static size_t add_types(struct db_params *params, const struct db_submit *submit)
{
    size_t count = 0;
    db_params_array_open(params, DB_TEXT);
    for (size_t i = 0; i < submit->count; i++) {
        if (submit->keys[i].create_type != NULL) {
            db_params_text(params, submit->keys[i].create_type);
            count++;
        }
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_INT4);
    for (size_t i = 0; i < submit->count; i++) {
        if (submit->keys[i].create_type != NULL) {
            db_params_int4(params, (int32_t)i);
        }
    }
    db_params_array_close(params);
    return count;
}

static void read_route(struct db_submit_found *found, const PGresult *result, int row, int column)
{
    found->topic = db_get_text_or_null(result, row, column);
    found->dataschema = db_get_text_or_null(result, row, column + 1);
    found->event_bytes_max = found->topic == NULL ? 0 : db_get_int8(result, row, column + 2);
}

static struct db_submit_found *found_of(struct db_submit *submit, const PGresult *result, int row)
{
    int32_t index = db_get_int4(result, row, 0);
    assert(index >= 0 && (size_t)index < submit->count);
    return &submit->found[index];
}

static void read_claimed(struct db_submit *submit, const PGresult *result)
{
    for (size_t i = 0; i < submit->count; i++) {
        submit->found[i].is_busy = is_in_set(&submit->keys[i], KEYS_CLAIMED);
    }
    for (int row = 0; row < db_result_rows(result); row++) {
        found_of(submit, result, row)->is_busy = false;
    }
}

static void read_locked(struct db_submit *submit, const PGresult *result)
{
    for (int row = 0; row < db_result_rows(result); row++) {
        struct db_submit_found *found = found_of(submit, result, row);
        found->exists = true;
        found->type = db_get_text(result, row, 1);
        found->data = db_get_bytes(result, row, 2);
        found->fingerprint = db_get_bytes(result, row, 3);
        found->created_us = db_get_timestamptz(result, row, 4);
        read_route(found, result, row, 5);
        found->erased_us = db_is_null(result, row, 8) ? 0 : db_get_timestamptz(result, row, 8);
    }
}

/* A row that exists by now and was not locked before is somebody else's at the moment. */
static void read_looked_at(struct db_submit *submit, const PGresult *result)
{
    for (int row = 0; row < db_result_rows(result); row++) {
        struct db_submit_found *found = found_of(submit, result, row);
        found->is_busy = found->is_busy || (db_get_bool(result, row, 1) && !found->exists);
        if (!db_is_null(result, row, 2)) {
            found->is_submitted = true;
            memcpy(found->event_id.bytes, db_get_uuid(result, row, 2), UUID_SIZE);
            found->submitted_us = db_get_timestamptz(result, row, 3);
        }
    }
}

static bool read_documents(struct db_submit *submit, const PGresult *result, struct err *err)
{
    int count = db_result_rows(result);
    submit->documents = calloc((size_t)count + 1, sizeof *submit->documents);
    if (submit->documents == NULL) {
        return err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for %d documents", count);
    }
    for (int row = 0; row < count; row++) {
        struct db_submit_found *found = found_of(submit, result, row);
        struct bytes hash = db_get_bytes(result, row, 5);
        assert(hash.size == DB_SHA256_SIZE);
        submit->documents[row] = (struct db_document_row){.document_id = db_get_text(result, row, 1),
                                                          .name = db_get_text(result, row, 2),
                                                          .media_type = db_get_text(result, row, 3),
                                                          .size = db_get_int8(result, row, 4),
                                                          .sha256 = hash.data};
        if (found->document_count++ == 0) {
            found->documents = &submit->documents[row];
        }
    }
    return true;
}

static void read_routes(struct db_submit *submit, const PGresult *result)
{
    for (int row = 0; row < db_result_rows(result); row++) {
        struct db_submit_found *found = found_of(submit, result, row);
        if (!found->exists) {
            read_route(found, result, row, 1);
        }
    }
}

/* The calls of the first flush; what nobody needs is left out. */
enum begin_call {
    CALL_KEY_CLAIM,
    CALL_KEY_LOOK,
    CALL_CLAIM,
    CALL_LOCK,
    CALL_LOOK,
    CALL_DOCUMENTS,
    CALL_ROUTES,
    CALL_DEPLOYMENT,
    CALL_COUNT
};

static bool read_results(struct db_submit *submit, struct err *err)
{
    if (submit->results[CALL_KEY_CLAIM] != NULL) {
        db_idempotency_read(submit, submit->results[CALL_KEY_CLAIM], submit->results[CALL_KEY_LOOK]);
    }
    if (submit->results[CALL_CLAIM] != NULL) {
        read_claimed(submit, submit->results[CALL_CLAIM]);
    }
    if (submit->results[CALL_LOCK] != NULL) {
        read_locked(submit, submit->results[CALL_LOCK]);
        read_looked_at(submit, submit->results[CALL_LOOK]);
        if (!read_documents(submit, submit->results[CALL_DOCUMENTS], err)) {
            return false;
        }
    }
    if (submit->results[CALL_ROUTES] != NULL) {
        read_routes(submit, submit->results[CALL_ROUTES]);
    }
    if (db_result_rows(submit->results[CALL_DEPLOYMENT]) != 1) {
        return err_set(err, ERR_FATAL, "unexpected_shape", "onceward.deployment does not have its one row");
    }
    submit->source = db_get_text(submit->results[CALL_DEPLOYMENT], 0, 0);
    submit->clock_us = db_get_timestamptz(submit->results[CALL_DEPLOYMENT], 0, 1);
    return true;
}

void db_submit_free(struct db_submit *submit)
{
    for (size_t i = 0; i < CALL_COUNT; i++) {
        db_result_clear(&submit->results[i]);
    }
    free(submit->documents);
    free(submit);
}

static bool run_begin(struct db *db, struct db_submit *submit, struct err *err)
{
    static const struct db_statement *const statements[CALL_COUNT] = {
        &db_idempotency_claim, &db_idempotency_look, &CLAIM, &LOCK, &LOOK, &DOCUMENTS, &ROUTES, &DEPLOYMENT};
    DB_PARAMS(key_claimed);
    DB_PARAMS(key_looked);
    DB_PARAMS(claimed);
    DB_PARAMS(known);
    DB_PARAMS(types);
    bool has_key = db_idempotency_add(&key_claimed, submit) > 0 && db_idempotency_add(&key_looked, submit) > 0;
    db_params_bool(&key_looked, submit->count == 1);
    bool has_claimed = add_keys(&claimed, submit, KEYS_CLAIMED) > 0;
    bool has_known = add_keys(&known, submit, KEYS_KNOWN) > 0;
    bool has_types = add_types(&types, submit) > 0;
    const struct db_params *const params[CALL_COUNT] = {&key_claimed, &key_looked, &claimed, &known,
                                                        &known,       &known,      &types,   NULL};
    const bool is_wanted[CALL_COUNT] = {has_key,   has_key,   has_claimed, has_known,
                                        has_known, has_known, has_types,   true};
    struct db_call calls[CALL_COUNT];
    size_t places[CALL_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < CALL_COUNT; i++) {
        if (is_wanted[i]) {
            places[count] = i;
            calls[count++] = (struct db_call){.statement = statements[i], .params = params[i]};
        }
    }
    if (!db_exec_begin(db, calls, count, &submit->tx, err)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        submit->results[places[i]] = calls[i].result;
    }
    return read_results(submit, err);
}

bool db_submit_begin(struct db *db, const struct db_submit_key *keys, size_t count, struct db_submit **ret_submit,
                     struct err *err)
{
    assert(count > 0 && count <= DB_SUBMIT_COUNT_MAX);
    struct db_submit *submit = calloc(1, sizeof *submit);
    if (submit == NULL) {
        return err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for a batch");
    }
    submit->keys = keys;
    submit->count = count;
    if (!run_begin(db, submit, err)) {
        db_submit_rollback(&submit);
        return false;
    }
    *ret_submit = submit;
    return true;
}

const struct db_submit_found *db_submit_found(const struct db_submit *submit, size_t index)
{
    assert(index < submit->count);
    return &submit->found[index];
}

const char *db_submit_source(const struct db_submit *submit)
{
    return submit->source;
}

int64_t db_submit_clock_us(const struct db_submit *submit)
{
    return submit->clock_us;
}

bool db_submit_read_clock(struct db *db, int64_t *ret_clock_us, struct err *err)
{
    static const struct db_statement CLOCK = {.sql = "SELECT clock_timestamp()", .columns = {DB_TIMESTAMPTZ}};
    DB_RESULT(result);
    if (!db_exec_row(db, &CLOCK, NULL, &result, err)) {
        return false;
    }
    *ret_clock_us = db_get_timestamptz(result, 0, 0);
    return true;
}

void db_submit_rollback(struct db_submit **submitp)
{
    struct db_submit *submit = *submitp;
    *submitp = NULL;
    if (submit != NULL) {
        db_tx_rollback(&submit->tx);
        db_submit_free(submit);
    }
}
