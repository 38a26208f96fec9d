/* SPDX-License-Identifier: Apache-2.0
 *
 * The request's row is locked first, as a submit locks it, and everything else
 * is read and changed by later statements: so a submit or a call with a key
 * that came before is seen with all that it left, and one that comes after sees
 * the erasure. The payload of an event is removed only once it is published.
 */
#include "db/db_erase.h"

#include <string.h>

#include "db_private.h"

#define ERASED_VALUE "convert_to('{\"erased\":true}', 'UTF8')"

static const struct db_statement LOCK = {
    .sql = "SELECT erased_at IS NOT NULL, coalesce(octet_length(data), 0)::int8 FROM onceward.requests "
           "WHERE tenant = $1 AND request_id = $2 FOR UPDATE",
    .columns = {DB_BOOL, DB_INT8},
};

/* Published is what every row of the event is. An event that a person discarded goes nowhere any more. */
static const struct db_statement SUBMISSION = {
    .sql = "SELECT s.event_id, NOT EXISTS (SELECT FROM onceward.events e WHERE e.event_id = s.event_id "
           "AND e.tenant = s.tenant AND e.status <> 'completed' AND e.deferred_state IS DISTINCT FROM 'discarded') "
           "FROM onceward.submissions s WHERE s.tenant = $1 AND s.request_id = $2",
    .columns = {DB_UUID, DB_BOOL},
};

static const struct db_statement ERASE_DATA = {
    .sql = "UPDATE onceward.requests SET data = NULL, erased_at = coalesce(erased_at, clock_timestamp()) "
           "WHERE tenant = $1 AND request_id = $2",
};

static const struct db_statement ERASE_DOCUMENTS = {
    .sql = "WITH old AS (SELECT document_id, octet_length(content) AS bytes FROM onceward.documents "
           "WHERE tenant = $1 AND request_id = $2 AND (content IS NOT NULL OR name <> '') FOR UPDATE), "
           "new AS (UPDATE onceward.documents SET content = NULL, name = '' WHERE tenant = $1 AND request_id = $2 "
           "AND document_id IN (SELECT document_id FROM old)) "
           "SELECT count(*), coalesce(sum(bytes), 0)::int8 FROM old",
    .columns = {DB_INT8, DB_INT8},
};

static const struct db_statement DELETE_DOCUMENTS = {
    .sql = "WITH old AS (DELETE FROM onceward.documents WHERE tenant = $1 AND request_id = $2 "
           "RETURNING octet_length(content) AS bytes) SELECT count(*), coalesce(sum(bytes), 0)::int8 FROM old",
    .columns = {DB_INT8, DB_INT8},
};

static const struct db_statement DELETE_REQUEST = {
    .sql = "DELETE FROM onceward.requests WHERE tenant = $1 AND request_id = $2",
};

/* A receipt (it has an event) shows no content and stays as it is. The others say which request they made, and no more;
 * the key itself stays used up. Written the same by a repetition, and counted only once. */
static const struct db_statement ERASE_ANSWERS = {
    .sql = "WITH new AS (UPDATE onceward.idempotency_keys k SET body = e.body FROM (SELECT "
           "convert_to('{\"id\":\"' || $2::uuid || '\",\"erased\":true}' || chr(10), 'UTF8') AS body) e "
           "WHERE k.tenant = $1 AND k.resource = '/requests/' || $2::uuid AND k.event_id IS NULL AND k.body <> e.body "
           "RETURNING 1) SELECT count(*) FROM new",
    .columns = {DB_INT8},
};

#define ERASE_PAYLOAD(table)                                                                                           \
    "WITH new AS (UPDATE onceward." table " SET value = " ERASED_VALUE                                                 \
    " WHERE tenant = $1 AND event_id = $2 AND value <> " ERASED_VALUE " RETURNING 1) SELECT count(*) FROM new"

static const struct db_statement ERASE_OUTBOX = {.sql = ERASE_PAYLOAD("outbox"), .columns = {DB_INT8}};
static const struct db_statement ERASE_DEFERRED = {.sql = ERASE_PAYLOAD("deferred"), .columns = {DB_INT8}};

static const struct db_statement LEFT = {
    .sql = "SELECT (SELECT count(*) FROM onceward.dead_letters d WHERE d.event_id = $1::uuid::text), "
           "(SELECT count(*) FROM onceward.inbox_scopes s JOIN onceward.inbox i ON i.scope_id = s.scope_id "
           "AND i.event_id = $1::uuid AND i.status = 'completed')",
    .columns = {DB_INT8, DB_INT8},
};

