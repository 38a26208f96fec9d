/* SPDX-License-Identifier: Apache-2.0
 *
 * What may be a name, and how a document that was given none gets its own.
 */
#ifndef DOMAIN_IDENTITY_H
#define DOMAIN_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define IDENTITY_TENANT_SIZE_MAX 128
#define IDENTITY_TYPE_SIZE_MAX 255
#define IDENTITY_DOCUMENT_ID_SIZE_MAX 255
#define IDENTITY_DERIVED_SIZE 32 /* Characters of a derived document id: the first of its digest in hexadecimal. */

/* Letters, digits and . _ ~ - : what needs no escape in a path (RFC 3986, unreserved). "." and ".." are none. */
bool identity_tenant_is_valid(const char *tenant, size_t size);
bool identity_document_id_is_valid(const char *document_id, size_t size);

/* A CloudEvents type: visible ASCII without quotes, backslash or blanks. */
bool identity_type_is_valid(const char *type, size_t size);

/* The text whose SHA-256 names a document that was given no id: the same name, media type and content make the same
 * document. Sizes stand before the texts, so that no two triples share a text. The id is the first
 * IDENTITY_DERIVED_SIZE characters of the hash in hexadecimal. */
void identity_document_text(const char *name, const char *media_type, const char *sha256, struct buf *out);

#endif
