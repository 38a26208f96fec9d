/* SPDX-License-Identifier: Apache-2.0
 *
 * Postgres' errors as our three kinds. Only the SQLSTATE decides, never the
 * text. What brings no SQLSTATE (a dead connection gives a NULL result) is
 * transient. The longest matching prefix wins; what no row names is permanent,
 * since it is a verdict of somebody's SQL on somebody's input.
 */
#include <assert.h>
#include <string.h>

#include "db_private.h"

struct error_class {
    const char *prefix;
    enum err_kind kind;
};

static const struct error_class CLASSES[] = {
    {"08", ERR_TRANSIENT},    /* Connection exceptions. */
    {"0A", ERR_FATAL},        /* Feature not supported: another server than we were written for. */
    {"25", ERR_FATAL},        /* Invalid transaction state: our mistake. */
    {"25006", ERR_TRANSIENT}, /* Read-only: it became a standby. */
    {"25P03", ERR_TRANSIENT}, /* Idle in transaction for too long. */
    {"26", ERR_FATAL},        /* Prepared statement missing: a pooler, and is_pooled was not set. */
    {"28", ERR_FATAL},        /* Login refused. */
    {"3D", ERR_FATAL},        /* No such database. */
    {"3F", ERR_FATAL},        /* No such schema. */
    {"40", ERR_TRANSIENT},    /* Deadlock, serialization failure. */
    {"40002", ERR_PERMANENT}, /* Integrity constraint at commit. */
    {"42", ERR_FATAL},        /* Syntax, missing table, missing privilege: wrong schema or wrong role. */
    {"53", ERR_TRANSIENT},    /* Disk full, out of memory, too many connections. */
    {"55006", ERR_TRANSIENT}, /* Object in use. */
    {"55000", ERR_TRANSIENT}, /* Not in the needed state, as WAL functions while in recovery. */
    {"55P03", ERR_TRANSIENT}, /* Lock not available within lock_timeout. */
    {"57", ERR_TRANSIENT},    /* Cancelled, shutting down, starting up. */
    {"57P04", ERR_FATAL},     /* The database was dropped. */
    {"58", ERR_TRANSIENT},    /* I/O errors. */
    {"72", ERR_TRANSIENT},    /* Snapshot too old. */
    {"F0", ERR_FATAL},        /* Configuration file. */
    {"XX", ERR_TRANSIENT},    /* Internal error. */
    {"XX001", ERR_FATAL},     /* Data corrupted. */
    {"XX002", ERR_FATAL},     /* Index corrupted. */
};

enum err_kind db_error_kind(const char *sqlstate)
{
    if (sqlstate == NULL || sqlstate[0] == '\0') {
        return ERR_TRANSIENT;
    }
    enum err_kind kind = ERR_PERMANENT;
    size_t longest = 0;
    for (size_t i = 0; i < sizeof CLASSES / sizeof CLASSES[0]; i++) {
        size_t length = strlen(CLASSES[i].prefix);
        if (length > longest && strncmp(sqlstate, CLASSES[i].prefix, length) == 0) {
            longest = length;
            kind = CLASSES[i].kind;
        }
    }
    return kind;
}

bool db_error_set(struct err *err, const PGconn *conn, const PGresult *result)
{
    assert(err != NULL);
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    if (sqlstate != NULL && primary != NULL) {
        return err_set(err, db_error_kind(sqlstate), sqlstate, "%s%s%s%s", primary, detail == NULL ? "" : " (",
                       detail == NULL ? "" : detail, detail == NULL ? "" : ")");
    }
    const char *message = result != NULL ? PQresultErrorMessage(result) : "";
    if (message[0] == '\0' && conn != NULL) {
        message = PQerrorMessage(conn);
    }
    return err_set(err, ERR_TRANSIENT, "connection_lost", "%s", message[0] == '\0' ? "connection lost" : message);
}

#define SQLSTATE_SIZE 5

/* Where libpq's verbose message ("…FATAL:  28P01: password …") has its first SQLSTATE; NULL: nowhere. Severity and text
 * are in the server's language, the SQLSTATE and what stands around it are not. */
static const char *find_sqlstate(const char *message)
{
    static const char marks[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    for (const char *at = strstr(message, ":  "); at != NULL; at = strstr(at + 1, ":  ")) {
        if (strspn(at + 3, marks) == SQLSTATE_SIZE && strncmp(at + 3 + SQLSTATE_SIZE, ": ", 2) == 0) {
            return at + 3;
        }
    }
    return NULL;
}

bool db_error_set_connect(struct err *err, const PGconn *conn)
{
    const char *message = PQerrorMessage(conn);
    const char *sqlstate = find_sqlstate(message);
    if (PQconnectionNeedsPassword(conn)) {
        return err_set(err, ERR_TRANSIENT, "password_missing", "%s", message);
    }
    if (sqlstate == NULL) {
        return err_set(err, ERR_TRANSIENT, "connect_failed", "%s", message);
    }
    /* The role can still be made or let in: transient, whatever the SQLSTATE, and whoever waits shows the text. */
    char code[SQLSTATE_SIZE + 1];
    const char *text = sqlstate + SQLSTATE_SIZE + 2;
    memcpy(code, sqlstate, SQLSTATE_SIZE);
    code[SQLSTATE_SIZE] = '\0';
    return err_set(err, ERR_TRANSIENT, code, "%.*s%.*s", (int)(sqlstate - 1 - message), message,
                   (int)strcspn(text, "\n"), text);
}
