/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of names. They are part of what callers rely on: a derived id must
 * never change, or a retried upload becomes a second document.
 */
#include "domain/identity.h"

#include <string.h>

static bool is_unreserved(const char *text, size_t size, size_t size_max)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-";
    if (size == 0 || size > size_max) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\0' || strchr(allowed, text[i]) == NULL) {
            return false;
        }
    }
    bool is_dots = text[0] == '.' && (size == 1 || (size == 2 && text[1] == '.'));
    return !is_dots;
}

bool identity_tenant_is_valid(const char *tenant, size_t size)
{
    return is_unreserved(tenant, size, IDENTITY_TENANT_SIZE_MAX);
}

bool identity_document_id_is_valid(const char *document_id, size_t size)
{
    return is_unreserved(document_id, size, IDENTITY_DOCUMENT_ID_SIZE_MAX);
}

bool identity_type_is_valid(const char *type, size_t size)
{
    if (size == 0 || size > IDENTITY_TYPE_SIZE_MAX) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (type[i] <= ' ' || type[i] > '~' || strchr("\"'\\", type[i]) != NULL) {
            return false;
        }
    }
    return true;
}

void identity_document_text(const char *name, const char *media_type, const char *sha256, struct buf *out)
{
    buf_format(out, "%zu:%s%zu:%s%s", strlen(name), name, strlen(media_type), media_type, sha256);
}
