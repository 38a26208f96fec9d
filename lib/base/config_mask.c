/* SPDX-License-Identifier: Apache-2.0
 *
 * What must not be printed. Rather too much is masked than too little: a text
 * that libpq would misread or refuse is often one whose password has a character
 * that should have been escaped, and people print their settings to find just
 * that.
 */
#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "config_private.h"

static bool has_mark(const char *name, const char *const *marks)
{
    for (size_t i = 0; marks[i] != NULL; i++) {
        if (strcasestr(name, marks[i]) != NULL) {
            return true;
        }
    }
    return false;
}

bool config_pair_is_secret(const char *name, const char *value)
{
    static const char *const marks[] = {"password", "passphrase",         "secret", ".key", "jaas",
                                        "token",    "oauthbearer.config", NULL};
    return has_mark(name, marks) || strstr(value, "PRIVATE KEY") != NULL;
}

/* A keyword of libpq, of now and of later. */
static bool is_secret_keyword(const char *name)
{
    static const char *const marks[] = {"password", "secret", "scram_", NULL};
    return has_mark(name, marks);
}

/* Appends the bytes behind the escapes. False for a broken one. */
static bool decode(const char *text, size_t size, struct buf *out)
{
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < size ? text_hex_value(text[i + 1]) : -1;
            int low = i + 2 < size ? text_hex_value(text[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return false;
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        buf_char(out, c);
    }
    return true;
}

/* name=value between ampersands. A piece without an equals sign or with two may be the rest of a password. */
static void mask_param(const char *param, size_t size, struct buf *out)
{
    const char *equals = memchr(param, '=', size);
    if (equals == NULL) {
        buf_text(out, size == 0 ? "" : CONFIG_MASK);
        return;
    }
    size_t name_size = (size_t)(equals - param);
    struct buf name;
    buf_init(&name, size);
    bool is_secret = !decode(param, name_size, &name) || strlen(name.data) < name.size ||
                     is_secret_keyword(name.data) || memchr(equals + 1, '=', size - name_size - 1) != NULL;
    buf_done(&name);
    buf_append(out, param, is_secret ? name_size + 1 : size);
    if (is_secret) {
        buf_text(out, CONFIG_MASK);
    }
}

/* The @ behind user and password, or NULL. libpq takes the first one, unless a slash stands before it. */
static const char *find_userinfo_end(const char *start)
{
    const char *at = strchr(start, '@');
    if (at == NULL) {
        return NULL;
    }
    if (strcspn(start, "/") > (size_t)(at - start)) {
        return memrchr(at, '@', strcspn(at, "/?"));
    }
    /* A password may hold an unescaped slash: then what follows the first colon is no port. */
    const char *colon = memchr(start, ':', strcspn(start, "/?"));
    bool is_port = colon == NULL || start[0] == '[' || strchr("0123456789,/?", colon[1]) != NULL;
    return !is_port || strcspn(start, "?") > (size_t)(at - start) ? strrchr(start, '@') : NULL;
}

/* postgresql://user:password@host/db?name=value&…: the password, and the values of parameters that hold one. */
static void mask_uri(const char *uri, struct buf *out)
{
    const char *start = strstr(uri, "://") + 3;
    const char *at = find_userinfo_end(start);
    const char *colon = at == NULL ? NULL : memchr(start, ':', (size_t)(at - start));
    const char *rest = uri;
    if (colon != NULL) {
        buf_append(out, uri, (size_t)(colon + 1 - uri));
        buf_text(out, CONFIG_MASK);
        rest = at;
    }
    size_t plain_size = strcspn(rest, "?");
    buf_append(out, rest, plain_size);
    rest += plain_size;
    while (*rest != '\0') {
        buf_char(out, *rest++);
        size_t size = strcspn(rest, "&");
        mask_param(rest, size, out);
        rest += size;
    }
}

/* The end of a value in keyword form: quoted with ' and \, or up to a blank. */
static const char *value_end(const char *value)
{
    bool is_quoted = *value == '\'';
    for (value += is_quoted; *value != '\0'; value++) {
        if (*value == '\\' && value[1] != '\0') {
            value++;
        } else if (is_quoted ? *value == '\'' : isspace((unsigned char)*value)) {
            return value + is_quoted;
        }
    }
    return value;
}

static const char *skip_blanks(const char *text)
{
    while (isspace((unsigned char)*text)) {
        text++;
    }
    return text;
}

/* The end of a keyword: its equals sign, or a blank. */
static const char *name_end(const char *name)
{
    while (*name != '\0' && *name != '=' && !isspace((unsigned char)*name)) {
        name++;
    }
    return name;
}

static bool is_keyword(const char *name, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (!isalnum((unsigned char)name[i]) && name[i] != '_') {
            return false;
        }
    }
    return true;
}

static bool is_secret_pair(const char *name, size_t name_size, const char *value, size_t value_size)
{
    struct buf copy;
    buf_init(&copy, name_size + value_size);
    buf_append(&copy, name, name_size);
    bool is_secret = is_secret_keyword(copy.data);
    buf_reset(&copy);
    buf_append(&copy, value, value_size);
    const char *scheme = strstr(copy.data, "://");
    is_secret = is_secret || (scheme != NULL && strchr(scheme, '@') != NULL);
    buf_done(&copy);
    return is_secret;
}

/* A word that is no keyword with an equals sign may be the rest of a password: it is masked. */
static void mask_keywords(const char *text, struct buf *out)
{
    while (*text != '\0') {
        const char *name = skip_blanks(text);
        const char *behind = name_end(name);
        size_t name_size = (size_t)(behind - name);
        const char *value = skip_blanks(behind);
        buf_append(out, text, (size_t)(name - text));
        if (*value != '=' || !is_keyword(name, name_size)) {
            text = *value == '=' ? value_end(value) : behind;
            buf_text(out, name_size > 0 || *value == '=' ? CONFIG_MASK : "");
            continue;
        }
        value = skip_blanks(value + 1);
        text = value_end(value);
        bool is_secret = is_secret_pair(name, name_size, value, (size_t)(text - value));
        buf_append(out, name, (size_t)((is_secret ? value : text) - name));
        buf_text(out, is_secret ? CONFIG_MASK : "");
    }
}

/* Also of another scheme: libpq would refuse it, but it is a URI to whoever wrote it. */
static bool is_uri(const char *text)
{
    const char *scheme = strstr(text, "://");
    return scheme != NULL && strcspn(text, "= \t\r\n") > (size_t)(scheme - text);
}

char *config_mask_conninfo(const char *conninfo)
{
    struct buf out;
    buf_init(&out, strlen(conninfo) * 4 + 16);
    if (is_uri(conninfo)) {
        mask_uri(conninfo, &out);
    } else {
        mask_keywords(conninfo, &out);
    }
    char *masked = buf_take(&out, NULL);
    assert(masked != NULL);
    return masked;
}
