/* SPDX-License-Identifier: Apache-2.0
 *
 * What a caller's token allows, as a set.
 */
#ifndef DOMAIN_SCOPE_H
#define DOMAIN_SCOPE_H

#include <stdbool.h>
#include <stddef.h>

enum scope {
    SCOPE_SUBMIT = 1,  /* Create, fill and submit requests. */
    SCOPE_READ = 2,    /* See them and their events. */
    SCOPE_OPERATE = 4, /* Events and relays. */
    SCOPE_ADMIN = 8,   /* Everything. */
};

#define SCOPE_TEXT_SIZE 40 /* All of them, with separators and a NUL. */

/* The scope of this name; 0 for none. */
unsigned scope_from_text(const char *name, size_t size);

/* The names in a set, in a fixed order. */
void scope_to_text(unsigned scopes, const char *separator, char ret_text[SCOPE_TEXT_SIZE]);

/* Whether a token with this set may do what needs one of wanted. */
bool scope_allows(unsigned scopes, unsigned wanted);

#endif
