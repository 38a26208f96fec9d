/* SPDX-License-Identifier: Apache-2.0
 *
 * The C client. Invariants: every try of a call carries the same bytes and the
 * same key; nothing is tried again that the API has refused for good.
 */
#include "client.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/backoff.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/rand.h"
#include "base/text.h"
#include "base/uuid.h"
#include "digest/sha256.h"
#include "wire/wire_json.h"

#define DEADLINE_MS 60000
#define TRY_MS 35000
#define BACKOFF_FIRST_MS 50
#define BACKOFF_MAX_MS 5000
#define BODY_SIZE_MAX ((size_t)128 * 1024 * 1024) /* More than the greatest document in base64. */

struct onceward_client {
    CURL *curl;
    char *url;
    char *authorization; /* The header's line; NULL: none. */
    long deadline_ms;
    long try_ms;
};

/* What one try brought, beside the answer. */
struct attempt {
    struct buf body;
    bool is_replayed;
    long retry_after_s; /* Negative: not said. */
};

static void start_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT); /* curl_easy_init fails where this did. */
}

struct onceward_client *onceward_client_new(const char *url, const char *token)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_curl);
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) {
        return NULL;
    }
    struct onceward_client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        return NULL;
    }
    client->deadline_ms = DEADLINE_MS;
    client->try_ms = TRY_MS;
    client->curl = curl_easy_init();
    client->url = strdup(url);
    if (token != NULL) {
        struct buf line;
        buf_init(&line, strlen(token) + 32);
        buf_format(&line, "Authorization: Bearer %s", token);
        client->authorization = buf_take(&line, NULL);
        buf_done(&line);
    }
    if (client->curl == NULL || client->url == NULL || (token != NULL && client->authorization == NULL)) {
        onceward_client_free(&client);
    }
    return client;
}

void onceward_client_free(struct onceward_client **clientp)
{
    struct onceward_client *client = *clientp;
    if (client == NULL) {
        return;
    }
    curl_easy_cleanup(client->curl);
    free(client->url);
    free(client->authorization);
    free(client);
    *clientp = NULL;
}

void onceward_client_set_patience(struct onceward_client *client, long deadline_ms, long try_ms)
{
    client->deadline_ms = deadline_ms;
    client->try_ms = try_ms;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

void onceward_key_new(char ret_key[ONCEWARD_KEY_SIZE])
{
    struct uuid uuid;
    rand_bytes(uuid.bytes, sizeof uuid.bytes);
    uuid.bytes[6] = (uint8_t)((uuid.bytes[6] & 0x0f) | 0x40); /* Version 4 (RFC 9562). */
    uuid.bytes[8] = (uint8_t)((uuid.bytes[8] & 0x3f) | 0x80);
    uuid_to_text(&uuid, ret_key);
}

static void add_part(struct sha256_state *state, const void *data, size_t size)
{
    char length[24];
    if (text_format(length, sizeof length, "%zu:", size)) {
        sha256_add(state, length, strlen(length));
    }
    sha256_add(state, data, size);
}

void onceward_key_of(const char *user, const char *operation, const void *payload, size_t payload_size,
                     char ret_key[ONCEWARD_KEY_SIZE])
{
    unsigned char hash[SHA256_SIZE];
    struct sha256_state *state = sha256_begin();
    add_part(state, user, strlen(user));
    add_part(state, operation, strlen(operation));
    add_part(state, payload, payload_size);
    sha256_end(&state, hash);
    sha256_to_text(hash, ret_key);
}

/* ---- one try ----------------------------------------------------------------------------------------------------- */

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
    struct attempt *attempt = context;
    buf_append(&attempt->body, data, size * count);
    return attempt->body.has_overflowed ? 0 : size * count; /* 0 ends the transfer with an error (curl). */
}

/* The value of the header line if it has this name, NULL otherwise. The line has no NUL. */
static const char *header_value(const char *line, size_t size, const char *name, char *value, size_t value_size)
{
    size_t name_size = strlen(name);
    if (size <= name_size || strncasecmp(line, name, name_size) != 0 || line[name_size] != ':') {
        return NULL;
    }
    size_t from = name_size + 1;
    while (from < size && (line[from] == ' ' || line[from] == '\t')) {
        from++;
    }
    while (size > from && strchr(" \t\r\n", line[size - 1]) != NULL) {
        size--;
    }
    if (size - from >= value_size) {
        return NULL;
    }
    memcpy(value, line + from, size - from);
    value[size - from] = '\0';
    return value;
}

static size_t take_header(char *line, size_t size, size_t count, void *context)
{
    struct attempt *attempt = context;
    char text[32];
    int64_t seconds = 0;
    const char *value = header_value(line, size * count, "Idempotent-Replayed", text, sizeof text);
    if (value != NULL) {
        attempt->is_replayed = strcmp(value, "true") == 0;
    }
    value = header_value(line, size * count, "Retry-After", text, sizeof text);
    if (value != NULL && text_to_int64(value, &seconds) && seconds >= 0 && seconds <= 86400) {
        attempt->retry_after_s = (long)seconds;
    }
    return size * count;
}

