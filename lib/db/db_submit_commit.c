/* SPDX-License-Identifier: Apache-2.0
 *
 * The second half of the submit transaction: what was decided is written and
 * committed with one flush. Protects: an outbox row is written if and only if
 * its submission is, and the primary key lets one in.
 */
#include <assert.h>
#include <string.h>

#include "db_submit_private.h"

static const struct db_statement INSERT_REQUESTS = {
    .sql = "INSERT INTO onceward.requests (tenant, request_id, type, data, fingerprint, created_at) "
           "SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::bytea[], $5::bytea[], $6::timestamptz[])",
};

static const struct db_statement INSERT_DOCUMENTS = {
    .sql = "INSERT INTO onceward.documents (tenant, request_id, document_id, position, name, media_type, size, sha256, "
           "content, created_at) "
           "SELECT i.*, clock_timestamp() FROM unnest($1::text[], $2::uuid[], $3::text[], $4::int4[], $5::text[], "
           "$6::text[], $7::int4[], $8::bytea[], $9::bytea[]) AS i",
};

/* The guarantee: the outbox row is there if and only if its submission is, and the primary key lets one in. */
static const struct db_statement INSERT_EVENTS = {
    .sql =
        "WITH item AS (SELECT * FROM unnest($1::text[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::text[], "
        "$6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::bytea[], $12::int4[]) AS "
        "i(tenant, request_id, event_id, submitted_at, topic, type, source, dataschema, traceparent, key, value, n)), "
        "queued AS (INSERT INTO onceward.submissions (tenant, request_id, event_id, submitted_at) "
        "SELECT tenant, request_id, event_id, submitted_at FROM item ORDER BY n ON CONFLICT DO NOTHING "
        "RETURNING tenant, request_id, event_id) "
        "INSERT INTO onceward.outbox (tenant, event_id, topic, key, type, source, subject, time, content_type, "
        "dataschema, traceparent, value) "
        "SELECT i.tenant, i.event_id, i.topic, i.key, i.type, i.source, i.key, i.submitted_at, 'application/json', "
        "i.dataschema, i.traceparent, i.value FROM item i JOIN queued q USING (event_id) ORDER BY i.n "
        "RETURNING event_id",
    .columns = {DB_UUID},
};

/* The guarantee: an answer is kept if and only if its effect is. It must be true: an event that it speaks of is the one
 * of the request's submission. And it must be kept: a key that stands there and is valid was written by somebody
 * without the key's lock, since we hold it. In both cases the division fails and takes everything back. */
static const struct db_statement INSERT_ANSWERS = {
    .sql = "WITH kept AS (INSERT INTO onceward.idempotency_keys AS k (tenant, key, fingerprint, components, status, "
           "headers, body, resource, event_id, created_at, expires_at) "
           "SELECT i.tenant, i.key, i.fingerprint, i.components, i.status, i.headers, i.body, i.resource, i.event_id, "
           "i.created_at, i.expires_at FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::int2[], "
           "$6::text[], $7::bytea[], $8::text[], $9::uuid[], $10::uuid[], $11::timestamptz[], $12::timestamptz[]) AS "
           "i(tenant, key, fingerprint, components, status, headers, body, resource, request_id, event_id, created_at, "
           "expires_at) "
           "WHERE i.event_id IS NULL OR EXISTS (SELECT FROM onceward.submissions s WHERE s.tenant = i.tenant "
           "AND s.request_id = i.request_id AND s.event_id = i.event_id OFFSET 0) "
           "ON CONFLICT (tenant, key) DO UPDATE SET fingerprint = excluded.fingerprint, "
           "components = excluded.components, status = excluded.status, headers = excluded.headers, "
           "body = excluded.body, resource = excluded.resource, event_id = excluded.event_id, "
           "created_at = excluded.created_at, expires_at = excluded.expires_at "
           "WHERE k.expires_at <= clock_timestamp() RETURNING 1) "
           "SELECT 1 / (count(*) = $13)::int4 FROM kept",
    .columns = {DB_INT4},
};

