/* SPDX-License-Identifier: Apache-2.0
 *
 * A small C client of the submit API: one call is carried out once, however
 * often the network or the service makes it be sent.
 *
 *   struct onceward_client *client = onceward_client_new("http://127.0.0.1:8480", NULL);
 *   char key[ONCEWARD_KEY_SIZE];
 *   onceward_key_new(key);                       keep it with what the call is about, until the call is answered
 *   const struct onceward_call call = {
 *       .method = "POST", .path = "/submissions", .key = key,
 *       .body = "{\"type\":\"example.submitted\"}", .body_size = 28,
 *   };
 *   struct onceward_answer answer;
 *   if (onceward_client_call(client, &call, &answer)) …  the API has answered: look at answer.status
 *   onceward_answer_done(&answer);
 *   onceward_client_free(&client);
 *
 * Every try of a call carries the same key. A call is tried again where no
 * answer came, and where the answer says that the same call may succeed later
 * (retry.same_key, docs/api.md), with growing waits and never before
 * Retry-After, until the call's deadline.
 *
 * A client is for one thread at a time; several clients may work beside each
 * other. The calls block. pkg-config: onceward-client. Links libcurl.
 */
#ifndef ONCEWARD_CLIENT_H
#define ONCEWARD_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ONCEWARD_API __attribute__((visibility("default")))

#define ONCEWARD_KEY_SIZE 65  /* A key as text with its NUL: a UUID, or a hash in hexadecimal. */
#define ONCEWARD_ID_SIZE 37   /* A UUID as text with its NUL. */
#define ONCEWARD_TIME_SIZE 33 /* A time as text with its NUL (RFC 3339). */
#define ONCEWARD_CODE_SIZE 64
#define ONCEWARD_DETAIL_SIZE 256

struct onceward_client;

/* A client of the producer at url ("http://host:port", without a slash at its end). token is the bearer token, or NULL
 * where the producer wants none. Both are copied. NULL without memory, or with a url that is no http or https one. */
ONCEWARD_API struct onceward_client *onceward_client_new(const char *url, const char *token);

/* Closes its connections, frees it and nulls the pointer. */
ONCEWARD_API void onceward_client_free(struct onceward_client **clientp);

/* For how long a call is tried in all (default 60 000 ms), and for how long one try may take (default 35 000 ms, which
 * is more than the service itself waits for a body or for another call with the same key). */
ONCEWARD_API void onceward_client_set_patience(struct onceward_client *client, long deadline_ms, long try_ms);

/* A fresh key: a random UUID. Make it when the user acts, store it with the intent, use it for every try. */
ONCEWARD_API void onceward_key_new(char ret_key[ONCEWARD_KEY_SIZE]);

/* The same key for the same intent, where nothing can be stored: SHA-256 over user, operation and payload, each with
 * its length. Two equal payments that are both meant need different operations ("pay invoice 17"). */
ONCEWARD_API void onceward_key_of(const char *user, const char *operation, const void *payload, size_t payload_size,
                                  char ret_key[ONCEWARD_KEY_SIZE]);

/* What is to be called. Everything is borrowed until onceward_client_call returns. */
struct onceward_call {
    const char *method;       /* "GET", "PUT" or "POST". */
    const char *path;         /* "/requests/…", with its query; escaped by the caller. */
    const char *key;          /* Of a call that writes; NULL: none is sent. */
    const char *content_type; /* Of the body. NULL: application/json. */
    const void *body;
    size_t body_size;
};

/* What the API answered last, or why it did not. */
struct onceward_answer {
    int status;       /* Of HTTP; 0 where no answer was had. */
    bool is_replayed; /* These are the bytes that an earlier try was answered with (Idempotent-Replayed). */
    int try_count;    /* How often the call was sent, at least once. */
    char *body;       /* Ends in a NUL that body_size does not count. Freed by onceward_answer_done. */
    size_t body_size;
    char code[ONCEWARD_CODE_SIZE]; /* Of a problem; "no_answer", "no_memory", "call_invalid" from here; else empty. */
    char detail[ONCEWARD_DETAIL_SIZE]; /* For a person; may be cut. */
};

/* Carries a call out. True when it has been answered with a success (2xx). False otherwise: answer->code and
 * answer->status tell why. Where status is 0, or 5xx, or the code is "no_answer", it is not known whether the call took
 * effect: call again with the same key. answer is filled in either case and must be done with. */
ONCEWARD_API bool onceward_client_call(struct onceward_client *client, const struct onceward_call *call,
                                       struct onceward_answer *ret_answer);
ONCEWARD_API void onceward_answer_done(struct onceward_answer *answer);

/* The receipt of a submit (docs/api.md). */
struct onceward_receipt {
    char id[ONCEWARD_ID_SIZE];
    char event_id[ONCEWARD_ID_SIZE];
    char submitted_at[ONCEWARD_TIME_SIZE];
    bool is_queued; /* False: it had been submitted before (a duplicate), which is a success too. */
};

/* POST /submissions with type and data (a JSON object as text, or NULL), under this key, and read the receipt. As
 * onceward_client_call; ret_answer may be NULL. */
ONCEWARD_API bool onceward_client_submit(struct onceward_client *client, const char *key, const char *type,
                                         const char *data, struct onceward_receipt *ret_receipt,
                                         struct onceward_answer *ret_answer);

#ifdef __cplusplus
}
#endif

#endif
