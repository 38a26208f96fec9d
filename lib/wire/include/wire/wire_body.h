/* SPDX-License-Identifier: Apache-2.0
 *
 * The members of a request's body, by table.
 *
 *   struct wire_value type, data;
 *   const struct wire_member members[] = {
 *       {.name = "type", .kinds = WIRE_STRING, .is_required = true, .ret_value = &type},
 *       {.name = "data", .kinds = WIRE_OBJECT, .ret_value = &data},
 *   };
 *   wire_body_members(&body, "", members, 2, err)
 */
#ifndef WIRE_WIRE_BODY_H
#define WIRE_WIRE_BODY_H

#include "wire/wire_json.h"

struct wire_member {
    const char *name;
    unsigned kinds; /* The wire_kinds allowed, or-ed. */
    bool is_required;
    size_t text_size_max; /* Of a string's bytes without escapes; 0: no bound but the body's. */
    struct wire_value *ret_value;
};

/* Fills every ret_value from the object value; WIRE_ABSENT where it is not there. pointer is the JSON pointer of value
 * itself ("" for a whole body), for messages. Permanent error "body_invalid", with the pointer of the member in its
 * text, for a value of another kind, a required member that is missing, a text too long, a member of no row. */
bool wire_body_members(const struct wire_value *value, const char *pointer, const struct wire_member *members,
                       size_t member_count, struct err *err) MUST_CHECK;

#endif
