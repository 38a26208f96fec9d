/* SPDX-License-Identifier: Apache-2.0
 *
 * What must not be printed. Rather too much is masked than too little.
 */
#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "config_private.h"

bool config_pair_is_secret(const char *name)
{
    static const char *const marks[] = {"password", "secret", ".key", "jaas", "token", "oauthbearer.config"};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        if (strcasestr(name, marks[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* postgresql://user:password@host/db?password=… : the part between the first colon behind the scheme and the last
 * @ before the path, and the values of parameters that hold a password. */
static void mask_uri(const char *uri, struct buf *out)
{
    const char *start = strstr(uri, "://") + 3;
    size_t authority_size = strcspn(start, "/?");
    const char *at = memrchr(start, '@', authority_size);
    /* A password may hold an unescaped slash; what is before the last @ of the text is then not a host. */
    if (at == NULL && strchr(start, '@') != NULL && strcspn(start, "?") > (size_t)(strchr(start, '@') - start)) {
        at = strrchr(start, '@');
    }
    const char *colon = at == NULL ? NULL : memchr(start, ':', (size_t)(at - start));
    const char *rest = uri;
    if (colon != NULL) {
        buf_append(out, uri, (size_t)(colon + 1 - uri));
        buf_text(out, CONFIG_MASK);
        rest = at;
    }
    while (*rest != '\0') {
        const char *found = strcasestr(rest, "password=");
        if (found == NULL) {
            buf_text(out, rest);
            return;
        }
        const char *value = found + strlen("password=");
        buf_append(out, rest, (size_t)(value - rest));
        buf_text(out, CONFIG_MASK);
        rest = value + strcspn(value, "&");
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

static void mask_keywords(const char *text, struct buf *out)
{
    while (*text != '\0') {
        size_t blank_size = strspn(text, " \t\r\n");
        const char *name = text + blank_size;
        size_t name_size = strcspn(name, " =");
        const char *value = name + name_size;
        value += strspn(value, " ");
        value += *value == '=';
        value += strspn(value, " ");
        const char *end = value_end(value);
        bool is_secret = name_size >= 8 && strncasecmp(name + name_size - 8, "password", 8) == 0;
        buf_append(out, text, (size_t)((is_secret ? value : end) - text));
        if (is_secret) {
            buf_text(out, CONFIG_MASK);
        }
        text = end;
    }
}

char *config_mask_conninfo(const char *conninfo)
{
    struct buf out;
    buf_init(&out, strlen(conninfo) * 4 + 16);
    if (strncmp(conninfo, "postgres://", 11) == 0 || strncmp(conninfo, "postgresql://", 13) == 0) {
        mask_uri(conninfo, &out);
    } else {
        mask_keywords(conninfo, &out);
    }
    char *masked = buf_take(&out, NULL);
    assert(masked != NULL);
    return masked;
}
