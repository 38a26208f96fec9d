/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading requests: one with its documents, or a page of them, newest first.
 */
#ifndef DB_DB_REQUEST_H
#define DB_DB_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"
#include "db/db_submit.h"
#include "domain/event.h"

struct db;

struct db_request_row {
    struct uuid request_id;
    const char *type;
    struct bytes data; /* NULL: absent, and always so in a page. */
    int64_t created_us;
    bool is_submitted;
    struct uuid event_id;
    int64_t submitted_us;
    int64_t erased_us;                       /* 0: it has its data. */
    const struct db_document_row *documents; /* Not in a page. */
    size_t document_count;
};

/* Rows and what they borrow from. */
struct db_request_page;

size_t db_request_page_count(const struct db_request_page *page);
const struct db_request_row *db_request_page_row(const struct db_request_page *page, size_t index);
void db_request_page_free(struct db_request_page **pagep);

enum db_request_status { DB_REQUEST_ANY, DB_REQUEST_OPEN, DB_REQUEST_SUBMITTED };

/* Where a page begins: after this row. The greatest of both members for the first page. */
struct db_request_cursor {
    int64_t created_us;
    struct uuid request_id;
};

/* A page of one row, or of none. */
bool db_request_get(struct db *db, const char *tenant, const struct uuid *request_id, struct db_request_page **ret_page,
                    struct err *err) MUST_CHECK;

/* cursor NULL: from the newest on. */
bool db_request_list(struct db *db, const char *tenant, enum db_request_status status,
                     const struct db_request_cursor *cursor, int limit, struct db_request_page **ret_page,
                     struct err *err) MUST_CHECK;

#endif
