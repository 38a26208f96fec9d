/* SPDX-License-Identifier: Apache-2.0
 *
 * What a deployment routes: the topics that events may go to, and which topic
 * the events of a type take. Every change leaves a row in onceward.audit.
 */
#ifndef DB_DB_TOPIC_H
#define DB_DB_TOPIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "db/db_audit.h"

struct db;

#define DB_TOPIC_NAME_SIZE 256
#define DB_TOPIC_TYPE_SIZE 256
#define DB_TOPIC_COUNT_MAX 10000 /* Rows that a list gives at most. */

struct db_topic {
    char topic[DB_TOPIC_NAME_SIZE];
    int32_t event_bytes_max;
    int32_t in_flight_per_key;
    int64_t created_at_us;
};

enum db_topic_outcome {
    DB_TOPIC_ADDED,
    DB_TOPIC_CHANGED, /* It was there with another limit, which now is the new one. */
    DB_TOPIC_UNCHANGED,
};

/* Adds the topic, or sets its limit. event_bytes_max 0: the schema's default for a new topic, and an old one keeps
 * what it has. Permanent 23514 for a name that Kafka does not allow. */
bool db_topic_add(struct db *db, const char *topic, int32_t event_bytes_max, enum db_topic_outcome *ret_outcome,
                  struct err *err) MUST_CHECK;

/* All, by name. free() *ret_topics. */
bool db_topic_list(struct db *db, struct db_topic **ret_topics, size_t *ret_count, struct err *err) MUST_CHECK;

/* Why a removal may be refused. */
struct db_topic_uses {
    int64_t route_count;   /* Routes to the topic. */
    int64_t waiting_count; /* Its events that are not published yet; counting stops as in db_status.h. */
    int64_t recent_count;  /* Events of the type within the last hour, among the newest ten thousand of all. */
};

/* How a removal is asked for. */
struct db_topic_removal_options {
    struct db_audit audit;
    bool is_forced; /* Does not ask whether it is in use; for routes only. */
    bool is_dry;    /* Nothing is done. */
};

enum db_topic_removal {
    DB_TOPIC_REMOVED,
    DB_TOPIC_UNKNOWN,
    DB_TOPIC_IN_USE, /* Nothing was done. */
};

/* Events go to the topic no more. In use: routes lead to it, or events wait for it. The broker is not touched. */
bool db_topic_remove(struct db *db, const char *topic, const struct db_topic_removal_options *options,
                     struct db_topic_uses *ret_uses, enum db_topic_removal *ret_outcome, struct err *err) MUST_CHECK;

/* What is submitted with the type is refused from now on. In use: events of it came within the last hour. */
bool db_topic_route_remove(struct db *db, const char *type, const struct db_topic_removal_options *options,
                           struct db_topic_uses *ret_uses, enum db_topic_removal *ret_outcome,
                           struct err *err) MUST_CHECK;

struct db_topic_route {
    char type[DB_TOPIC_TYPE_SIZE];
    char topic[DB_TOPIC_NAME_SIZE];
    char dataschema[DB_TOPIC_TYPE_SIZE]; /* "" for none. */
    int64_t created_at_us;
};

enum db_topic_route_outcome {
    DB_TOPIC_ROUTE_ADDED,
    DB_TOPIC_ROUTE_CHANGED, /* The type went to another topic, or had another schema, until now. */
    DB_TOPIC_ROUTE_UNCHANGED,
    DB_TOPIC_ROUTE_UNKNOWN_TOPIC, /* Nothing was done. */
};

/* Sends the events of a type to a topic from now on. dataschema may be NULL. */
bool db_topic_route_add(struct db *db, const char *type, const char *topic, const char *dataschema,
                        enum db_topic_route_outcome *ret_outcome, struct err *err) MUST_CHECK;

/* All, by type. free() *ret_routes. */
bool db_topic_route_list(struct db *db, struct db_topic_route **ret_routes, size_t *ret_count,
                         struct err *err) MUST_CHECK;

#endif
