/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a document as it was stored.
 */
#include "db/db_document.h"

#include <stddef.h>
#include <stdlib.h>

#include "db_private.h"

static const struct db_statement GET = {
    .sql = "SELECT name, media_type, content, sha256 FROM onceward.documents "
           "WHERE tenant = $1 AND request_id = $2 AND document_id = $3",
    .columns = {DB_TEXT, DB_TEXT, DB_BYTEA, DB_BYTEA},
};

/* The public part and what it borrows from. */
struct held_document {
    struct db_document document;
    PGresult *result;
};

bool db_document_get(struct db *db, const char *tenant, const struct uuid *request_id, const char *document_id,
                     struct db_document **ret_document, struct err *err)
{
    DB_PARAMS(params);
    db_params_text(&params, tenant);
    db_params_uuid(&params, request_id->bytes);
    db_params_text(&params, document_id);
    DB_RESULT(result);
    if (!db_exec(db, &GET, &params, &result, err)) {
        return false;
    }
    if (db_result_rows(result) == 0) {
        *ret_document = NULL;
        return true;
    }
    struct held_document *held = calloc(1, sizeof *held);
    if (held == NULL) {
        return err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for a document");
    }
    held->document = (struct db_document){.name = db_get_text(result, 0, 0),
                                          .media_type = db_get_text(result, 0, 1),
                                          .content = db_get_bytes(result, 0, 2),
                                          .sha256 = db_get_bytes(result, 0, 3)};
    held->result = result;
    result = NULL;
    *ret_document = &held->document;
    return true;
}

void db_document_free(struct db_document **documentp)
{
    struct held_document *held = (struct held_document *)*documentp;
    *documentp = NULL;
    if (held != NULL) {
        db_result_clear(&held->result);
        free(held);
    }
}
