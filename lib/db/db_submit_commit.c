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

static bool creates(const struct db_submit_write *write)
{
    return write->creates;
}

static bool queues(const struct db_submit_write *write)
{
    return write->event != NULL;
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

enum db_tx_outcome db_submit_commit(struct db_submit **submitp, const struct db_submit_write *writes, size_t count,
                                    bool *ret_was_queued, struct err *err)
{
    struct db_submit *submit = *submitp;
    assert(submit != NULL && count > 0 && count <= submit->count);
    const struct writes all = {submit, writes, count};
    DB_PARAMS(requests);
    DB_PARAMS(documents);
    DB_PARAMS(events);
    struct db_call calls[3];
    size_t call_count = 0;
    if (add_columns(&requests, &all, creates, request_columns, sizeof request_columns / sizeof *request_columns) > 0) {
        calls[call_count++] = (struct db_call){.statement = &INSERT_REQUESTS, .params = &requests};
    }
    if (add_documents(&documents, &all) > 0) {
        calls[call_count++] = (struct db_call){.statement = &INSERT_DOCUMENTS, .params = &documents};
    }
    bool has_events =
        add_columns(&events, &all, queues, event_columns, sizeof event_columns / sizeof *event_columns) > 0;
    if (has_events) {
        calls[call_count++] = (struct db_call){.statement = &INSERT_EVENTS, .params = &events};
    }
    memset(ret_was_queued, 0, count * sizeof *ret_was_queued);
    enum db_tx_outcome outcome = db_exec_commit(&submit->tx, calls, call_count, err);
    if (outcome == DB_TX_COMMITTED) {
        if (has_events) {
            mark_queued(calls[call_count - 1].result, writes, count, ret_was_queued);
        }
        db_calls_clear(calls, call_count);
    }
    db_submit_free(submit);
    *submitp = NULL;
    return outcome;
}
