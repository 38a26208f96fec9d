/* SPDX-License-Identifier: Apache-2.0
 *
 * Dead letters for people: which there are, what is in one, and that somebody
 * has dealt with them. None is ever deleted or changed but for that.
 */
#ifndef DB_DB_DLQ_H
#define DB_DB_DLQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "db/db_audit.h"

struct db;

#define DB_DLQ_NAME_SIZE 256
#define DB_DLQ_ID_SIZE 1025
#define DB_DLQ_REASON_SIZE 512
#define DB_DLQ_DIGEST_SIZE 17
#define DB_DLQ_ROW_COUNT_MAX 1001          /* A page of a thousand, and whether there is more. */
#define DB_DLQ_ACKNOWLEDGE_COUNT_MAX 10000 /* At one call. */

struct db_dlq_letter {
    int64_t dead_letter_id;
    char consumer[DB_DLQ_NAME_SIZE];
    char scope[DB_DLQ_NAME_SIZE];
    char topic[DB_DLQ_NAME_SIZE];
    int32_t partition;
    int64_t offset;
    char event_id[DB_DLQ_ID_SIZE]; /* "" where it could not be read, as source. */
    char source[DB_DLQ_NAME_SIZE];
    char reason_code[64];
    char reason[DB_DLQ_REASON_SIZE];
    int64_t created_at_us;
    bool is_acknowledged; /* The three below are of that. */
    int64_t acknowledged_at_us;
    char acknowledged_by[DB_DLQ_NAME_SIZE];
    char acknowledged_reason[DB_DLQ_REASON_SIZE];
};

/* NULL and 0 for "any". */
struct db_dlq_filter {
    const char *consumer;
    const char *reason_code;
    bool is_open_only; /* Only those that nobody has acknowledged. */
    int64_t before;    /* Ids below this. */
    int32_t limit;     /* 1 … DB_DLQ_ROW_COUNT_MAX. */
};

/* The newest first. free() *ret_letters. */
bool db_dlq_list(struct db *db, const struct db_dlq_filter *filter, struct db_dlq_letter **ret_letters,
                 size_t *ret_count, struct err *err) MUST_CHECK;

/* A record's bytes, each terminated for convenience; NULL for null. db_dlq_record_done() frees it. */
struct db_dlq_part {
    char *name; /* Of a header; NULL for key and value. */
    char *data;
    size_t size;
};

struct db_dlq_record {
    struct db_dlq_part key;
    struct db_dlq_part value;
    struct db_dlq_part *headers;
    size_t header_count;
};

/* One with its bytes. */
bool db_dlq_find(struct db *db, int64_t dead_letter_id, struct db_dlq_letter *ret_letter,
                 struct db_dlq_record *ret_record, bool *ret_found, struct err *err) MUST_CHECK;
void db_dlq_record_done(struct db_dlq_record *record);

/* Which are meant: only such as nobody has acknowledged. */
struct db_dlq_selection {
    int64_t dead_letter_id; /* 0: all that the next two say. */
    const char *consumer;
    const char *reason_code; /* NULL: any. */
    struct db_audit audit;   /* With a reason. */
    const char *digest;      /* NULL, or what the selection must be for anything to be done. */
    bool is_dry;             /* Only look. */
};

struct db_dlq_acknowledged {
    int64_t selected_count; /* At most DB_DLQ_ACKNOWLEDGE_COUNT_MAX, the oldest. */
    int64_t done_count;     /* 0: dry, or another digest. */
    int64_t first_id;
    int64_t last_id;
    char digest[DB_DLQ_DIGEST_SIZE]; /* Of the selected ids. */
};

/* Writes down that nothing is left to be done about them, with one row of audit, all or nothing. */
bool db_dlq_acknowledge(struct db *db, const struct db_dlq_selection *selection, struct db_dlq_acknowledged *ret_done,
                        struct err *err) MUST_CHECK;

#endif
