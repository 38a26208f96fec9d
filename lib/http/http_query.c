/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes a query into texts that hold neither control characters nor broken
 * UTF-8.
 */
#include "http/http_query.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"

/* Decodes in place. False for a broken escape, a control character or bytes that are no UTF-8. */
static bool decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        int byte = (unsigned char)(*from == '+' ? ' ' : *from);
        if (*from == '%') {
            int high = text_hex_value(from[1]);
            int low = high < 0 ? -1 : text_hex_value(from[2]);
            if (low < 0) {
                return false;
            }
            byte = high * 16 + low;
            from += 2;
        }
        if (byte < 0x20 || byte == 0x7f) {
            return false;
        }
        *to++ = (char)byte;
    }
    *to = '\0';
    return text_is_utf8(text, (size_t)(to - text), NULL);
}

static bool refuse_name(const char *const *allowed, struct err *err)
{
    struct buf names;
    buf_init(&names, ERR_TEXT_SIZE / 2);
    for (size_t i = 0; allowed[i] != NULL; i++) {
        buf_format(&names, "%s%s", i == 0 ? "" : ", ", allowed[i]);
    }
    err_set(err, ERR_PERMANENT, "query_invalid",
            allowed[0] == NULL ? "this route takes no parameters%s" : "unknown parameter; allowed are: %s", names.data);
    buf_done(&names);
    return false;
}

static bool add_param(char *pair, const char *const *allowed, struct http_query *query, struct err *err)
{
    char *value = strchr(pair, '=');
    if (value != NULL) {
        *value++ = '\0';
    }
    if (!decode(pair) || (value != NULL && !decode(value))) {
        return err_set(err, ERR_PERMANENT, "query_invalid",
                       "a parameter has a broken escape, a control character or bytes that are no UTF-8");
    }
    size_t i = 0;
    while (allowed[i] != NULL && strcmp(allowed[i], pair) != 0) {
        i++;
    }
    if (allowed[i] == NULL) {
        return refuse_name(allowed, err);
    }
    if (http_query_value(query, pair) != NULL) {
        return err_set(err, ERR_PERMANENT, "query_invalid", "parameter %s comes twice", pair);
    }
    assert(query->count < HTTP_QUERY_COUNT_MAX);
    query->params[query->count++] = (struct http_query_param){.name = pair, .value = value == NULL ? "" : value};
    return true;
}

bool http_query_parse(const char *query, const char *const *allowed, struct http_query *ret_query, struct err *err)
{
    ret_query->count = 0;
    if (!text_copy(ret_query->text, sizeof ret_query->text, query == NULL ? "" : query)) {
        return err_set(err, ERR_PERMANENT, "query_invalid", "the query is longer than %d bytes",
                       HTTP_QUERY_SIZE_MAX - 1);
    }
    char *rest = ret_query->text;
    while (rest != NULL && *rest != '\0') {
        char *pair = strsep(&rest, "&");
        if (!add_param(pair, allowed, ret_query, err)) {
            return false;
        }
    }
    return true;
}

const char *http_query_value(const struct http_query *query, const char *name)
{
    for (size_t i = 0; i < query->count; i++) {
        if (strcmp(query->params[i].name, name) == 0) {
            return query->params[i].value;
        }
    }
    return NULL;
}
