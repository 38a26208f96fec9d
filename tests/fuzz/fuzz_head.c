/* SPDX-License-Identifier: Apache-2.0
 *
 * A request's head, its target and its query. The pieces in which a head
 * arrives make no difference; what is accepted holds no byte that its place does not
 * allow, and llhttp reads the same framing; an accepted query means the same
 * when it is written anew.
 *
 * Input: the bytes of a connection.
 */
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fuzz_kit.h"
#include "http/http_query.h"
#include "http_private.h"
#include "producer_routes.h"

#define QUERY_ESCAPED_SIZE_MAX (3 * HTTP_QUERY_SIZE_MAX)

static enum http_scan scan(const char *bytes, size_t size, size_t piece, size_t *ret_size)
{
    enum http_scan found = HTTP_SCAN_MORE;
    size_t offset = 0;
    for (size_t seen = 0; seen < size && found == HTTP_SCAN_MORE;) {
        seen = size - seen < piece ? size : seen + piece;
        found = http_head_scan(bytes, seen, &offset, ret_size);
    }
    return found;
}

struct framing {
    bool is_chunked;
    uint64_t length;
};

static int on_headers_complete(llhttp_t *parser)
{
    struct framing *framing = parser->data;
    framing->is_chunked = (parser->flags & F_CHUNKED) != 0;
    framing->length = framing->is_chunked ? 0 : parser->content_length;
    return HPE_PAUSED;
}

static bool llhttp_accepts(const char *bytes, size_t size, struct framing *framing)
{
    static const llhttp_settings_t settings = {.on_headers_complete = on_headers_complete};
    llhttp_t parser;
    llhttp_init(&parser, HTTP_REQUEST, &settings);
    parser.data = framing;
    return llhttp_execute(&parser, bytes, size) == HPE_PAUSED;
}

static void check_headers(const struct http_head *head)
{
    for (size_t i = 0; i < head->header_count; i++) {
        const char *name = head->headers[i].name;
        const char *value = head->headers[i].value;
        size_t size = strlen(value);
        assert(name[0] != '\0' && strpbrk(name, " \t\r\n:ABCDEFGHIJKLMNOPQRSTUVWXYZ") == NULL);
        for (const char *at = value; *at != '\0'; at++) {
            assert(*at == '\t' || !iscntrl((unsigned char)*at));
        }
        assert(size == 0 || (!isblank((unsigned char)value[0]) && !isblank((unsigned char)value[size - 1])));
    }
}

static void append_escaped(struct buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        buf_format(out, "%%%02x", (unsigned char)*text);
    }
}

static void check_query(const char *text)
{
    static const char *const allowed[] = {"name", "document_id", "status", "cursor", "limit", "consumer", NULL};
    static struct http_query query;
    static struct http_query again;
    struct err err = ERR_INIT;
    if (!http_query_parse(text, allowed, &query, &err)) {
        fuzz_check_refusal(&err);
        return;
    }
    struct buf written;
    buf_init(&written, QUERY_ESCAPED_SIZE_MAX);
    for (size_t i = 0; i < query.count; i++) {
        assert(fuzz_is_plain(query.params[i].name) && fuzz_is_plain(query.params[i].value));
        buf_text(&written, i == 0 ? "" : "&");
        append_escaped(&written, query.params[i].name);
        buf_char(&written, '=');
        append_escaped(&written, query.params[i].value);
    }
    if (written.size < HTTP_QUERY_SIZE_MAX) {
        bool is_good = http_query_parse(written.data, allowed, &again, &err);
        assert(is_good && again.count == query.count);
        for (size_t i = 0; i < query.count; i++) {
            const char *value = http_query_value(&again, query.params[i].name);
            assert(value != NULL && strcmp(value, query.params[i].value) == 0);
        }
    }
    buf_done(&written);
}

static void check_target(struct http_head *head)
{
    static const struct producer_settings settings = {.data_bytes_max = 1000};
    size_t route_count = 0;
    const struct http_route *routes = producer_routes(&settings, &route_count);
    const char *params[HTTP_PARAM_COUNT_MAX] = {NULL};
    char allow[HTTP_ALLOW_SIZE];
    size_t index = HTTP_ROUTE_NONE;
    assert(head->path[0] == '/' && strpbrk(head->path, "? #") == NULL && fuzz_is_plain(head->path));
    size_t path_size = strlen(head->path);
    char *path = strdup(head->path);
    assert(path != NULL);
    enum http_match match = http_route_find(routes, route_count, head->method, path, &index, params, allow);
    assert((match == HTTP_MATCH_NO_METHOD) == (allow[0] != '\0') || match == HTTP_MATCH_FOUND);
    for (size_t i = 0; match == HTTP_MATCH_FOUND && i < HTTP_PARAM_COUNT_MAX && params[i] != NULL; i++) {
        assert(params[i] > path && params[i] < path + path_size);
        assert(params[i][0] != '\0' && strchr(params[i], '/') == NULL);
    }
    free(path);
    check_query(head->query);
}

/* An authority in the target is the one that Host names. */
static void check_authority(const struct http_head *head)
{
    size_t host_count = 0;
    for (size_t i = 0; i < head->header_count; i++) {
        if (strcmp(head->headers[i].name, "host") == 0) {
            host_count++;
            assert(head->authority == NULL ||
                   strncasecmp(head->headers[i].value, head->authority, strlen(head->headers[i].value)) == 0);
        }
    }
    assert(host_count <= 1 && (host_count == 1 || (head->minor_version == 0 && head->authority == NULL)));
}

static void check_head(const char *bytes, size_t size)
{
    static struct http_head head;
    struct framing framing = {.length = 0};
    char *copy = malloc(size + 1);
    assert(copy != NULL);
    memcpy(copy, bytes, size);
    copy[size] = '\0';
    const char *wrong = http_head_parse(copy, size, &head);
    bool is_accepted = llhttp_accepts(bytes, size, &framing);
    if (wrong == NULL) {
        assert(head.method[0] != '\0' && head.minor_version >= 0 && head.minor_version <= 1);
        check_headers(&head);
        check_authority(&head);
        /* Where the two readings differ the server answers 400; that they do not is what keeps it from happening. */
        assert(!is_accepted || head.has_body == (framing.is_chunked || framing.length > 0));
        check_target(&head);
    } else {
        assert(wrong[0] != '\0');
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = fuzz_input_of(data, size);
    size_t bytes_size;
    size_t head_size = 0;
    size_t head_size_in_pieces = 0;
    char *bytes = fuzz_rest(&input, &bytes_size);
    enum http_scan found = scan(bytes, bytes_size, bytes_size, &head_size);
    for (size_t piece = 1; piece <= 3; piece++) {
        enum http_scan found_in_pieces = scan(bytes, bytes_size, piece, &head_size_in_pieces);
        assert(found == found_in_pieces && head_size == head_size_in_pieces);
    }
    if (found == HTTP_SCAN_COMPLETE) {
        assert(head_size >= 4 && head_size <= bytes_size && memcmp(bytes + head_size - 4, "\r\n\r\n", 4) == 0);
        check_head(bytes, head_size);
    }
    free(bytes);
    return 0;
}
