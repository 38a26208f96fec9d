/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys and fingerprints. A fingerprint is SHA-256 over the named hashes of its
 * components; of these the first bytes are kept beside it, for messages. Stored
 * fingerprints hang on every byte of this, so it must never change.
 */
#include "producer_key.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "digest/sha256.h"
#include "http/http_query.h"
#include "http/http_server.h"
#include "wire/wire_canonical.h"

#define CANONICAL_SIZE_MAX ((size_t)512 * 1024 * 1024)
#define COMPONENT_COUNT_MAX 16
#define COMPONENT_NAME_SIZE 32
#define SHORT_HASH_SIZE 16 /* Digits that are kept of a component's hash. */
#define MEDIA_TYPE_RAW "application/octet-stream"

struct component {
    char name[COMPONENT_NAME_SIZE];
    unsigned char hash[SHA256_SIZE];
};

struct components {
    struct component items[COMPONENT_COUNT_MAX];
    size_t count;
    bool lacks_memory; /* A hash is of less than it should be. */
};

/* ---- form -------------------------------------------------------------------------------------------------------- */

static bool refuse(struct err *err, const char *why)
{
    return err_set(err, ERR_PERMANENT, "idempotency_key_invalid", "%s", why);
}

/* Bytes of a key. In quotation marks anything printable; bare, what cannot be taken for a list or a parameter. */
static bool is_key_byte(char c, bool is_quoted)
{
    return is_quoted ? c >= ' ' && c <= '~' : c > ' ' && c <= '~' && strchr("\",;\\", c) == NULL;
}

bool producer_key_parse(const char *value, char ret_text[PRODUCER_KEY_SIZE], struct err *err)
{
    bool is_quoted = *value == '"';
    const char *at = value + is_quoted;
    size_t size = 0;
    for (; *at != '\0' && !(is_quoted && *at == '"'); at++) {
        if (is_quoted && *at == '\\' && (at[1] == '"' || at[1] == '\\')) {
            at++;
        } else if (*at == '\\' || !is_key_byte(*at, is_quoted)) {
            return refuse(err, "a key is visible ASCII; quotation marks, commas, semicolons and backslashes only in a "
                               "string in quotation marks");
        }
        if (size == PRODUCER_KEY_SIZE - 1) {
            return refuse(err, "a key has at most 255 bytes");
        }
        ret_text[size++] = *at;
    }
    if (is_quoted && (at[0] != '"' || at[1] != '\0')) {
        return refuse(err, "the closing quotation mark must be there and last");
    }
    ret_text[size] = '\0';
    return size > 0 || refuse(err, "the key is empty");
}

bool producer_key_from_path(const char *piece, char ret_text[PRODUCER_KEY_SIZE], struct err *err)
{
    size_t size = 0;
    for (const char *at = piece; *at != '\0'; at++) {
        int byte = (unsigned char)*at;
        if (*at == '%') {
            int high = text_hex_value(at[1]);
            int low = high < 0 ? -1 : text_hex_value(at[2]);
            byte = low < 0 ? 0 : high * 16 + low;
            at += low < 0 ? 0 : 2;
        }
        if (byte < ' ' || byte > '~' || size == PRODUCER_KEY_SIZE - 1) {
            return refuse(err, "a key has 1 to 255 printable ASCII bytes; others than letters, digits and . _ ~ - are "
                               "written as percent escapes");
        }
        ret_text[size++] = (char)byte;
    }
    ret_text[size] = '\0';
    return size > 0 || refuse(err, "the key is empty");
}

/* ---- fingerprint ------------------------------------------------------------------------------------------------- */

static struct component *add_component(struct components *components, const char *prefix, const char *name)
{
    assert(components->count < COMPONENT_COUNT_MAX);
    struct component *component = &components->items[components->count++];
    bool is_whole = text_format(component->name, sizeof component->name, "%s%s", prefix, name);
    assert(is_whole); /* Members with other names than the routes' own were refused. */
    return component;
}

static void add_text(struct components *components, const char *name, const char *text)
{
    struct component *component = add_component(components, "", name);
    sha256(text, strlen(text), component->hash);
}

static int compare_components(const void *left, const void *right)
{
    return strcmp(((const struct component *)left)->name, ((const struct component *)right)->name);
}

/* Over name and hash of each; names end in a NUL and hashes have one size, so no two lists give the same bytes. */
static void hash_components(const struct component *items, size_t count, unsigned char ret_hash[SHA256_SIZE])
{
    struct sha256_state *state = sha256_begin();
    for (size_t i = 0; i < count; i++) {
        sha256_add(state, items[i].name, strlen(items[i].name) + 1);
        sha256_add(state, items[i].hash, SHA256_SIZE);
    }
    sha256_end(&state, ret_hash);
}

static int compare_params(const void *left, const void *right)
{
    return strcmp(((const struct http_query_param *)left)->name, ((const struct http_query_param *)right)->name);
}