static const struct db_statement AUDIT = {
    .sql = "INSERT INTO onceward.audit (action, object, detail) VALUES ('erase', $2::uuid::text, jsonb_build_object("
           "'tenant', $1::text, 'documents', $3::int8, 'answers', $4::int8, 'outbox', $5::int8, 'deferred', $6::int8, "
           "'by', $7::text, 'reason', $8::text))",
};

/* Runs a statement over the request that gives one row, of one or two numbers. */
static bool run_row(struct db *db, const struct db_statement *statement, const struct db_params *params,
                    int64_t *ret_first, int64_t *ret_second, struct err *err)
{
    DB_RESULT(result);
    if (!db_exec_row(db, statement, params, &result, err)) {
        return false;
    }
    *ret_first = db_get_int8(result, 0, 0);
    if (ret_second != NULL) {
        *ret_second = db_get_int8(result, 0, 1);
    }
    return true;
}

static bool lock_request(struct db *db, const struct db_params *request, struct db_erase *erase,
                         enum db_erase_outcome *ret_outcome, struct err *err)
{
    DB_RESULT(locked);
    DB_RESULT(submission);
    if (!db_exec(db, &LOCK, request, &locked, err)) {
        return false;
    }
    if (db_result_rows(locked) == 0) {
        *ret_outcome = DB_ERASE_UNKNOWN;
        return true;
    }
    erase->was_erased = db_get_bool(locked, 0, 0);
    erase->data_size = db_get_int8(locked, 0, 1);
    if (!db_exec(db, &SUBMISSION, request, &submission, err)) {
        return false;
    }
    erase->was_submitted = db_result_rows(submission) > 0;
    *ret_outcome = DB_ERASE_DONE;
    if (erase->was_submitted) {
        memcpy(erase->event_id.bytes, db_get_uuid(submission, 0, 0), UUID_SIZE);
        *ret_outcome = db_get_bool(submission, 0, 1) ? DB_ERASE_DONE : DB_ERASE_NOT_PUBLISHED;
    }
    return true;
}

static bool erase_event(struct db *db, const char *tenant, struct db_erase *erase, struct err *err)
{
    DB_PARAMS(event);
    DB_PARAMS(id_only);
    db_params_text(&event, tenant);
    db_params_uuid(&event, erase->event_id.bytes);
    db_params_uuid(&id_only, erase->event_id.bytes);
    return run_row(db, &ERASE_OUTBOX, &event, &erase->outbox_count, NULL, err) &&
           run_row(db, &ERASE_DEFERRED, &event, &erase->deferred_count, NULL, err) &&
           run_row(db, &LEFT, &id_only, &erase->dead_letter_count, &erase->applied_count, err);
}

static bool erase_all(struct db *db, const struct db_erase_order *order, const struct db_params *request,
                      struct db_erase *erase, struct err *err)
{
    const struct db_statement *documents = erase->was_submitted ? &ERASE_DOCUMENTS : &DELETE_DOCUMENTS;
    if (!run_row(db, documents, request, &erase->document_count, &erase->document_size, err) ||
        !db_exec(db, erase->was_submitted ? &ERASE_DATA : &DELETE_REQUEST, request, NULL, err) ||
        !run_row(db, &ERASE_ANSWERS, request, &erase->answer_count, NULL, err) ||
        (erase->was_submitted && !erase_event(db, order->tenant, erase, err))) {
        return false;
    }
    DB_PARAMS(audit);
    db_params_text(&audit, order->tenant);
    db_params_uuid(&audit, order->request_id->bytes);
    db_params_int8(&audit, erase->document_count);
    db_params_int8(&audit, erase->answer_count);
    db_params_int8(&audit, erase->outbox_count);
    db_params_int8(&audit, erase->deferred_count);
    db_params_text(&audit, order->audit.by);
    db_params_text(&audit, order->audit.reason);
    return db_exec(db, &AUDIT, &audit, NULL, err);
}

bool db_erase_request(struct db *db, const struct db_erase_order *order, struct db_erase *ret_erase,
                      enum db_erase_outcome *ret_outcome, struct err *err)
{
    DB_PARAMS(request);
    db_params_text(&request, order->tenant);
    db_params_uuid(&request, order->request_id->bytes);
    DB_TX_AUTO struct db_tx *tx = NULL;
    *ret_erase = (struct db_erase){.was_submitted = false};
    if (!db_tx_begin(db, &tx, err) || !lock_request(db, &request, ret_erase, ret_outcome, err)) {
        return false;
    }
    if (*ret_outcome != DB_ERASE_DONE) {
        return true;
    }
    return erase_all(db, order, &request, ret_erase, err) &&
           (order->is_dry_run || db_tx_commit(&tx, err) == DB_TX_COMMITTED);
}
