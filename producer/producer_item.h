/* SPDX-License-Identifier: Apache-2.0
 *
 * One call that writes: create, add a document, submit, or all three. It owns
 * its exchange until it answers it, exactly once, and is gone with that.
 */
#ifndef PRODUCER_ITEM_H
#define PRODUCER_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/uuid.h"
#include "db/db_submit.h"
#include "producer_key.h"
#include "producer_queue.h"
#include "wire/wire_json.h"

struct http_exchange;
struct http_problem;
struct http_request;
struct producer_item;
struct producer_settings;

#define PRODUCER_NAME_SIZE 256
#define PRODUCER_TRACEPARENT_SIZE 56

#define PRODUCER_LARGE_SIZE 65536 /* Above this an item goes alone, over the connections for large ones. */

/* Reads an item out of its request; errors are permanent, their codes rows of the table of problems. */
typedef bool producer_item_parse(const struct http_request *request, const struct producer_settings *settings,
                                 struct producer_item *item, struct err *err);

enum producer_item_kind {
    PRODUCER_CREATE,     /* POST /requests, PUT /requests/{id}. */
    PRODUCER_DOCUMENT,   /* POST /requests/{id}/documents. */
    PRODUCER_SUBMIT,     /* POST /requests/{id}/submit. */
    PRODUCER_SUBMISSION, /* POST /submissions. */
};

/* A document that a caller gave. Its content is in the exchange's body or in decoded. */
struct producer_document {
    char document_id[PRODUCER_NAME_SIZE];
    char name[PRODUCER_NAME_SIZE];
    char media_type[PRODUCER_NAME_SIZE];
    struct bytes content;
    struct buf decoded;
    unsigned char sha256[DB_SHA256_SIZE];
};

struct producer_item {
    struct producer_entry entry;
    struct http_exchange *exchange;
    producer_item_parse *parse; /* Still to be done; else NULL. */
    const char *accept;         /* For a 415. */
    enum producer_item_kind kind;
    const char *tenant;
    struct producer_key *key; /* NULL: none. */
    struct wire_value body;   /* The checked JSON; WIRE_ABSENT: raw bytes. */
    struct uuid request_id;
    bool is_id_minted; /* By us, for this call. */
    char *type;        /* When it may create; else NULL. */
    struct bytes data; /* The caller's bytes inside the exchange's body. */
    unsigned char fingerprint[DB_SHA256_SIZE];
    struct producer_document *documents;
    size_t document_count;
    char traceparent[PRODUCER_TRACEPARENT_SIZE]; /* "": none. */
    /* Minted for each attempt, but kept while an attempt's outcome is not known. */
    struct uuid event_id;
    int64_t now_us;
    bool is_in_doubt;
    int64_t doubt_since_ms;
    int attempt; /* That failed. */
    int busy_count;
    int64_t started_ms;
    struct producer_item *follower; /* The same call once more: of the same batch, or under the same key. */
};

/* NULL only when memory is out. */
struct producer_item *producer_item_new(struct http_exchange *exchange, enum producer_item_kind kind,
                                        const char *tenant);

/* Without an answer: the exchange is the caller's again. */
void producer_item_free(struct producer_item **itemp);

/* Parses, if that is still to be done. False: it was refused, and is gone. */
bool producer_item_parsed(struct producer_item **itemp, const struct producer_settings *settings);

/* Bytes that this item brings along; what is large does not go with others. */
size_t producer_item_size(const struct producer_item *item);

bool producer_item_wants_submit(const struct producer_item *item);

/* What is said under a key, or once more. Borrowed until the call. */
struct producer_reply {
    int status;
    const char *headers; /* Lines of "Name: value". */
    struct bytes body;
    bool is_replayed;
    int64_t expires_us;
};

/* Each answers and frees. The body is taken. location: also a Location header when it is not NULL. */
void producer_item_answer(struct producer_item **itemp, int status, struct buf *body, const char *location);
void producer_item_reply(struct producer_item **itemp, const struct producer_reply *reply);
void producer_item_refuse(struct producer_item **itemp, const struct http_problem *problem, const char *detail);

/* Another call has the key: components are that one's. resource is what it made; NULL: it is still running. */
void producer_item_refuse_reused(struct producer_item **itemp, const char *components, const char *resource);

#endif