/* Decoded and sorted by name; the routes have refused what is no good. */
static void add_query(struct components *components, const struct http_request *request)
{
    static const char *const allowed[] = {"name", "document_id", NULL};
    struct http_query query;
    struct err err = ERR_INIT;
    struct buf text;
    buf_init(&text, 3 * (size_t)HTTP_QUERY_SIZE_MAX);
    if (http_query_parse(request->query, allowed, &query, &err)) {
        qsort(query.params, query.count, sizeof *query.params, compare_params);
        for (size_t i = 0; i < query.count; i++) {
            buf_format(&text, "%s=%zu:%s&", query.params[i].name, strlen(query.params[i].value), query.params[i].value);
        }
    }
    add_text(components, "query", text.data);
    components->lacks_memory = components->lacks_memory || text.has_overflowed;
    buf_done(&text);
}

static void add_member(struct components *members, const struct wire_value *name, const struct wire_value *value)
{
    struct buf plain;
    struct buf canonical;
    buf_init(&plain, name->size);
    buf_init(&canonical, CANONICAL_SIZE_MAX);
    wire_json_text(name, &plain);
    wire_canonical_append(value, &canonical);
    members->lacks_memory = members->lacks_memory || plain.has_overflowed || canonical.has_overflowed;
    sha256(canonical.data, canonical.size, add_component(members, "/", plain.data)->hash);
    buf_done(&canonical);
    buf_done(&plain);
}

/* The members by their canonical forms, so that their order and spelling say nothing. */
static void add_body(struct components *components, struct components *members, const struct http_request *request,
                     const struct wire_value *body)
{
    struct component *whole = add_component(components, "", "body");
    if (body == NULL) {
        sha256(request->body, request->body_size, whole->hash);
        return;
    }
    struct wire_value name;
    struct wire_value value;
    struct wire_iterator iterator = wire_json_begin(body);
    while (wire_json_next(&iterator, &name, &value)) {
        add_member(members, &name, &value);
    }
    qsort(members->items, members->count, sizeof *members->items, compare_components);
    hash_components(members->items, members->count, whole->hash);
}

static void write_components(struct buf *text, const struct components *components)
{
    for (size_t i = 0; i < components->count; i++) {
        char hash[SHA256_TEXT_SIZE];
        sha256_to_text(components->items[i].hash, hash);
        buf_format(text, "%s%s:%.*s", text->size == 0 ? "" : " ", components->items[i].name, SHORT_HASH_SIZE, hash);
    }
}

bool producer_key_fingerprint(struct producer_key *key, const struct http_request *request,
                              const struct wire_value *body, struct err *err)
{
    struct components components = {.count = 0};
    struct components members = {.count = 0};
    const char *media_type = http_request_header(request, "content-type", NULL);
    media_type = body != NULL ? "application/json" : media_type == NULL ? MEDIA_TYPE_RAW : media_type;
    add_text(&components, "method", request->method);
    add_text(&components, "path", request->path);
    add_query(&components, request);
    add_text(&components, "media_type", media_type);
    add_body(&components, &members, request, body);
    hash_components(components.items, components.count, key->fingerprint);
    struct buf text;
    buf_init(&text, PRODUCER_KEY_COMPONENTS_SIZE - 1);
    write_components(&text, &components);
    write_components(&text, &members);
    bool is_whole = !text.has_overflowed && !components.lacks_memory && !members.lacks_memory;
    if (is_whole) {
        memcpy(key->components, text.data, text.size + 1);
    }
    buf_done(&text);
    return is_whole || err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for the call");
}

/* ---- differences ------------------------------------------------------------------------------------------------- */

/* "name:hash" at the beginning of text, with its size. */
static size_t component_size(const char *text)
{
    return strcspn(text, " ");
}

static const char *next_component(const char *text)
{
    text += component_size(text);
    return *text == ' ' ? text + 1 : text;
}

/* The component of the same name in others, or NULL. */
static const char *find_component(const char *others, const char *component)
{
    size_t name_size = strcspn(component, ":") + 1;
    for (; *others != '\0'; others = next_component(others)) {
        if (strncmp(others, component, name_size) == 0) {
            return others;
        }
    }
    return NULL;
}

static bool is_in(const char *others, const char *component)
{
    const char *other = find_component(others, component);
    size_t size = component_size(component);
    return other != NULL && component_size(other) == size && strncmp(other, component, size) == 0;
}

static void append_name(struct buf *buf, const char *component, size_t *count)
{
    buf_text(buf, (*count)++ == 0 ? "" : ",");
    buf_json_string(buf, component, strcspn(component, ":"));
}

/* Names of components whose hash is another in others or that are not there, and then those that only others has. */
static void append_names(struct buf *buf, const char *components, const char *others, bool is_member)
{
    size_t count = 0;
    for (const char *at = components; *at != '\0'; at = next_component(at)) {
        if ((*at == '/') == is_member && !is_in(others, at)) {
            append_name(buf, at, &count);
        }
    }
    for (const char *at = others; *at != '\0'; at = next_component(at)) {
        if ((*at == '/') == is_member && find_component(components, at) == NULL) {
            append_name(buf, at, &count);
        }
    }
}

void producer_key_write_differences(struct buf *buf, const char *components, const char *others)
{
    buf_text(buf, ",\"differs\":[");
    append_names(buf, components, others, false);
    buf_text(buf, "],\"members\":[");
    append_names(buf, components, others, true);
    buf_text(buf, "]");
}
