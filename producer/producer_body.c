/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the bodies of calls that write. data stays the caller's bytes: it is
 * checked and hashed in its canonical form, never written anew.
 */
#include "producer_body.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/text.h"
#include "digest/sha256.h"
#include "domain/identity.h"
#include "http/http_query.h"
#include "http/http_server.h"
#include "wire/wire_base64.h"
#include "wire/wire_body.h"
#include "wire/wire_canonical.h"
#include "wire/wire_json.h"

#define MEDIA_TYPE_DEFAULT "application/octet-stream"
#define CANONICAL_SIZE_MAX ((size_t)512 * 1024 * 1024)

/* ---- media types ------------------------------------------------------------------------------------------------- */

static bool is_token_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static const char *skip_token(const char *text)
{
    while (is_token_byte(*text)) {
        text++;
    }
    return text;
}

/* type/subtype, then anything printable after a semicolon. */
static bool media_type_is_valid(const char *text)
{
    const char *slash = skip_token(text);
    if (slash == text || *slash != '/') {
        return false;
    }
    const char *end = skip_token(slash + 1);
    if (end == slash + 1) {
        return false;
    }
    const char *rest = end + strspn(end, " ");
    if (*rest != '\0' && *rest != ';') {
        return false;
    }
    for (; *rest != '\0'; rest++) {
        if (*rest < ' ' || *rest > '~') {
            return false;
        }
    }
    return strlen(text) < PRODUCER_NAME_SIZE;
}

static bool is_json_type(const char *text)
{
    const size_t size = strlen("application/json");
    if (strncasecmp(text, "application/json", size) != 0) {
        return false;
    }
    text += size;
    text += strspn(text, " \t");
    if (*text == '\0') {
        return true;
    }
    if (*text++ != ';') {
        return false;
    }
    text += strspn(text, " \t");
    return strcasecmp(text, "charset=utf-8") == 0 || strcasecmp(text, "charset=\"utf-8\"") == 0;
}

static bool is_not_encoded(const struct http_request *request, struct err *err)
{
    const char *encoding = http_request_header(request, "content-encoding", NULL);
    if (encoding != NULL && strcasecmp(encoding, "identity") != 0) {
        return err_set(err, ERR_PERMANENT, "media_type_unsupported", "Content-Encoding is not taken; send it as it is");
    }
    return true;
}

bool producer_body_is_json(const struct http_request *request, struct err *err)
{
    size_t count = 0;
    const char *type = http_request_header(request, "content-type", &count);
    if (count != 1 || !is_json_type(type)) {
        return err_set(err, ERR_PERMANENT, "media_type_unsupported",
                       "Content-Type must be application/json, in UTF-8, and stand on one line");
    }
    return is_not_encoded(request, err);
}

static bool read_json(const struct http_request *request, struct wire_value *ret_value, struct err *err)
{
    return producer_body_is_json(request, err) && wire_json_check(request->body, request->body_size, ret_value, err);
}

/* ---- type and data ----------------------------------------------------------------------------------------------- */

static bool refuse_without_memory(struct err *err)
{
    return err_set(err, ERR_TRANSIENT, "too_busy", "no memory for the call");
}

/* A string's text. False with body_invalid when it is longer than the place, empty, or holds a control character. */
static bool copy_text(const struct wire_value *value, const char *pointer, char *ret_text, size_t size, struct err *err)
{
    struct buf text;
    buf_init(&text, value->size);
    wire_json_text(value, &text);
    if (text.has_no_memory) {
        buf_done(&text);
        return refuse_without_memory(err);
    }
    bool is_good = text.size > 0 && text.size < size;
    for (size_t i = 0; i < text.size; i++) {
        is_good = is_good && (unsigned char)text.data[i] >= 0x20 && text.data[i] != 0x7f;
    }
    if (is_good) {
        memcpy(ret_text, text.data, text.size + 1);
    } else {
        err_set(err, ERR_PERMANENT, "body_invalid", "%s must have 1 to %zu bytes and no control characters", pointer,
                size - 1);
    }
    buf_done(&text);
    return is_good;
}

/* Type and canonical data, so that two ways to write the same are the same. */
static bool make_fingerprint(struct producer_item *item, const struct wire_value *data, struct err *err)
{
    struct buf canonical;
    buf_init(&canonical, CANONICAL_SIZE_MAX);
    buf_format(&canonical, "%zu:%s", strlen(item->type), item->type);
    if (item->data.data != NULL) {
        wire_canonical_append(data, &canonical);
    }
    bool is_whole = !canonical.has_overflowed;
    if (is_whole) {
        sha256(canonical.data, canonical.size, item->fingerprint);
    }
    buf_done(&canonical);
    return is_whole || refuse_without_memory(err);
}

