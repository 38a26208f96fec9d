/* SPDX-License-Identifier: Apache-2.0
 *
 * The members of a request's body, by table.
 */
#include "wire/wire_body.h"

#include <assert.h>
#include <string.h>

#define POINTER_SIZE_MAX 256

static bool refuse(struct err *err, const char *pointer, const char *name, const char *why)
{
    return err_set(err, ERR_PERMANENT, "body_invalid", "%s/%s: %s", pointer, name, why);
}

/* A member that is in no row. Its name is the caller's, so it is bounded and written as a pointer (RFC 6901). */
static bool refuse_unknown(struct err *err, const char *pointer, const struct wire_value *name)
{
    struct buf plain;
    struct buf escaped;
    buf_init(&plain, name->size);
    buf_init(&escaped, POINTER_SIZE_MAX);
    wire_json_text(name, &plain);
    for (size_t i = 0; i < plain.size; i++) {
        if (plain.data[i] == '~' || plain.data[i] == '/') {
            buf_text(&escaped, plain.data[i] == '~' ? "~0" : "~1");
        } else {
            buf_char(&escaped, plain.data[i]);
        }
    }
    refuse(err, pointer, escaped.data, "no member of this name is known");
    buf_done(&plain);
    buf_done(&escaped);
    return false;
}

/* "is a number, not a string or null". */
static bool refuse_kind(struct err *err, const char *pointer, const struct wire_member *member, enum wire_kind kind)
{
    struct buf why;
    buf_init(&why, ERR_TEXT_SIZE);
    buf_format(&why, "is %s, not", wire_kind_name(kind));
    const char *link = "";
    for (unsigned bit = WIRE_NULL; bit <= WIRE_OBJECT; bit <<= 1) {
        if ((member->kinds & bit) != 0) {
            buf_format(&why, "%s %s", link, wire_kind_name((enum wire_kind)bit));
            link = " or";
        }
    }
    refuse(err, pointer, member->name, why.data);
    buf_done(&why);
    return false;
}

static bool text_is_too_long(const struct wire_value *value, size_t size_max)
{
    return value->kind == WIRE_STRING && size_max > 0 && value->size > size_max + 2 &&
           wire_json_text_size(value) > size_max;
}

static bool take_member(const struct wire_value *value, const char *pointer, const struct wire_member *member,
                        struct err *err)
{
    if ((member->kinds & (unsigned)value->kind) == 0) {
        return refuse_kind(err, pointer, member, value->kind);
    }
    if (text_is_too_long(value, member->text_size_max)) {
        return err_set(err, ERR_PERMANENT, "body_invalid", "%s/%s: more than %zu bytes", pointer, member->name,
                       member->text_size_max);
    }
    *member->ret_value = *value;
    return true;
}

bool wire_body_members(const struct wire_value *value, const char *pointer, const struct wire_member *members,
                       size_t member_count, struct err *err)
{
    if (value->kind != WIRE_OBJECT) {
        return err_set(err, ERR_PERMANENT, "body_invalid", "%s: is %s, not an object",
                       pointer[0] == '\0' ? "the body" : pointer, wire_kind_name(value->kind));
    }
    for (size_t i = 0; i < member_count; i++) {
        *members[i].ret_value = (struct wire_value){.kind = WIRE_ABSENT};
    }
    struct wire_value name;
    struct wire_value found;
    struct wire_iterator iterator = wire_json_begin(value);
    while (wire_json_next(&iterator, &name, &found)) {
        size_t i = 0;
        while (i < member_count && !wire_json_is_text(&name, members[i].name)) {
            i++;
        }
        if (i == member_count) {
            return refuse_unknown(err, pointer, &name);
        }
        if (!take_member(&found, pointer, &members[i], err)) {
            return false;
        }
    }
    for (size_t i = 0; i < member_count; i++) {
        if (members[i].is_required && members[i].ret_value->kind == WIRE_ABSENT) {
            return refuse(err, pointer, members[i].name, "is missing");
        }
    }
    return true;
}
