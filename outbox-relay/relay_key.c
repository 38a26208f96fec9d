/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys in a hash table with chains. The invariant: a key is in the table while
 * an entry refers to it or something of it is deferred, and no longer.
 */
#include "relay_key.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "relay_window.h"

#define BUCKET_COUNT 4096U

/* Few, and never forgotten. */
struct topic {
    struct topic *next;
    char name[];
};

struct relay_keys {
    struct relay_key *buckets[BUCKET_COUNT];
    struct topic *topics;
};

/* ---- Queues ---- */

void relay_queue_push(struct relay_queue *queue, struct relay_entry *entry)
{
    entry->next_out = NULL;
    if (queue->last == NULL) {
        queue->first = entry;
    } else {
        queue->last->next_out = entry;
    }
    queue->last = entry;
}

struct relay_entry *relay_queue_pop(struct relay_queue *queue)
{
    struct relay_entry *entry = queue->first;
    if (entry != NULL) {
        queue->first = entry->next_out;
        if (queue->first == NULL) {
            queue->last = NULL;
        }
        entry->next_out = NULL;
    }
    return entry;
}

void relay_queue_prepend(struct relay_queue *queue, const struct relay_queue *front)
{
    if (front->first == NULL) {
        return;
    }
    front->last->next_out = queue->first;
    if (queue->last == NULL) {
        queue->last = front->last;
    }
    queue->first = front->first;
}

void relay_queue_drop_cut(struct relay_queue *queue)
{
    struct relay_queue kept = RELAY_QUEUE_EMPTY;
    struct relay_entry *entry;
    while ((entry = relay_queue_pop(queue)) != NULL) {
        if (!entry->is_cut) {
            relay_queue_push(&kept, entry);
        }
    }
    *queue = kept;
}

/* ---- The table ---- */

struct relay_keys *relay_keys_new(struct err *err)
{
    struct relay_keys *keys = calloc(1, sizeof *keys);
    if (keys == NULL) {
        err_set(err, ERR_FATAL, "memory", "no memory for the keys of a lane");
    }
    return keys;
}

void relay_keys_free(struct relay_keys **keysp)
{
    for (size_t i = 0; *keysp != NULL && i < BUCKET_COUNT; i++) {
        assert((*keysp)->buckets[i] == NULL);
    }
    struct topic *next = NULL;
    for (struct topic *topic = *keysp == NULL ? NULL : (*keysp)->topics; topic != NULL; topic = next) {
        next = topic->next;
        free(topic);
    }
    free(*keysp);
    *keysp = NULL;
}

static uint64_t hash_of(const char *topic, const char *key)
{
    uint64_t hash = UINT64_C(1469598103934665603); /* FNV-1a; the topic's NUL separates. */
    for (const char *text = topic;; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
        if (*text == '\0') {
            break;
        }
    }
    for (const char *text = key; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    }
    return hash ^ (hash >> 29);
}

static const char *find_topic(struct relay_keys *keys, const char *name)
{
    for (const struct topic *found = keys->topics; found != NULL; found = found->next) {
        if (strcmp(found->name, name) == 0) {
            return found->name;
        }
    }
    size_t size = strlen(name) + 1;
    struct topic *made = malloc(sizeof *made + size);
    if (made == NULL) {
        return NULL;
    }
    memcpy(made->name, name, size);
    made->next = keys->topics;
    keys->topics = made;
    return made->name;
}

static struct relay_key *make(struct relay_keys *keys, const char *topic, const char *key)
{
    const char *kept_topic = find_topic(keys, topic);
    size_t size = strlen(key) + 1;
    struct relay_key *made = kept_topic == NULL ? NULL : calloc(1, sizeof *made + size);
    if (made != NULL) {
        made->topic = kept_topic;
        memcpy(made->key, key, size);
    }
    return made;
}

struct relay_key *relay_keys_find(struct relay_keys *keys, const char *topic, const char *key, int in_flight_max,
                                  struct err *err)
{
    assert(in_flight_max > 0);
    uint64_t hash = hash_of(topic, key);
    struct relay_key **bucket = &keys->buckets[hash % BUCKET_COUNT];
    for (struct relay_key *found = *bucket; found != NULL; found = found->next) {
        if (found->hash == hash && strcmp(found->topic, topic) == 0 && strcmp(found->key, key) == 0) {
            return found;
        }
    }
    struct relay_key *made = make(keys, topic, key);
    if (made == NULL) {
        err_set(err, ERR_FATAL, "memory", "no memory for a key");
        return NULL;
    }
    made->hash = hash;
    made->in_flight_max = in_flight_max;
    made->next = *bucket;
    *bucket = made;
    return made;
}

void relay_keys_release(struct relay_keys *keys, struct relay_key *key)
{
    if (key->ref_count > 0 || key->is_held) {
        return;
    }
    assert(key->in_flight_count == 0 && key->waiting.first == NULL);
    struct relay_key **link = &keys->buckets[key->hash % BUCKET_COUNT];
    while (*link != key) {
        link = &(*link)->next;
    }
    *link = key->next;
    free(key);
}

void relay_keys_forget_waiting(struct relay_keys *keys)
{
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        for (struct relay_key *key = keys->buckets[i]; key != NULL; key = key->next) {
            key->waiting = RELAY_QUEUE_EMPTY;
        }
    }
}

void relay_keys_unhold(struct relay_keys *keys)
{
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        struct relay_key *next = NULL;
        for (struct relay_key *key = keys->buckets[i]; key != NULL; key = next) {
            next = key->next;
            key->is_held = false;
            key->is_delayed = false;
            relay_keys_release(keys, key);
        }
    }
}

/* ---- One key ---- */

void relay_key_promote(struct relay_key *key, struct relay_queue *ready)
{
    while (!key->is_held && key->in_flight_count < key->in_flight_max && key->waiting.first != NULL) {
        struct relay_entry *entry = relay_queue_pop(&key->waiting);
        entry->state = RELAY_READY;
        key->in_flight_count++;
        relay_queue_push(ready, entry);
    }
}

void relay_key_hold(struct relay_key *key)
{
    key->is_held = true;
    struct relay_entry *entry;
    while ((entry = relay_queue_pop(&key->waiting)) != NULL) {
        entry->state = RELAY_HELD;
    }
}