static bool take_type_and_data(struct producer_item *item, const struct wire_value *type, const struct wire_value *data,
                               const struct producer_settings *settings, struct err *err)
{
    char text[PRODUCER_NAME_SIZE];
    if (!copy_text(type, "/type", text, sizeof text, err)) {
        return false;
    }
    if (!identity_type_is_valid(text, strlen(text))) {
        return err_set(err, ERR_PERMANENT, "body_invalid",
                       "/type must be visible ASCII without blanks, quotes and backslashes");
    }
    if (data->kind == WIRE_OBJECT && data->size > settings->data_bytes_max) {
        return err_set(err, ERR_PERMANENT, "data_too_large", "data has %zu bytes, the limit is %zu", data->size,
                       settings->data_bytes_max);
    }
    item->type = strdup(text);
    if (item->type == NULL) {
        return refuse_without_memory(err);
    }
    if (data->kind == WIRE_OBJECT) {
        item->data = (struct bytes){data->text, data->size};
    }
    return make_fingerprint(item, data, err);
}

bool producer_body_create(const struct http_request *request, const struct producer_settings *settings,
                          struct producer_item *item, struct err *err)
{
    struct wire_value type;
    struct wire_value data;
    const struct wire_member members[] = {
        {.name = "type", .kinds = WIRE_STRING, .is_required = true, .ret_value = &type},
        {.name = "data", .kinds = WIRE_OBJECT | WIRE_NULL, .ret_value = &data},
    };
    return read_json(request, &item->body, err) && wire_body_members(&item->body, "", members, 2, err) &&
           take_type_and_data(item, &type, &data, settings, err);
}

/* ---- documents --------------------------------------------------------------------------------------------------- */

static struct producer_document *add_document(struct producer_item *item)
{
    struct producer_document *document = &item->documents[item->document_count++];
    *document = (struct producer_document){0}; /* A repeated document may have stood here and been dropped. */
    buf_init(&document->decoded, 0);
    return document;
}

static bool reserve_documents(struct producer_item *item, size_t count, struct err *err)
{
    item->documents = calloc(count + 1, sizeof *item->documents);
    return item->documents != NULL || refuse_without_memory(err);
}

/* Hashes the content, and derives the id where none was given. */
static bool finish_document(struct producer_document *document, struct err *err)
{
    sha256(document->content.data, document->content.size, document->sha256);
    if (document->document_id[0] != '\0') {
        return true;
    }
    char hash_text[SHA256_TEXT_SIZE];
    unsigned char hash[SHA256_SIZE];
    struct buf text;
    buf_init(&text, 4 * PRODUCER_NAME_SIZE);
    sha256_to_text(document->sha256, hash_text);
    identity_document_text(document->name, document->media_type, hash_text, &text);
    bool is_whole = !text.has_overflowed;
    sha256(text.data, text.size, hash);
    buf_done(&text);
    if (!is_whole) {
        return refuse_without_memory(err);
    }
    sha256_to_text(hash, hash_text);
    memcpy(document->document_id, hash_text, IDENTITY_DERIVED_SIZE);
    document->document_id[IDENTITY_DERIVED_SIZE] = '\0';
    return true;
}

static bool check_document(const struct producer_document *document, const struct producer_settings *settings,
                           struct err *err)
{
    const char *id = document->document_id;
    if (id[0] != '\0' && !identity_document_id_is_valid(id, strlen(id))) {
        return err_set(err, ERR_PERMANENT, "body_invalid", "document_id must be letters, digits and . _ ~ - only");
    }
    if (!media_type_is_valid(document->media_type)) {
        return err_set(err, ERR_PERMANENT, "body_invalid", "media_type must be of the form type/subtype");
    }
    if (document->content.size > settings->document_bytes_max) {
        return err_set(err, ERR_PERMANENT, "document_too_large", "the document has %zu bytes, the limit is %zu",
                       document->content.size, settings->document_bytes_max);
    }
    return true;
}

/* content is base64 inside a JSON string. */
static bool decode_content(const struct wire_value *content, size_t size_max, struct producer_document *document,
                           struct err *err)
{
    struct buf text;
    buf_init(&text, content->size);
    wire_json_text(content, &text);
    buf_done(&document->decoded);
    buf_init(&document->decoded, size_max);
    struct err why = ERR_INIT;
    bool is_good = buf_check(&text, &why) && wire_base64_decode(text.data, text.size, &document->decoded, &why);
    buf_done(&text);
    if (!is_good && why.kind == ERR_TRANSIENT) {
        return refuse_without_memory(err);
    }
    if (!is_good && strcmp(why.code, "too_large") == 0) {
        return err_set(err, ERR_PERMANENT, "document_too_large", "the document is over the limit of %zu bytes",
                       size_max);
    }
    if (!is_good) {
        return err_set(err, ERR_PERMANENT, "body_invalid", "/content: %s", why.text);
    }
    document->content = (struct bytes){document->decoded.data, document->decoded.size};
    return true;
}

