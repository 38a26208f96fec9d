/* SPDX-License-Identifier: Apache-2.0
 *
 * The inbox: which events a consumer has dealt with, in which scope. A claim is
 * an insert in the transaction of its effect: both become visible together or
 * not at all.
 */
#ifndef DB_DB_INBOX_H
#define DB_DB_INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"

struct db;
struct db_tx;

#define DB_INBOX_SOURCE_SIZE 256

enum db_inbox_source {
    DB_INBOX_OWN,     /* Ids are UUIDv7s that we minted. */
    DB_INBOX_FOREIGN, /* Ids are any text, unique with their source. */
};

enum db_inbox_status { DB_INBOX_COMPLETED, DB_INBOX_FAILED };

/* An event as its inbox sees it. event_id for own sources, source and id for foreign ones. */
struct db_inbox_item {
    struct uuid event_id;
    const char *source;
    const char *id;
    int64_t payload_hash;
    enum db_inbox_status status; /* What is claimed: an effect, or that there will be none. */
};

/* The small number that stands for (consumer, scope) in the inbox. Makes it at first sight. */
bool db_inbox_scope(struct db *db, const char *consumer, const char *scope, int32_t *ret_scope_id,
                    struct err *err) MUST_CHECK;

/* The source of the events that are minted in this database's deployment. */
bool db_inbox_own_source(struct db *db, char ret_source[DB_INBOX_SOURCE_SIZE], struct err *err) MUST_CHECK;

/* Pins to which inbox a source belongs, at first sight, and says to which it does. A transaction of its own: it
 * must be committed before the batch that relies on it. */
bool db_inbox_pin_source(struct db *db, const char *consumer, const char *source, enum db_inbox_source wanted,
                         enum db_inbox_source *ret_kind, struct err *err) MUST_CHECK;

/* Claims all that nobody has claimed, in the order given, which must be that of event_id without repeats
 * (foreign: source, id). Waits for a rival's open transaction and then sees what became of it.
 * ret_is_fresh[i]: the claim is ours. All of one kind. */
bool db_inbox_claim(struct db_tx *tx, int32_t scope_id, enum db_inbox_source kind, const struct db_inbox_item *items,
                    size_t count, bool *ret_is_fresh, struct err *err) MUST_CHECK;

/* The same as a value, for who makes it along with something else (db_progress.h). */
struct db_inbox_claim {
    int32_t scope_id;
    enum db_inbox_source kind;
    const struct db_inbox_item *items;
    size_t count;
    bool *ret_is_fresh;
};

/* What is known of these. A statement of its own after a claim: the claim's own snapshot is too old for it. */
struct db_inbox_answer {
    bool is_known;
    int64_t payload_hash; /* Of what is known. */
};
bool db_inbox_known(struct db_tx *tx, int32_t scope_id, enum db_inbox_source kind, const struct db_inbox_item *items,
                    size_t count, struct db_inbox_answer *ret_answers, struct err *err) MUST_CHECK;

/* Makes partitions ahead, and says which ids there is room for: first <= id < end. has_room is false where there
 * is no partition at all. */
struct db_inbox_range {
    bool has_room;
    struct uuid first;
    struct uuid end;
};
bool db_inbox_range(struct db *db, struct db_inbox_range *ret_range, struct err *err) MUST_CHECK;

#endif
