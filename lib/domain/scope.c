/* SPDX-License-Identifier: Apache-2.0
 *
 * One table of names. The invariant: admin allows everything.
 */
#include "domain/scope.h"

#include <assert.h>
#include <string.h>

static const char *const names[] = {"submit", "read", "operate", "admin"};

#define NAME_COUNT (sizeof names / sizeof *names)

unsigned scope_from_text(const char *name, size_t size)
{
    for (size_t i = 0; i < NAME_COUNT; i++) {
        if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0) {
            return 1U << i;
        }
    }
    return 0;
}

void scope_to_text(unsigned scopes, const char *separator, char ret_text[SCOPE_TEXT_SIZE])
{
    size_t size = 0;
    assert(strlen(separator) <= 2 && scopes >> NAME_COUNT == 0);
    for (size_t i = 0; i < NAME_COUNT; i++) {
        const char *parts[] = {size == 0 ? "" : separator, names[i]};
        for (size_t j = 0; j < 2 && (scopes >> i & 1U) != 0; j++) {
            memcpy(ret_text + size, parts[j], strlen(parts[j]));
            size += strlen(parts[j]);
        }
    }
    ret_text[size] = '\0';
}

bool scope_allows(unsigned scopes, unsigned wanted)
{
    return wanted == 0 || (scopes & (wanted | SCOPE_ADMIN)) != 0;
}