typedef void add_element(struct db_params *params, const struct db_submit *submit, const struct db_submit_write *write);

static void add_tenant(struct db_params *params, const struct db_submit *submit, const struct db_submit_write *write)
{
    db_params_text(params, submit->keys[write->index].tenant);
}

static void add_request_id(struct db_params *params, const struct db_submit *submit,
                           const struct db_submit_write *write)
{
    db_params_uuid(params, submit->keys[write->index].request_id.bytes);
}

static void add_type(struct db_params *params, const struct db_submit *submit, const struct db_submit_write *write)
{
    db_params_text(params, submit->keys[write->index].create_type);
}

static void add_data(struct db_params *params, const struct db_submit *submit, const struct db_submit_write *write)
{
    (void)submit;
    db_params_bytea(params, write->data);
}

static void add_fingerprint(struct db_params *params, const struct db_submit *submit,
                            const struct db_submit_write *write)
{
    (void)submit;
    db_params_bytea(params, (struct bytes){write->fingerprint, DB_SHA256_SIZE});
}

static void add_created(struct db_params *params, const struct db_submit *submit, const struct db_submit_write *write)
{
    (void)submit;
    db_params_timestamptz(params, write->created_us);
}

static void add_event_id(struct db_params *params, const struct db_submit *submit, const struct db_submit_write *write)
{
    (void)submit;
    db_params_uuid(params, write->event_id.bytes);
}

static void add_submitted(struct db_params *params, const struct db_submit *submit, const struct db_submit_write *write)
{
    (void)submit;
    db_params_timestamptz(params, write->submitted_us);
}

#define ADD_EVENT_TEXT(member)                                                                                         \
    static void add_event_##member(struct db_params *params, const struct db_submit *submit,                           \
                                   const struct db_submit_write *write)                                                \
    {                                                                                                                  \
        (void)submit;                                                                                                  \
        db_params_text(params, write->event->member);                                                                  \
    }
ADD_EVENT_TEXT(topic)
ADD_EVENT_TEXT(type)
ADD_EVENT_TEXT(source)
ADD_EVENT_TEXT(dataschema)
ADD_EVENT_TEXT(traceparent)
ADD_EVENT_TEXT(key)

static void add_value(struct db_params *params, const struct db_submit *submit, const struct db_submit_write *write)
{
    (void)submit;
    db_params_bytea(params, write->event->value);
}

static void add_number(struct db_params *params, const struct db_submit *submit, const struct db_submit_write *write)
{
    (void)submit;
    db_params_int4(params, (int32_t)write->index);
}

/* A parameter that is an array with one element per write. */
#define ADD_ANSWER(member, adder, value)                                                                               \
    static void add_answer_##member(struct db_params *params, const struct db_submit *submit,                          \
                                    const struct db_submit_write *write)                                               \
    {                                                                                                                  \
        (void)submit;                                                                                                  \
        adder(params, value);                                                                                          \
    }
ADD_ANSWER(fingerprint, db_params_bytea, ((struct bytes){write->answer->fingerprint, DB_SHA256_SIZE}))
ADD_ANSWER(components, db_params_text, write->answer->components)
ADD_ANSWER(status, db_params_int2, (int16_t)write->answer->status)
ADD_ANSWER(headers, db_params_text, write->answer->headers)
ADD_ANSWER(body, db_params_bytea, write->answer->body)
ADD_ANSWER(resource, db_params_text, write->answer->resource)
ADD_ANSWER(event_id, db_params_uuid, write->answer->event_id == NULL ? NULL : write->answer->event_id->bytes)
ADD_ANSWER(created, db_params_timestamptz, write->answer->created_us)
ADD_ANSWER(expires, db_params_timestamptz, write->answer->expires_us)

