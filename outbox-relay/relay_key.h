/* SPDX-License-Identifier: Apache-2.0
 *
 * The (topic, key) pairs of a lane's window, and the queues that entries stand
 * in. A key knows how many of its events may be on their way and which of them
 * wait. Pure; part of relay_window.
 */
#ifndef RELAY_KEY_H
#define RELAY_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct relay_entry;

/* Entries linked by next_out: each stands in one queue at most. */
struct relay_queue {
    struct relay_entry *first;
    struct relay_entry *last;
};

#define RELAY_QUEUE_EMPTY ((struct relay_queue){NULL, NULL})

void relay_queue_push(struct relay_queue *queue, struct relay_entry *entry);
/* NULL when it is empty. */
struct relay_entry *relay_queue_pop(struct relay_queue *queue);
/* Puts a whole queue before another, in its order. */
void relay_queue_prepend(struct relay_queue *queue, const struct relay_queue *front);

/* Takes the entries out that are cut. */
void relay_queue_drop_cut(struct relay_queue *queue);

struct relay_key {
    struct relay_key *next; /* In its bucket. */
    uint64_t hash;
    size_t ref_count; /* Entries of it that are not DONE. */
    int in_flight_max;
    int in_flight_count; /* SENT, SUSPECT and READY: a READY one has its place already. */
    bool is_held;        /* Something of it is deferred. */
    bool is_delayed;     /* One of it is delayed: later ones must not pass it. */
    struct relay_queue waiting;
    const char *topic; /* One text for all keys of it, as long as the table lives. */
    char key[];
};

struct relay_keys;

struct relay_keys *relay_keys_new(struct err *err) MUST_CHECK;
/* Precondition: every key is idle. */
void relay_keys_free(struct relay_keys **keysp);

/* The key, made with this limit when it is new. NULL with a fatal error without memory. */
struct relay_key *relay_keys_find(struct relay_keys *keys, const char *topic, const char *key, int in_flight_max,
                                  struct err *err) MUST_CHECK;

/* Frees the key when nothing refers to it and it is not held. */
void relay_keys_release(struct relay_keys *keys, struct relay_key *key);

/* Empties the queues of waiting entries, which their owner frees. */
void relay_keys_forget_waiting(struct relay_keys *keys);

/* Nothing is held or delayed any more. */
void relay_keys_unhold(struct relay_keys *keys);

/* Gives free places of the key to those that wait, in order: they are READY then, in the queue ready. */
void relay_key_promote(struct relay_key *key, struct relay_queue *ready);

/* Everything of the key that waits is HELD. What is READY stays in its queue, for its owner to skip. */
void relay_key_hold(struct relay_key *key);

#endif
