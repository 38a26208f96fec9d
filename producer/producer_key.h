/* SPDX-License-Identifier: Apache-2.0
 *
 * The Idempotency-Key of a call: its form, and the fingerprint that tells
 * whether two calls under one key are the same call.
 */
#ifndef PRODUCER_KEY_H
#define PRODUCER_KEY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/err.h"
#include "db/db_submit.h"
#include "wire/wire_json.h"

struct http_request;
struct producer_flight;
struct producer_item;

#define PRODUCER_KEY_SIZE 256 /* With its NUL. */
#define PRODUCER_KEY_COMPONENTS_SIZE 512

struct producer_key {
    char text[PRODUCER_KEY_SIZE];
    unsigned char fingerprint[DB_SHA256_SIZE];
    char components[PRODUCER_KEY_COMPONENTS_SIZE]; /* "name:hash …": what a mismatch is named by. */
    struct producer_item *item;                    /* Whose it is. */
    struct producer_flight *flight;                /* While it leads or follows; producer_flight.c's alone. */
    TAILQ_ENTRY(producer_key) of_flight;
    TAILQ_ENTRY(producer_key) of_time;
    int64_t until_ms;
    bool is_tenant_full; /* As many keys of its tenant are kept as may be; a new one is refused. */
};

/* Reads a header's value: a string in quotation marks, or bare. Permanent error "idempotency_key_invalid". */
bool producer_key_parse(const char *value, char ret_text[PRODUCER_KEY_SIZE], struct err *err) MUST_CHECK;

/* The same from a piece of a path, with percent escapes. */
bool producer_key_from_path(const char *piece, char ret_text[PRODUCER_KEY_SIZE], struct err *err) MUST_CHECK;

/* Fills fingerprint and components from method, path, query, media type and body. body: the checked JSON, or NULL for
 * raw bytes. An absent body and an empty object are the same. Transient "out_of_memory". */
bool producer_key_fingerprint(struct producer_key *key, const struct http_request *request,
                              const struct wire_value *body, struct err *err) MUST_CHECK;

/* Appends "differs" and "members", JSON members with a comma before each: which components of the two differ, and which
 * members of the body. */
void producer_key_write_differences(struct buf *buf, const char *components, const char *others);

#endif