static void add_idempotency_key(struct db_params *params, const struct db_submit *submit,
                                const struct db_submit_write *write)
{
    db_params_text(params, submit->keys[write->index].idempotency_key);
}

struct column {
    enum db_type type;
    add_element *add;
};

static const struct column request_columns[] = {
    {DB_TEXT, add_tenant}, {DB_UUID, add_request_id},   {DB_TEXT, add_type},
    {DB_BYTEA, add_data},  {DB_BYTEA, add_fingerprint}, {DB_TIMESTAMPTZ, add_created},
};

static const struct column event_columns[] = {
    {DB_TEXT, add_tenant},           {DB_UUID, add_request_id},       {DB_UUID, add_event_id},
    {DB_TIMESTAMPTZ, add_submitted}, {DB_TEXT, add_event_topic},      {DB_TEXT, add_event_type},
    {DB_TEXT, add_event_source},     {DB_TEXT, add_event_dataschema}, {DB_TEXT, add_event_traceparent},
    {DB_TEXT, add_event_key},        {DB_BYTEA, add_value},           {DB_INT4, add_number},
};

static const struct column answer_columns[] = {
    {DB_TEXT, add_tenant},
    {DB_TEXT, add_idempotency_key},
    {DB_BYTEA, add_answer_fingerprint},
    {DB_TEXT, add_answer_components},
    {DB_INT2, add_answer_status},
    {DB_TEXT, add_answer_headers},
    {DB_BYTEA, add_answer_body},
    {DB_TEXT, add_answer_resource},
    {DB_UUID, add_request_id},
    {DB_UUID, add_answer_event_id},
    {DB_TIMESTAMPTZ, add_answer_created},
    {DB_TIMESTAMPTZ, add_answer_expires},
};

static bool creates(const struct db_submit_write *write)
{
    return write->creates;
}

static bool queues(const struct db_submit_write *write)
{
    return write->event != NULL;
}

static bool keeps_answer(const struct db_submit_write *write)
{
    return write->answer != NULL;
}

struct writes {
    const struct db_submit *submit;
    const struct db_submit_write *items;
    size_t count;
};

static size_t add_columns(struct db_params *params, const struct writes *writes,
                          bool (*is_meant)(const struct db_submit_write *write), const struct column *columns,
                          size_t column_count)
{
    size_t count = 0;
    for (size_t c = 0; c < column_count; c++) {
        count = 0;
        db_params_array_open(params, columns[c].type);
        for (size_t i = 0; i < writes->count; i++) {
            if (is_meant(&writes->items[i])) {
                columns[c].add(params, writes->submit, &writes->items[i]);
                count++;
            }
        }
        db_params_array_close(params);
    }
    return count;
}

/* A document's member for the column with this number. */
static void add_document_member(struct db_params *params, const struct writes *writes, size_t column, size_t write,
                                size_t document)
{
    const struct db_submit_key *key = &writes->submit->keys[writes->items[write].index];
    const struct db_submit_document *item = &writes->items[write].documents[document];
    size_t before = writes->submit->found[writes->items[write].index].document_count;
    switch (column) {
    case 0: db_params_text(params, key->tenant); break;
    case 1: db_params_uuid(params, key->request_id.bytes); break;
    case 2: db_params_text(params, item->row.document_id); break;
    case 3: db_params_int4(params, (int32_t)(before + document + 1)); break;
    case 4: db_params_text(params, item->row.name); break;
    case 5: db_params_text(params, item->row.media_type); break;
    case 6: db_params_int4(params, (int32_t)item->row.size); break;
    case 7: db_params_bytea(params, (struct bytes){item->row.sha256, DB_SHA256_SIZE}); break;
    case 8: db_params_bytea(params, item->content); break;
    default: assert(!"no such column"); break;
    }
}

