/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection to Postgres with Onceward's session rules: durable commits,
 * UTF-8, READ COMMITTED, and timeouts below every lease. Used by one thread at
 * a time. After a lost connection nothing is retried here: the handle is
 * broken until db_reset(), and the caller's loop decides when that is tried.
 */
#ifndef DB_DB_H
#define DB_DB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct db;

#define DB_APPLICATION_NAME_SIZE 64

struct db_settings {
    const char *conninfo;         /* libpq: keywords or a URI. Copied. */
    const char *application_name; /* Used where conninfo names none. Copied. */
    bool needs_primary;           /* target_session_attrs=read-write, checked on every connect. */
    bool is_pooled;               /* A pooler in transaction mode is between: nothing is prepared, settings
                                   * go with every transaction. */
    bool plans_once;              /* A prepared statement keeps one plan for all parameters (plan_cache_mode): for who
                                   * runs few statements, over arrays, very often. */
    int connect_timeout_ms;       /* 0 means the default of db.c, as below. */
    int lock_timeout_ms;
    int statement_timeout_ms;
    int idle_in_transaction_timeout_ms;
    int answer_timeout_ms; /* How long to wait for the answers of one flush before the connection is given up: the
                            * server sends them together, so more than statement_timeout_ms. */
    int stop_fd;           /* Readable once the process was asked to stop; -1 for none. */
    int stop_grace_ms;     /* What a wait may still take after that. */
};

#define DB_SETTINGS_INIT                                                                                               \
    {                                                                                                                  \
        .conninfo = "", .application_name = "onceward", .stop_fd = -1                                                  \
    }

/* Which server answers. Two answers are from one life of one server if all members are equal. */
struct db_server {
    char system_identifier[24];  /* Of the cluster; decimal. */
    int64_t postmaster_start_us; /* Unix time. */
    int32_t timeline;            /* 0 while in recovery. */
    int version;                 /* As in 150004. */
    bool is_in_recovery;
};

/* Connects, sets the session up and checks it. Blocks up to the connect timeout and two answers. NULL with
 * err: transient when the server is away or refuses the login (libpq does not tell these apart), fatal when it
 * is there but not usable (encoding, version) or conninfo cannot be parsed. */
struct db *db_open(const struct db_settings *settings, struct err *err) MUST_CHECK;

/* The same again on this handle: closes what is left of the old connection first, forgets prepared statements.
 * Precondition: no transaction is open. On false the handle stays broken and can be tried again. */
bool db_reset(struct db *db, struct err *err) MUST_CHECK;

/* Ends the connection (the server rolls back what was open). Accepts NULL, nulls the pointer. */
void db_close(struct db **dbp);

/* False after a lost or given-up connection: every call fails transient until db_reset(). */
bool db_is_usable(const struct db *db);

/* No wait of later calls lasts beyond this monotonic time; a wait that is cut breaks the connection.
 * 0 takes it away. */
void db_set_deadline(struct db *db, int64_t monotonic_at_ms);

/* The server as it was at the last connect. Borrowed from db. */
const struct db_server *db_server(const struct db *db);

/* Asks the server again (one statement). A pooler can swap servers unseen. */
bool db_server_read(struct db *db, struct db_server *ret_server, struct err *err) MUST_CHECK;

/* Whether both are the same life of the same server. */
bool db_server_equals(const struct db_server *one, const struct db_server *other);

/* "host:port/database as user", without password. Borrowed from db until reset or close. */
const char *db_where(const struct db *db);

#endif
