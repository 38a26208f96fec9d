/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a document's bytes.
 */
#ifndef DB_DB_DOCUMENT_H
#define DB_DB_DOCUMENT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/uuid.h"
#include "domain/event.h"

struct db;

/* Borrowed from itself until db_document_free(). */
struct db_document {
    const char *name;
    const char *media_type;
    struct bytes content; /* data is NULL: erased. */
    struct bytes sha256;
};

/* *ret_document is NULL when there is none. */
bool db_document_get(struct db *db, const char *tenant, const struct uuid *request_id, const char *document_id,
                     struct db_document **ret_document, struct err *err) MUST_CHECK;
void db_document_free(struct db_document **documentp);

#endif
