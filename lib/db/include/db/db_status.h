/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator asks: is it flowing, where is each lane, where is each
 * consumer, and what became of this event? Read from the schema's views.
 */
#ifndef DB_DB_STATUS_H
#define DB_DB_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct db;

#define DB_STATUS_NAME_SIZE 256
#define DB_STATUS_REASON_SIZE 512
#define DB_STATUS_KEY_SIZE 1025
#define DB_STATUS_UUID_SIZE 37

/* Counting stops here: a backlog may be of millions, and the question is asked in the middle of an outage. */
#define DB_STATUS_COUNT_MAX 100000
#define DB_STATUS_ROW_COUNT_MAX 1001 /* A page of a thousand, and whether there is more. */

#define DB_STATUS_OVERDUE_MS 30000

struct db_status_flow {
    int64_t backlog_count; /* Neither on its topic nor deferred. */
    bool is_backlog_cut;   /* There may be more: only so many rows were looked at, the oldest first. */
    int64_t claimed_count; /* Of these. */
    bool has_oldest;
    int64_t oldest_age_us;     /* Of the backlog. */
    int64_t deferred_count;    /* Set aside for whatever reason, the parked included. */
    int64_t parked_count;      /* Refused by the broker, waiting for a person. */
    int64_t dead_letter_count; /* That wait for a person. */
    int64_t relay_count;       /* With a live lease. */
    int64_t last_outbox_id;
    bool is_producer_missing; /* There are requests, and no session of a process that takes them. */
};

struct db_status_lane {
    int32_t lane;
    char owner[DB_STATUS_NAME_SIZE]; /* "" while it is free. */
    bool is_owned;                   /* By a relay whose lease is alive. */
    int64_t seq;
    int64_t position;
    int64_t claimed_to;
    int32_t starts;
    int64_t moved_age_us;
};

struct db_status_partition {
    char consumer[DB_STATUS_NAME_SIZE];
    char scope[DB_STATUS_NAME_SIZE];
    char topic[DB_STATUS_NAME_SIZE];
    int32_t partition;
    char owner[DB_STATUS_NAME_SIZE];
    int64_t next_offset;
    int64_t moved_age_us;
    bool is_connected;      /* A process of this consumer has a session in the database. */
    int64_t overdue_offset; /* The last one that the relay settled DB_STATUS_OVERDUE_MS ago or earlier and that is not
                             * applied; -1: none. */
    char stop_code[64];     /* Why its consumer stopped it until a person acts; "": it did not. */
    char stop_reason[DB_STATUS_REASON_SIZE];
    int64_t stopped_at_us;
};

struct db_status_inbox {
    char consumer[DB_STATUS_NAME_SIZE];
    char scope[DB_STATUS_NAME_SIZE];
    int64_t completed_count; /* DB_STATUS_COUNT_MAX + 1 means more than that; so the next two. */
    int64_t failed_count;
    int64_t claimed_count;
    int64_t dead_letter_count; /* That wait for a person. */
};

bool db_status_flow(struct db *db, struct db_status_flow *ret_flow, struct err *err) MUST_CHECK;

/* Each gives at most DB_STATUS_ROW_COUNT_MAX rows; free() them. Partitions and inboxes of retired consumers are left
 * out. */
bool db_status_lanes(struct db *db, struct db_status_lane **ret_lanes, size_t *ret_count, struct err *err) MUST_CHECK;
bool db_status_partitions(struct db *db, struct db_status_partition **ret_partitions, size_t *ret_count,
                          struct err *err) MUST_CHECK;
bool db_status_inboxes(struct db *db, struct db_status_inbox **ret_inboxes, size_t *ret_count,
                       struct err *err) MUST_CHECK;

/* ---- Events: db_status_event.c ------------------------------------------------------------------------------ */

struct db_status_event {
    char event_id[DB_STATUS_UUID_SIZE];
    int64_t outbox_id;
    int32_t lane;
    char tenant[DB_STATUS_NAME_SIZE];
    char topic[DB_STATUS_NAME_SIZE];
    char key[DB_STATUS_KEY_SIZE];
    char type[DB_STATUS_NAME_SIZE];
    int64_t time_us; /* Of the submit. */
    int32_t value_size;
    char status[16]; /* pending, claimed, completed, failed. */
    bool has_place;
    int32_t partition;
    int64_t offset;          /* -1: acknowledged, and the broker did not say where. */
    int64_t settled_at_us;   /* When the relay wrote that down. */
    char deferred_state[16]; /* "" unless it is, or was, set aside. */
    char reason_code[64];
    char reason[DB_STATUS_REASON_SIZE];
};

/* NULL and 0 for "any". */
struct db_status_filter {
    const char *status;
    const char *tenant;
    const char *topic;
    const char *key;
    const char *type;
    int64_t before; /* Outbox ids below this. */
    int32_t limit;  /* 1 … DB_STATUS_ROW_COUNT_MAX. */
};

/* The newest first. free() *ret_events. */
bool db_status_event_list(struct db *db, const struct db_status_filter *filter, struct db_status_event **ret_events,
                          size_t *ret_count, struct err *err) MUST_CHECK;

/* The events of this id: none, one, or, after a restore, more. event_id is 16 bytes. */
bool db_status_event_find(struct db *db, const unsigned char *event_id, struct db_status_event **ret_events,
                          size_t *ret_count, struct err *err) MUST_CHECK;

/* The submit that made an event. */
struct db_status_submission {
    char tenant[DB_STATUS_NAME_SIZE];
    char request_id[DB_STATUS_UUID_SIZE];
    char type[DB_STATUS_NAME_SIZE];
    int64_t submitted_at_us;
    int64_t document_count;
};

/* *ret_found is false for an event that came by publish(). The event's key and tenant lead there. */
bool db_status_event_submission(struct db *db, const struct db_status_event *event,
                                struct db_status_submission *ret_submission, bool *ret_found,
                                struct err *err) MUST_CHECK;

/* What became of an event at a consumer whose inbox is in this database. */
struct db_status_delivery {
    char consumer[DB_STATUS_NAME_SIZE];
    char scope[DB_STATUS_NAME_SIZE];
    char status[16]; /* claimed, completed, failed; dead_letter: in no inbox; waiting: the consumer's cursor is not yet
                      * there; passed: it is beyond, and the inbox knows nothing (any more); stopped: the inbox knows
                      * nothing, and the consumer has stopped the partition. */
    int64_t at_us;   /* When that became so; for waiting and passed, when the cursor moved last. */
    char topic[DB_STATUS_NAME_SIZE]; /* Of the dead letter, or the cursor; "" unless there is one, as the rest. */
    int32_t partition;
    int64_t offset;
    char reason_code[64];
    char reason[DB_STATUS_REASON_SIZE];
    char source[DB_STATUS_NAME_SIZE]; /* Whose id it is, where the inbox or a dead letter says so; else "". */
};

/* event_id is any text: others than we give ids of their own form. event is where it is on its topic, NULL when that is
 * not known. */
bool db_status_event_deliveries(struct db *db, const char *event_id, const struct db_status_event *event,
                                struct db_status_delivery **ret_deliveries, size_t *ret_count,
                                struct err *err) MUST_CHECK;

#endif