static bool add_header(struct curl_slist **headers, const char *name, const char *value)
{
    struct buf line;
    buf_init(&line, strlen(name) + strlen(value) + 3);
    buf_format(&line, "%s: %s", name, value);
    struct curl_slist *longer = line.has_overflowed ? NULL : curl_slist_append(*headers, line.data);
    buf_done(&line);
    if (longer == NULL) {
        return false;
    }
    *headers = longer;
    return true;
}

static struct curl_slist *make_headers(const struct onceward_client *client, const struct onceward_call *call)
{
    const char *type = call->content_type == NULL ? "application/json" : call->content_type;
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:"); /* 100-continue would cost a round trip. */
    bool is_good = headers != NULL && (call->body_size == 0 || add_header(&headers, "Content-Type", type)) &&
                   (call->key == NULL || add_header(&headers, "Idempotency-Key", call->key));
    if (is_good && client->authorization != NULL) {
        struct curl_slist *longer = curl_slist_append(headers, client->authorization);
        is_good = longer != NULL;
        headers = is_good ? longer : headers;
    }
    if (!is_good) {
        curl_slist_free_all(headers);
        return NULL;
    }
    return headers;
}

static bool send_once(struct onceward_client *client, const struct onceward_call *call, const char *url,
                      struct curl_slist *headers, long patience_ms, struct attempt *attempt,
                      struct onceward_answer *answer)
{
    CURL *curl = client->curl;
    long status = 0;
    buf_reset(&attempt->body);
    attempt->is_replayed = false;
    attempt->retry_after_s = -1;
    curl_easy_reset(curl); /* Keeps the connections. */
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, patience_ms < client->try_ms ? patience_ms : client->try_ms);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, attempt);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, attempt);
    if (strcmp(call->method, "GET") != 0) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call->method);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_size);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call->body_size == 0 ? "" : call->body);
    }
    CURLcode code = curl_easy_perform(curl);
    answer->try_count++;
    if (code != CURLE_OK) {
        answer->status = 0;
        text_copy(answer->code, sizeof answer->code, "no_answer");
        text_copy(answer->detail, sizeof answer->detail, curl_easy_strerror(code));
        return false;
    }
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    answer->status = (int)status;
    answer->is_replayed = attempt->is_replayed;
    answer->code[0] = '\0';
    answer->detail[0] = '\0';
    return true;
}

/* ---- a call ------------------------------------------------------------------------------------------------------ */

static void copy_member(const struct wire_value *object, const char *name, char *ret_text, size_t size)
{
    struct wire_value member = wire_json_member(object, name);
    struct buf text;
    buf_init(&text, member.size + 1);
    if (member.kind == WIRE_STRING) {
        wire_json_text(&member, &text);
    }
    text_copy(ret_text, size, text.data);
    buf_done(&text);
}

/* Whether the problem says that the same call may succeed later. What is no problem of ours (a proxy's 502) is one when
 * it is a 5xx. */
static bool read_problem(const struct attempt *attempt, struct onceward_answer *answer)
{
    struct err ignored = ERR_INIT;
    struct wire_value problem;
    if (!wire_json_check(attempt->body.data, attempt->body.size, &problem, &ignored)) {
        text_copy(answer->code, sizeof answer->code, "not_a_problem");
        return answer->status >= 500;
    }
    copy_member(&problem, "code", answer->code, sizeof answer->code);
    copy_member(&problem, "detail", answer->detail, sizeof answer->detail);
    struct wire_value same = wire_json_at(&problem, "retry.same_key");
    return same.kind == WIRE_ABSENT ? answer->status >= 500 : same.kind == WIRE_BOOL && same.size == 4; /* "true" */
}

static void wait_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0) {
    }
}

static int64_t pause_ms(struct backoff *backoff, const struct attempt *attempt)
{
    int64_t ms = backoff_next_ms(backoff, rand_uint32());
    backoff_fail(backoff);
    return attempt->retry_after_s > 0 && ms < attempt->retry_after_s * 1000 ? attempt->retry_after_s * 1000 : ms;
}

/* Tries until a success, a refusal or the deadline. */
static bool try_until_answered(struct onceward_client *client, const struct onceward_call *call, const char *url,
                               struct curl_slist *headers, struct attempt *attempt, struct onceward_answer *answer)
{
    struct backoff backoff = {.first_ms = BACKOFF_FIRST_MS, .max_ms = BACKOFF_MAX_MS};
    int64_t until_ms = clock_monotonic_ms() + client->deadline_ms;
    for (;;) {
        int64_t left_ms = until_ms - clock_monotonic_ms();
        if (send_once(client, call, url, headers, left_ms > 1 ? (long)left_ms : 1, attempt, answer)) {
            if (answer->status >= 200 && answer->status < 300) {
                return true;
            }
            if (!read_problem(attempt, answer)) {
                return false;
            }
        }
        int64_t ms = pause_ms(&backoff, attempt);
        if (clock_monotonic_ms() + ms >= until_ms) {
            return false;
        }
        wait_ms(ms);
    }
}