static bool read_json_document(const struct wire_value *value, const char *pointer,
                               const struct producer_settings *settings, struct producer_item *item, struct err *err)
{
    struct wire_value id;
    struct wire_value name;
    struct wire_value media_type;
    struct wire_value content;
    const struct wire_member members[] = {
        {.name = "document_id", .kinds = WIRE_STRING, .ret_value = &id},
        {.name = "name", .kinds = WIRE_STRING, .is_required = true, .ret_value = &name},
        {.name = "media_type", .kinds = WIRE_STRING, .ret_value = &media_type},
        {.name = "content", .kinds = WIRE_STRING, .is_required = true, .ret_value = &content},
    };
    struct producer_document *document = add_document(item);
    bool is_fit = text_copy(document->media_type, sizeof document->media_type, MEDIA_TYPE_DEFAULT);
    if (!is_fit || !wire_body_members(value, pointer, members, 4, err) ||
        !copy_text(&name, "name", document->name, sizeof document->name, err)) {
        return false;
    }
    if (id.kind == WIRE_STRING && !copy_text(&id, "document_id", document->document_id, PRODUCER_NAME_SIZE, err)) {
        return false;
    }
    if (media_type.kind == WIRE_STRING &&
        !copy_text(&media_type, "media_type", document->media_type, PRODUCER_NAME_SIZE, err)) {
        return false;
    }
    if (!decode_content(&content, settings->document_bytes_max, document, err) ||
        !check_document(document, settings, err)) {
        return false;
    }
    return finish_document(document, err);
}

static bool read_raw_document(const struct http_request *request, const struct http_query *query,
                              const struct producer_settings *settings, struct producer_item *item, struct err *err)
{
    struct producer_document *document = add_document(item);
    size_t count = 0;
    const char *type = http_request_header(request, "content-type", &count);
    const char *name = http_query_value(query, "name");
    const char *id = http_query_value(query, "document_id");
    type = type == NULL ? MEDIA_TYPE_DEFAULT : type;
    if (!is_not_encoded(request, err)) {
        return false;
    }
    if (count > 1 || !media_type_is_valid(type) || !text_copy(document->media_type, PRODUCER_NAME_SIZE, type)) {
        return err_set(err, ERR_PERMANENT, "media_type_unsupported", "Content-Type must be of the form type/subtype");
    }
    if (name[0] == '\0' || !text_copy(document->name, PRODUCER_NAME_SIZE, name)) {
        return err_set(err, ERR_PERMANENT, "query_invalid", "name must have 1 to %d bytes", PRODUCER_NAME_SIZE - 1);
    }
    if (id != NULL && !identity_document_id_is_valid(id, strlen(id))) {
        return err_set(err, ERR_PERMANENT, "query_invalid", "document_id must be letters, digits and . _ ~ - only");
    }
    text_copy(document->document_id, PRODUCER_NAME_SIZE, id == NULL ? "" : id);
    document->content = (struct bytes){request->body, request->body_size};
    if (!check_document(document, settings, err)) {
        return false;
    }
    return finish_document(document, err);
}

bool producer_body_document(const struct http_request *request, const struct producer_settings *settings,
                            struct producer_item *item, struct err *err)
{
    static const char *const allowed[] = {"name", "document_id", NULL};
    struct http_query query;
    if (!http_query_parse(request->query, allowed, &query, err) || !reserve_documents(item, 1, err)) {
        return false;
    }
    if (http_query_value(&query, "name") != NULL) {
        return read_raw_document(request, &query, settings, item, err);
    }
    if (query.count > 0) {
        return err_set(err, ERR_PERMANENT, "query_invalid", "document_id stands in the body unless there is a name");
    }
    return read_json(request, &item->body, err) && read_json_document(&item->body, "", settings, item, err);
}

/* ---- all in one -------------------------------------------------------------------------------------------------- */

static size_t count_items(const struct wire_value *array)
{
    size_t count = 0;
    struct wire_value value;
    struct wire_iterator iterator = wire_json_begin(array);
    while (wire_json_next(&iterator, NULL, &value)) {
        count++;
    }
    return count;
}

