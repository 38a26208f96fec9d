/* SPDX-License-Identifier: Apache-2.0
 *
 * What a caller has submitted: a request with its data and its documents, at
 * the moment when it becomes an event. Every pointer is borrowed.
 */
#ifndef DOMAIN_SUBMISSION_H
#define DOMAIN_SUBMISSION_H

#include <stddef.h>
#include <stdint.h>

#include "domain/event.h"

/* A document travels by reference, never by content. */
struct submission_document {
    const char *document_id;
    const char *name;
    const char *media_type;
    int64_t size;
    const char *sha256; /* Lower-case hexadecimal. */
    const char *uri;    /* Absolute. */
};

struct submission {
    const char *request_id;
    const char *tenant;
    const char *type;
    const char *submitted_at; /* RFC 3339 in UTC. */
    struct bytes data;        /* A JSON object as the caller wrote it, or absent. */
    const struct submission_document *documents;
    size_t document_count;
};

#endif