static bool check_call(const struct onceward_call *call, struct onceward_answer *answer)
{
    bool is_known =
        strcmp(call->method, "GET") == 0 || strcmp(call->method, "PUT") == 0 || strcmp(call->method, "POST") == 0;
    const char *type = call->content_type == NULL ? "" : call->content_type;
    if (is_known && call->path[0] == '/' && !text_has_control(call->path) && !text_has_control(type) &&
        (call->key == NULL || (call->key[0] != '\0' && !text_has_control(call->key)))) {
        return true;
    }
    text_copy(answer->code, sizeof answer->code, "call_invalid");
    text_copy(answer->detail, sizeof answer->detail,
              "method must be GET, PUT or POST, path begin with a slash, and no text hold control characters");
    return false;
}

bool onceward_client_call(struct onceward_client *client, const struct onceward_call *call,
                          struct onceward_answer *ret_answer)
{
    *ret_answer = (struct onceward_answer){0};
    if (!check_call(call, ret_answer)) {
        return false;
    }
    struct attempt attempt = {.retry_after_s = -1};
    struct buf url;
    bool is_good = false;
    buf_init(&attempt.body, BODY_SIZE_MAX);
    buf_init(&url, strlen(client->url) + strlen(call->path) + 1);
    buf_format(&url, "%s%s", client->url, call->path);
    struct curl_slist *headers = make_headers(client, call);
    if (headers == NULL || url.has_overflowed) {
        text_copy(ret_answer->code, sizeof ret_answer->code, "no_memory");
    } else {
        is_good = try_until_answered(client, call, url.data, headers, &attempt, ret_answer);
        ret_answer->body = ret_answer->status == 0 ? NULL : buf_take(&attempt.body, &ret_answer->body_size);
    }
    curl_slist_free_all(headers);
    buf_done(&attempt.body);
    buf_done(&url);
    return is_good;
}

void onceward_answer_done(struct onceward_answer *answer)
{
    free(answer->body);
    *answer = (struct onceward_answer){0};
}

/* ---- a submit ---------------------------------------------------------------------------------------------------- */

static bool read_receipt(const struct onceward_answer *answer, struct onceward_receipt *ret_receipt)
{
    struct err ignored = ERR_INIT;
    struct wire_value receipt;
    if (answer->body == NULL || !wire_json_check(answer->body, answer->body_size, &receipt, &ignored)) {
        return false;
    }
    struct wire_value queued = wire_json_member(&receipt, "queued");
    copy_member(&receipt, "id", ret_receipt->id, sizeof ret_receipt->id);
    copy_member(&receipt, "event_id", ret_receipt->event_id, sizeof ret_receipt->event_id);
    copy_member(&receipt, "submitted_at", ret_receipt->submitted_at, sizeof ret_receipt->submitted_at);
    ret_receipt->is_queued = queued.kind == WIRE_BOOL && queued.size == 4; /* "true" */
    return ret_receipt->id[0] != '\0' && ret_receipt->event_id[0] != '\0';
}

bool onceward_client_submit(struct onceward_client *client, const char *key, const char *type, const char *data,
                            struct onceward_receipt *ret_receipt, struct onceward_answer *ret_answer)
{
    struct onceward_answer own = {0};
    struct onceward_answer *answer = ret_answer == NULL ? &own : ret_answer;
    struct buf body;
    *answer = (struct onceward_answer){0};
    *ret_receipt = (struct onceward_receipt){0};
    buf_init(&body, BODY_SIZE_MAX);
    buf_text(&body, "{\"type\":");
    buf_json_string(&body, type, strlen(type));
    if (data != NULL) {
        buf_text(&body, ",\"data\":");
        buf_text(&body, data);
    }
    buf_char(&body, '}');
    const struct onceward_call call = {
        .method = "POST", .path = "/submissions", .key = key, .body = body.data, .body_size = body.size};
    bool is_good = false;
    if (body.has_overflowed) {
        text_copy(answer->code, sizeof answer->code, "no_memory");
    } else if (onceward_client_call(client, &call, answer)) {
        is_good = read_receipt(answer, ret_receipt);
        if (!is_good) {
            text_copy(answer->code, sizeof answer->code, "no_answer");
            text_copy(answer->detail, sizeof answer->detail, "the answer is no receipt; is this the submit API?");
        }
    }
    buf_done(&body);
    onceward_answer_done(&own);
    return is_good;
}