/* Whether an earlier document of the call has the same id; *ret_is_same: and is the same altogether. */
static bool is_repeated(const struct producer_item *item, bool *ret_is_same)
{
    const struct producer_document *last = &item->documents[item->document_count - 1];
    for (size_t i = 0; i + 1 < item->document_count; i++) {
        const struct producer_document *other = &item->documents[i];
        if (strcmp(other->document_id, last->document_id) == 0) {
            *ret_is_same = memcmp(other->sha256, last->sha256, DB_SHA256_SIZE) == 0 &&
                           strcmp(other->name, last->name) == 0 && strcmp(other->media_type, last->media_type) == 0;
            return true;
        }
    }
    return false;
}

static bool take_documents(struct producer_item *item, const struct wire_value *array,
                           const struct producer_settings *settings, struct err *err)
{
    size_t count = count_items(array);
    if (count > (size_t)settings->document_count_max) {
        return err_set(err, ERR_PERMANENT, "documents_too_many", "%zu documents, the limit is %lld", count,
                       (long long)settings->document_count_max);
    }
    if (!reserve_documents(item, count, err)) {
        return false;
    }
    struct wire_value value;
    struct wire_iterator iterator = wire_json_begin(array);
    for (size_t i = 0; wire_json_next(&iterator, NULL, &value); i++) {
        char pointer[40];
        bool is_same = false;
        if (!text_format(pointer, sizeof pointer, "/documents/%zu", i) ||
            !read_json_document(&value, pointer, settings, item, err)) {
            return false;
        }
        if (!is_repeated(item, &is_same)) {
            continue;
        }
        if (!is_same) {
            return err_set(err, ERR_PERMANENT, "document_conflict", "%s has the id of another document here", pointer);
        }
        buf_done(&item->documents[--item->document_count].decoded);
    }
    return true;
}

bool producer_body_submission(const struct http_request *request, const struct producer_settings *settings,
                              struct producer_item *item, struct err *err)
{
    struct wire_value id;
    struct wire_value type;
    struct wire_value data;
    struct wire_value documents;
    const struct wire_member members[] = {
        {.name = "id", .kinds = WIRE_STRING, .ret_value = &id},
        {.name = "type", .kinds = WIRE_STRING, .is_required = true, .ret_value = &type},
        {.name = "data", .kinds = WIRE_OBJECT | WIRE_NULL, .ret_value = &data},
        {.name = "documents", .kinds = WIRE_ARRAY | WIRE_NULL, .ret_value = &documents},
    };
    if (!read_json(request, &item->body, err) || !wire_body_members(&item->body, "", members, 4, err) ||
        !take_type_and_data(item, &type, &data, settings, err)) {
        return false;
    }
    item->is_id_minted = id.kind == WIRE_ABSENT;
    if (item->is_id_minted) {
        item->request_id = uuid_v7_new(clock_realtime_ms());
    } else if (id.size < 2 || !uuid_from_text(id.text + 1, id.size - 2, &item->request_id)) {
        return err_set(err, ERR_PERMANENT, "request_id_invalid", "/id must be a UUID of 36 characters in lower case");
    }
    return documents.kind != WIRE_ARRAY || take_documents(item, &documents, settings, err);
}

static bool read_empty(const struct http_request *request, struct wire_value *ret_body, struct err *err)
{
    static const char nothing[] = "{}";
    struct wire_value value;
    if (request->body_size == 0) {
        *ret_body = (struct wire_value){.kind = WIRE_OBJECT, .text = nothing, .size = sizeof nothing - 1};
        return true;
    }
    if (!read_json(request, ret_body, err)) {
        return false;
    }
    struct wire_iterator iterator = wire_json_begin(ret_body);
    if (ret_body->kind != WIRE_OBJECT || wire_json_next(&iterator, NULL, &value)) {
        return err_set(err, ERR_PERMANENT, "body_invalid", "this call takes no body, or an empty object");
    }
    return true;
}

bool producer_body_submit(const struct http_request *request, const struct producer_settings *settings,
                          struct producer_item *item, struct err *err)
{
    (void)settings;
    return read_empty(request, &item->body, err);
}

bool producer_body_is_empty(const struct http_request *request, struct err *err)
{
    struct wire_value body;
    return read_empty(request, &body, err);
}

void producer_body_traceparent(const struct http_request *request, char ret_text[PRODUCER_TRACEPARENT_SIZE])
{
    static const char form[] = "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
    size_t count = 0;
    const char *text = http_request_header(request, "traceparent", &count);
    ret_text[0] = '\0';
    if (count != 1 || strlen(text) != sizeof form - 1) {
        return;
    }
    for (size_t i = 0; i < sizeof form - 1; i++) {
        bool is_hex = strchr("0123456789abcdef", text[i]) != NULL;
        if (form[i] == 'x' ? !is_hex : text[i] != form[i]) {
            return;
        }
    }
    memcpy(ret_text, text, sizeof form);
}
