/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads requests. A request's status comes before its documents: once it is
 * submitted none is added, so what a later statement reads is final.
 */
#include "db/db_request.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "db_private.h"

/* Later than any request: the year 9999. */
#define NEWEST_US INT64_C(253402300799000000)

struct db_request_page {
    PGresult *requests;
    PGresult *documents; /* NULL in a list. */
    struct db_request_row *rows;
    struct db_document_row *document_rows;
    size_t count;
};

static const struct db_statement GET = {
    .sql = "SELECT r.request_id, r.type, r.created_at, s.event_id, s.submitted_at, 0::int8, r.erased_at, "
           "r.data "
           "FROM onceward.requests r LEFT JOIN onceward.submissions s "
           "ON s.tenant = r.tenant AND s.request_id = r.request_id WHERE r.tenant = $1 AND r.request_id = $2",
    .columns = {DB_UUID, DB_TEXT, DB_TIMESTAMPTZ, DB_UUID, DB_TIMESTAMPTZ, DB_INT8, DB_TIMESTAMPTZ, DB_BYTEA},
};

static const struct db_statement GET_DOCUMENTS = {
    .sql = "SELECT document_id, name, media_type, size::int8, sha256 FROM onceward.documents "
           "WHERE tenant = $1 AND request_id = $2 ORDER BY position",
    .columns = {DB_TEXT, DB_TEXT, DB_TEXT, DB_INT8, DB_BYTEA},
};

/* $3, $4: the cursor; $5: null, or whether they are to be submitted; $6: how many. */
static const struct db_statement LIST = {
    .sql = "SELECT r.request_id, r.type, r.created_at, s.event_id, s.submitted_at, "
           "(SELECT count(*) FROM onceward.documents d WHERE d.tenant = r.tenant AND d.request_id = r.request_id), "
           "r.erased_at "
           "FROM onceward.requests r LEFT JOIN LATERAL (SELECT s.event_id, s.submitted_at FROM onceward.submissions s "
           "WHERE s.tenant = r.tenant AND s.request_id = r.request_id OFFSET 0) s ON true "
           "WHERE r.tenant = $1 AND (r.created_at, r.request_id) < ($2, $3) "
           "AND ($4::bool IS NULL OR $4 = (s.event_id IS NOT NULL)) "
           "ORDER BY r.created_at DESC, r.request_id DESC LIMIT $5",
    .columns = {DB_UUID, DB_TEXT, DB_TIMESTAMPTZ, DB_UUID, DB_TIMESTAMPTZ, DB_INT8, DB_TIMESTAMPTZ},
};

static void read_row(const PGresult *result, int row, struct db_request_row *ret_row)
{
    memcpy(ret_row->request_id.bytes, db_get_uuid(result, row, 0), UUID_SIZE);
    ret_row->type = db_get_text(result, row, 1);
    ret_row->created_us = db_get_timestamptz(result, row, 2);
    ret_row->is_submitted = !db_is_null(result, row, 3);
    if (ret_row->is_submitted) {
        memcpy(ret_row->event_id.bytes, db_get_uuid(result, row, 3), UUID_SIZE);
        ret_row->submitted_us = db_get_timestamptz(result, row, 4);
    }
    ret_row->document_count = (size_t)db_get_int8(result, row, 5);
    ret_row->erased_us = db_is_null(result, row, 6) ? 0 : db_get_timestamptz(result, row, 6);
}

static bool no_memory(struct db_request_page **pagep, struct err *err)
{
    db_request_page_free(pagep);
    return err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for a page of requests");
}

/* Takes the result over. */
static bool page_new(PGresult *requests, struct db_request_page **ret_page, struct err *err)
{
    struct db_request_page *page = calloc(1, sizeof *page);
    if (page == NULL) {
        db_result_clear(&requests);
        return no_memory(&page, err);
    }
    page->requests = requests;
    page->count = (size_t)db_result_rows(requests);
    page->rows = calloc(page->count + 1, sizeof *page->rows);
    if (page->rows == NULL) {
        return no_memory(&page, err);
    }
    for (size_t i = 0; i < page->count; i++) {
        read_row(requests, (int)i, &page->rows[i]);
    }
    *ret_page = page;
    return true;
}

/* Takes the result over. */
static bool add_documents(struct db_request_page **pagep, PGresult *documents, struct err *err)
{
    struct db_request_page *page = *pagep;
    int count = db_result_rows(documents);
    page->documents = documents;
    page->document_rows = calloc((size_t)count + 1, sizeof *page->document_rows);
    if (page->document_rows == NULL) {
        return no_memory(pagep, err);
    }
    for (int row = 0; row < count; row++) {
        struct bytes hash = db_get_bytes(documents, row, 4);
        assert(hash.size == DB_SHA256_SIZE);
        page->document_rows[row] = (struct db_document_row){.document_id = db_get_text(documents, row, 0),
                                                            .name = db_get_text(documents, row, 1),
                                                            .media_type = db_get_text(documents, row, 2),
                                                            .size = db_get_int8(documents, row, 3),
                                                            .sha256 = hash.data};
    }
    page->rows[0].data = db_get_bytes(page->requests, 0, 7);
    page->rows[0].documents = page->document_rows;
    page->rows[0].document_count = (size_t)count;
    return true;
}

size_t db_request_page_count(const struct db_request_page *page)
{
    return page->count;
}

const struct db_request_row *db_request_page_row(const struct db_request_page *page, size_t index)
{
    assert(index < page->count);
    return &page->rows[index];
}

void db_request_page_free(struct db_request_page **pagep)
{
    struct db_request_page *page = *pagep;
    *pagep = NULL;
    if (page != NULL) {
        db_result_clear(&page->requests);
        db_result_clear(&page->documents);
        free(page->rows);
        free(page->document_rows);
        free(page);
    }
}

bool db_request_get(struct db *db, const char *tenant, const struct uuid *request_id, struct db_request_page **ret_page,
                    struct err *err)
{
    DB_PARAMS(params);
    db_params_text(&params, tenant);
    db_params_uuid(&params, request_id->bytes);
    struct db_call calls[2] = {{.statement = &GET, .params = &params},
                               {.statement = &GET_DOCUMENTS, .params = &params}};
    struct db_request_page *page = NULL;
    if (!db_exec_all(db, calls, 2, err)) {
        return false;
    }
    if (!page_new(calls[0].result, &page, err)) {
        db_result_clear(&calls[1].result);
        return false;
    }
    if (page->count == 0) {
        db_result_clear(&calls[1].result);
    } else if (!add_documents(&page, calls[1].result, err)) {
        return false;
    }
    *ret_page = page;
    return true;
}

bool db_request_list(struct db *db, const char *tenant, enum db_request_status status,
                     const struct db_request_cursor *cursor, int limit, struct db_request_page **ret_page,
                     struct err *err)
{
    struct db_request_cursor newest = {.created_us = NEWEST_US};
    memset(newest.request_id.bytes, 0xff, UUID_SIZE);
    cursor = cursor == NULL ? &newest : cursor;
    DB_PARAMS(params);
    db_params_text(&params, tenant);
    db_params_timestamptz(&params, cursor->created_us);
    db_params_uuid(&params, cursor->request_id.bytes);
    if (status == DB_REQUEST_ANY) {
        db_params_null(&params, DB_BOOL);
    } else {
        db_params_bool(&params, status == DB_REQUEST_SUBMITTED);
    }
    db_params_int8(&params, limit);
    PGresult *result = NULL;
    return db_exec(db, &LIST, &params, &result, err) && page_new(result, ret_page, err);
}
