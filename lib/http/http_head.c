/* SPDX-License-Identifier: Apache-2.0
 *
 * Our own reading of a request's head. llhttp reads the same bytes and decides
 * the framing; a request is served only if both accept it. What llhttp lets
 * pass and this file refuses: a blank before a colon, folded lines, no Host or
 * two, bytes beyond ASCII in a target, codings before chunked, HTTP/0.9, an
 * authority in the target that is not the Host's, and doubled blanks.
 */
#include "http_private.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool is_token(unsigned char c)
{
    return isalnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_target(unsigned char c)
{
    return c > 0x20 && c < 0x7f && c != '#' && c != '"' && c != '<' && c != '>' && c != '\\' && c != '^' && c != '`' &&
           c != '{' && c != '|' && c != '}';
}

static bool is_host(unsigned char c)
{
    return isalnum(c) || (c != '\0' && strchr("-._~%!$&'()*+,;=:[]", c) != NULL);
}

static bool is_value(unsigned char c)
{
    return c == '\t' || (c >= 0x20 && c != 0x7f);
}

/* A byte that may follow `before` in a head. */
static bool is_possible(unsigned char before, unsigned char c)
{
    if (c == '\n' || before == '\r') {
        return c == '\n' && before == '\r';
    }
    return c == '\r' || is_value(c);
}

enum http_scan http_head_scan(const char *bytes, size_t size, size_t *offset, size_t *ret_size)
{
    for (size_t i = *offset; i < size; i++) {
        unsigned char before = i == 0 ? '\0' : (unsigned char)bytes[i - 1];
        if (!is_possible(before, (unsigned char)bytes[i])) {
            return HTTP_SCAN_BROKEN;
        }
        if (bytes[i] == '\n' && i >= 3 && bytes[i - 2] == '\n') {
            *ret_size = i + 1;
            return HTTP_SCAN_COMPLETE;
        }
    }
    *offset = size;
    return HTTP_SCAN_MORE;
}

/* The next line without its CR LF, terminated. The scan has seen that every line ends so. */
static char *next_line(char **cursor)
{
    char *line = *cursor;
    char *end = strstr(line, "\r\n");
    assert(end != NULL);
    *end = '\0';
    *cursor = end + 2;
    return line;
}

/* "http://host/path", which every server must take (RFC 9112, 3.2.2). Gives where the path or the query begins; NULL:
 * it is another form. https is what a proxy that ended TLS hands on. */
static char *skip_authority(char *target, struct http_head *head)
{
    size_t scheme_size = strncasecmp(target, "http://", 7) == 0 ? 7 : strncasecmp(target, "https://", 8) == 0 ? 8 : 0;
    if (scheme_size == 0) {
        return NULL;
    }
    head->authority = target + scheme_size;
    head->authority_size = strcspn(head->authority, "/?");
    return target + scheme_size + head->authority_size;
}

static const char *parse_target(char *target, struct http_head *head)
{
    for (const char *c = target; *c != '\0'; c++) {
        if (!is_target((unsigned char)*c)) {
            return "a byte in the target that must be percent-encoded";
        }
    }
    char *path = target[0] == '/' ? target : skip_authority(target, head);
    if (path == NULL) {
        return "the target must be a path that begins with a slash, or http:// with the Host and such a path";
    }
    head->path = path[0] == '/' ? path : "/";
    head->query = strchr(path, '?');
    if (head->query != NULL) {
        *head->query++ = '\0';
    }
    return NULL;
}

static const char *parse_request_line(char *line, struct http_head *head)
{
    head->method = line;
    char *blank = strchr(line, ' ');
    if (blank == NULL || blank == line) {
        return "the request line is not method, target and version";
    }
    *blank = '\0';
    for (const char *c = line; *c != '\0'; c++) {
        if (!is_token((unsigned char)*c)) {
            return "the method is no token";
        }
    }
    char *target = blank + 1;
    blank = strchr(target, ' ');
    if (blank == NULL) {
        return "the request line has no version";
    }
    *blank = '\0';
    if (strcmp(blank + 1, "HTTP/1.1") != 0 && strcmp(blank + 1, "HTTP/1.0") != 0) {
        return "the version is neither HTTP/1.1 nor HTTP/1.0";
    }
    head->minor_version = blank[8] - '0';
    return parse_target(target, head);
}

static void trim(char **value)
{
    while (**value == ' ' || **value == '\t') {
        (*value)++;
    }
    size_t size = strlen(*value);
    while (size > 0 && ((*value)[size - 1] == ' ' || (*value)[size - 1] == '\t')) {
        size--;
    }
    (*value)[size] = '\0';
}

static const char *parse_header(char *line, struct http_head *head)
{
    if (line[0] == ' ' || line[0] == '\t') {
        return "a folded header line";
    }
    char *colon = strchr(line, ':');
    if (colon == NULL || colon == line) {
        return "a header line without a name or a colon";
    }
    *colon = '\0';
    for (char *c = line; *c != '\0'; c++) {
        if (!is_token((unsigned char)*c)) {
            return "a header name that is no token";
        }
        *c = (char)tolower((unsigned char)*c);
    }
    if (head->header_count == HTTP_HEADER_COUNT_MAX) {
        head->has_too_many_headers = true;
        return "too many header lines";
    }
    char *value = colon + 1;
    trim(&value);
    head->headers[head->header_count++] = (struct http_header){.name = line, .value = value};
    return NULL;
}

static size_t count_of(const struct http_head *head, const char *name, const char **ret_value)
{
    size_t count = 0;
    for (size_t i = 0; i < head->header_count; i++) {
        if (strcmp(head->headers[i].name, name) == 0) {
            *ret_value = head->headers[i].value;
            count++;
        }
    }
    return count;
}

static const char *check_host(const struct http_head *head)
{
    const char *host = "";
    size_t count = count_of(head, "host", &host);
    if (count > 1 || (count == 0 && head->minor_version == 1)) {
        return count == 0 ? "no Host header" : "two Host headers";
    }
    for (const char *c = host; *c != '\0'; c++) {
        if (!is_host((unsigned char)*c)) {
            return "a byte in Host that no host has";
        }
    }
    /* Two names for one service would be two readings of one request, so the standard's "ignore Host" is not enough. */
    bool is_named_twice =
        head->authority != NULL && (head->authority_size == 0 || count == 0 || strlen(host) != head->authority_size ||
                                    strncasecmp(host, head->authority, head->authority_size) != 0);
    return is_named_twice ? "the target names another host than Host does" : NULL;
}

static const char *check_framing(struct http_head *head)
{
    const char *coding = "";
    const char *length = "";
    size_t coding_count = count_of(head, "transfer-encoding", &coding);
    size_t length_count = count_of(head, "content-length", &length);
    if (coding_count + length_count > 1) {
        return "more than one of Content-Length and Transfer-Encoding";
    }
    if (coding_count == 1 && (head->minor_version == 0 || strcasecmp(coding, "chunked") != 0)) {
        return "a Transfer-Encoding other than chunked, or in HTTP/1.0";
    }
    if (length_count == 1 && (length[0] == '\0' || strspn(length, "0123456789") != strlen(length))) {
        return "a Content-Length that is no number";
    }
    head->has_body = coding_count == 1 || (length_count == 1 && strspn(length, "0") != strlen(length));
    return NULL;
}

static const char *check_expect(struct http_head *head)
{
    const char *expect = "";
    size_t count = count_of(head, "expect", &expect);
    bool is_continue = count == 1 && strcasecmp(expect, "100-continue") == 0;
    head->has_other_expectation = count > 0 && !is_continue;
    head->expects_continue = is_continue && head->minor_version == 1;
    return NULL;
}

bool http_head_method_is_known(const char *method)
{
    static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(method, known[i]) == 0) {
            return true;
        }
    }
    return false;
}

const char *http_head_parse(char *bytes, size_t size, struct http_head *ret_head)
{
    assert(size >= 4 && memchr(bytes, '\0', size) == NULL && bytes[size] == '\0');
    memset(ret_head, 0, sizeof *ret_head);
    char *cursor = bytes;
    const char *wrong = parse_request_line(next_line(&cursor), ret_head);
    while (wrong == NULL && cursor < bytes + size) {
        char *line = next_line(&cursor);
        if (line[0] == '\0') {
            break;
        }
        wrong = parse_header(line, ret_head);
    }
    wrong = wrong != NULL ? wrong : check_host(ret_head);
    wrong = wrong != NULL ? wrong : check_framing(ret_head);
    return wrong != NULL ? wrong : check_expect(ret_head);
}