static size_t add_documents(struct db_params *params, const struct writes *writes)
{
    static const enum db_type types[] = {DB_TEXT, DB_UUID, DB_TEXT,  DB_INT4, DB_TEXT,
                                         DB_TEXT, DB_INT4, DB_BYTEA, DB_BYTEA};
    size_t count = 0;
    for (size_t c = 0; c < sizeof types / sizeof *types; c++) {
        count = 0;
        db_params_array_open(params, types[c]);
        for (size_t i = 0; i < writes->count; i++) {
            for (size_t d = 0; d < writes->items[i].document_count; d++, count++) {
                add_document_member(params, writes, c, i, d);
            }
        }
        db_params_array_close(params);
    }
    return count;
}

/* Which writes' events came back. Both are few, and the usual case finds each at its first look. */
static void mark_queued(const PGresult *result, const struct db_submit_write *writes, size_t count,
                        bool *ret_was_queued)
{
    size_t next = 0;
    for (int row = 0; row < db_result_rows(result); row++) {
        const unsigned char *event_id = db_get_uuid(result, row, 0);
        for (size_t tried = 0; tried < count; tried++, next++) {
            const struct db_submit_write *write = &writes[next % count];
            if (write->event != NULL && memcmp(write->event_id.bytes, event_id, UUID_SIZE) == 0) {
                ret_was_queued[next % count] = true;
                break;
            }
        }
    }
}

#define COLUMNS(table) table, sizeof table / sizeof *table

/* The answers that are to be kept, with their number last. False when there are none. */
static bool add_answers(struct db_params *params, const struct writes *writes)
{
    size_t count = add_columns(params, writes, keeps_answer, COLUMNS(answer_columns));
    db_params_int8(params, (int64_t)count);
    return count > 0;
}

/* Only INSERT_ANSWERS divides. */
static void explain(struct err *err)
{
    if (strcmp(err->code, "22012") == 0) {
        err_clear(err);
        (void)err_set(err, ERR_TRANSIENT, "idempotency_raced",
                      "an idempotency key or a submission was written by "
                      "somebody without its lock");
    }
}

enum db_tx_outcome db_submit_commit(struct db_submit **submitp, const struct db_submit_write *writes, size_t count,
                                    bool *ret_was_queued, struct err *err)
{
    struct db_submit *submit = *submitp;
    assert(submit != NULL && count > 0 && count <= submit->count);
    const struct writes all = {submit, writes, count};
    DB_PARAMS(requests);
    DB_PARAMS(documents);
    DB_PARAMS(events);
    DB_PARAMS(answers);
    struct db_call calls[4];
    size_t call_count = 0;
    if (add_columns(&requests, &all, creates, COLUMNS(request_columns)) > 0) {
        calls[call_count++] = (struct db_call){.statement = &INSERT_REQUESTS, .params = &requests};
    }
    if (add_documents(&documents, &all) > 0) {
        calls[call_count++] = (struct db_call){.statement = &INSERT_DOCUMENTS, .params = &documents};
    }
    size_t events_at = call_count;
    bool has_events = add_columns(&events, &all, queues, COLUMNS(event_columns)) > 0;
    if (has_events) {
        calls[call_count++] = (struct db_call){.statement = &INSERT_EVENTS, .params = &events};
    }
    if (add_answers(&answers, &all)) {
        calls[call_count++] = (struct db_call){.statement = &INSERT_ANSWERS, .params = &answers};
    }
    memset(ret_was_queued, 0, count * sizeof *ret_was_queued);
    enum db_tx_outcome outcome = db_exec_commit(&submit->tx, calls, call_count, err);
    if (outcome == DB_TX_COMMITTED) {
        if (has_events) {
            mark_queued(calls[events_at].result, writes, count, ret_was_queued);
        }
        db_calls_clear(calls, call_count);
    } else if (outcome == DB_TX_FAILED) {
        explain(err);
    }
    db_submit_free(submit);
    *submitp = NULL;
    return outcome;
}
