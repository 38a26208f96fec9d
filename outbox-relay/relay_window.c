/* SPDX-License-Identifier: Apache-2.0
 *
 * The lane's window. The invariants: of a key at most in_flight_per_key events
 * are SENT or SUSPECT, in reading order; what is settled is a contiguous run;
 * behind a PARKED event everything of its key is HELD.
 */
#include "relay_window.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "relay_window_private.h"

/* ---- Entries ---- */

static struct relay_key *find_key(struct relay_window *window, const char *topic, const char *key, struct err *err)
{
    int in_flight_max = window->options.in_flight_per_key(window->options.context, topic);
    return relay_keys_find(window->keys, topic, key, in_flight_max, err);
}

static void entry_leave_key(struct relay_entry *entry)
{
    struct relay_key *key = entry->key;
    entry->key = NULL;
    if (key != NULL) {
        key->ref_count--;
        relay_keys_release(entry->window->keys, key);
    }
}

static size_t event_bytes(const struct event *event)
{
    return event->value.size + EVENT_OVERHEAD_BYTES;
}

static void drop_event(struct relay_entry *entry)
{
    if (entry->event != NULL) {
        entry->window->bytes -= event_bytes(entry->event);
        free(entry->event);
        entry->event = NULL;
    }
}

void relay_window_entry_free(struct relay_entry *entry)
{
    entry->window->written_count -= entry->written_seq != 0;
    entry_leave_key(entry);
    drop_event(entry);
    relay_range_unref(&entry->range);
    free(entry->reason_code);
    free(entry->reason);
    free(entry);
}

static struct relay_entry *carry_take(struct relay_window *window, int64_t id)
{
    for (struct relay_entry **link = &window->carried[(uint64_t)id % CARRY_BUCKET_COUNT]; *link != NULL;
         link = &(*link)->next) {
        struct relay_entry *entry = *link;
        if (entry->id == id) {
            *link = entry->next;
            entry->next = NULL;
            entry->is_carried = false;
            window->carried_count--;
            return entry;
        }
    }
    return NULL;
}

static void carry_put(struct relay_window *window, struct relay_entry *entry)
{
    struct relay_entry **bucket = &window->carried[(uint64_t)entry->id % CARRY_BUCKET_COUNT];
    entry->is_carried = true;
    entry->is_planned = false;
    drop_event(entry);
    relay_range_unref(&entry->range);
    entry->next = *bucket;
    *bucket = entry;
    window->carried_count++;
}

/* Drops what was acknowledged before the reset and has not been read again: it is settled. */
static void carry_drop_done(struct relay_window *window)
{
    for (size_t i = 0; window->carried_count > 0 && i < CARRY_BUCKET_COUNT; i++) {
        struct relay_entry **link = &window->carried[i];
        while (*link != NULL) {
            struct relay_entry *entry = *link;
            if (entry->state == RELAY_DONE) {
                *link = entry->next;
                window->carried_count--;
                relay_window_entry_free(entry);
            } else {
                link = &entry->next;
            }
        }
    }
}

/* ---- Life ---- */

struct relay_window *relay_window_new(const struct relay_window_options *options, struct err *err)
{
    assert(options->entry_count_max > 0 && options->in_flight_per_key != NULL);
    struct relay_window *window = calloc(1, sizeof *window);
    if (window == NULL) {
        err_set(err, ERR_FATAL, "memory", "no memory for a lane");
        return NULL;
    }
    window->options = *options;
    window->keys = relay_keys_new(err);
    if (window->keys == NULL) {
        free(window);
        return NULL;
    }
    return window;
}

static void forget_entries(struct relay_window *window, bool keeps_done)
{
    relay_keys_forget_waiting(window->keys);
    struct relay_entry *next = NULL;
    for (struct relay_entry *entry = window->entries.first; entry != NULL; entry = next) {
        next = entry->next;
        entry->next_out = NULL;
        if (entry->state == RELAY_READY || entry->state == RELAY_SUSPECT) {
            entry->key->in_flight_count--;
        }
        if (entry->state == RELAY_SENT || (entry->state == RELAY_DONE && keeps_done)) {
            carry_put(window, entry);
        } else {
            relay_window_entry_free(entry);
        }
    }
    window->entries = window->ready = window->suspect = window->delayed = window->unwritten = RELAY_QUEUE_EMPTY;
    window->entry_count = 0;
    assert(window->bytes == 0);
}

void relay_window_reset(struct relay_window *window, const struct relay_point *point, bool keeps_done)
{
    forget_entries(window, keeps_done);
    relay_keys_unhold(window->keys);
    if (!keeps_done) {
        carry_drop_done(window);
    }
    window->carried_age = 0;
    relay_snapshot_unref(&window->from);
    relay_range_unref(&window->range);
    window->from = point == NULL ? NULL : relay_snapshot_ref(point->from);
    window->position = 0;
}

void relay_window_free(struct relay_window **windowp)
{
    struct relay_window *window = *windowp;
    *windowp = NULL;
    if (window == NULL) {
        return;
    }
    assert(window->sent_count == 0);
    forget_entries(window, false);
    carry_drop_done(window);
    relay_keys_unhold(window->keys);
    relay_snapshot_unref(&window->from);
    relay_range_unref(&window->range);
    relay_keys_free(&window->keys);
    free(window);
}

/* ---- Reading ---- */

bool relay_window_hold(struct relay_window *window, const char *topic, const char *key, struct err *err)
{
    struct relay_key *found = find_key(window, topic, key, err);
    if (found == NULL) {
        return false;
    }
    relay_key_hold(found);
    return true;
}

void relay_window_begin(struct relay_window *window, struct relay_range *range)
{
    assert(window->range == NULL && range->from == window->from);
    window->range = relay_range_ref(range);
    relay_snapshot_unref(&window->from);
    window->position = 0;
}

static struct relay_entry *entry_new(struct relay_window *window, int64_t id, struct err *err)
{
    struct relay_entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL) {
        err_set(err, ERR_FATAL, "memory", "no memory for an event");
        return NULL;
    }
    entry->id = id;
    entry->window = window;
    entry->partition = -1;
    entry->offset = PUBLISH_OFFSET_UNKNOWN;
    return entry;
}

bool relay_window_know(struct relay_window *window, int64_t id, int32_t partition, int64_t offset, int64_t seq,
                       struct err *err)
{
    assert(window->entries.first == NULL && seq > 0);
    struct relay_entry *entry = carry_take(window, id);
    if (entry == NULL) {
        entry = entry_new(window, id, err);
        if (entry == NULL) {
            return false;
        }
        entry->state = RELAY_DONE;
        entry->partition = partition;
        entry->offset = offset;
    }
    window->written_count += entry->written_seq == 0;
    entry->written_seq = seq;
    carry_put(window, entry);
    return true;
}

/* A new entry, or the one that was carried over a reset. */
static struct relay_entry *entry_of(struct relay_window *window, const struct event *event, struct err *err)
{
    struct relay_entry *entry = carry_take(window, event->outbox_id);
    if (entry != NULL) {
        return entry;
    }
    entry = entry_new(window, event->outbox_id, err);
    if (entry == NULL) {
        return NULL;
    }
    entry->key = find_key(window, event->topic, event->key, err);
    if (entry->key == NULL) {
        free(entry);
        return NULL;
    }
    entry->key->ref_count++;
    entry->topic = entry->key->topic;
    if (entry->key->is_held) {
        entry->state = RELAY_HELD;
    } else {
        entry->state = RELAY_WAITING;
        relay_queue_push(&entry->key->waiting, entry);
    }
    return entry;
}

/* Takes the copy. What is not acknowledged may have to be published, again and again. */
static void keep_event(struct relay_entry *entry, struct event *copy)
{
    assert(entry->event == NULL);
    entry->event = copy;
    entry->window->bytes += event_bytes(copy);
    if (entry->state == RELAY_DONE) {
        drop_event(entry);
    }
}

bool relay_window_add(struct relay_window *window, const struct event *event, struct err *err)
{
    assert(window->range != NULL && event->outbox_id > window->position);
    struct event *copy = event_copy(event);
    if (copy == NULL) {
        return err_set(err, ERR_FATAL, "memory", "no memory for an event");
    }
    struct relay_entry *entry = entry_of(window, event, err);
    if (entry == NULL) {
        free(copy);
        return false;
    }
    keep_event(entry, copy);
    entry->range = relay_range_ref(window->range);
    entry->next = NULL;
    if (window->entries.last == NULL) {
        window->entries.first = entry;
    } else {
        window->entries.last->next = entry;
    }
    window->entries.last = entry;
    window->entry_count++;
    window->position = event->outbox_id;
    if (entry->state == RELAY_WAITING) {
        relay_key_promote(entry->key, &window->ready);
    } else if (entry->state == RELAY_DONE && entry->written_seq == 0) {
        relay_queue_push(&window->unwritten, entry);
    }
    return true;
}

void relay_window_read_to(struct relay_window *window, int64_t position)
{
    assert(window->range != NULL && position >= window->position);
    window->position = position;
    if (position < window->range->to->ceiling) {
        return;
    }
    window->from = relay_snapshot_ref(window->range->to);
    relay_range_unref(&window->range);
    window->position = 0;
    if (++window->carried_age >= 2) { /* The settled range and one that reaches beyond all that was read. */
        carry_drop_done(window);
    }
}

static bool was_handed_over(const struct relay_entry *entry)
{
    return entry->state == RELAY_SENT || entry->state == RELAY_SUSPECT || entry->state == RELAY_DONE ||
           entry->state == RELAY_PARKED;
}

/* The place of the last entry that is kept, or of the first that is not. */
static void go_back_to(struct relay_window *window, const struct relay_entry *last, const struct relay_entry *first_cut)
{
    struct relay_range *range = relay_range_ref(first_cut->range);
    relay_range_unref(&window->range);
    relay_snapshot_unref(&window->from);
    window->range = range;
    window->position = last != NULL && last->range == range ? last->id : first_cut->id - 1;
}

void relay_window_stop_reading(struct relay_window *window)
{
    struct relay_entry *last = NULL;
    for (struct relay_entry *entry = window->entries.first; entry != NULL; entry = entry->next) {
        last = was_handed_over(entry) ? entry : last;
    }
    struct relay_entry *cut = last == NULL ? window->entries.first : last->next;
    if (cut == NULL) {
        return;
    }
    go_back_to(window, last, cut);
    window->entries.last = last;
    if (last == NULL) {
        window->entries.first = NULL;
    } else {
        last->next = NULL;
    }
    for (struct relay_entry *entry = cut; entry != NULL; entry = entry->next) {
        entry->is_cut = true;
        entry->key->in_flight_count -= entry->state == RELAY_READY;
        window->entry_count--;
    }
    relay_queue_drop_cut(&window->ready);
    relay_queue_drop_cut(&window->delayed);
    for (struct relay_entry *entry = cut; entry != NULL; entry = entry->next) {
        relay_queue_drop_cut(&entry->key->waiting);
    }
    struct relay_entry *next = NULL;
    for (struct relay_entry *entry = cut; entry != NULL; entry = next) {
        next = entry->next;
        relay_window_entry_free(entry);
    }
}

struct relay_range *relay_window_range(const struct relay_window *window)
{
    return window->range;
}

int64_t relay_window_position(const struct relay_window *window)
{
    return window->position;
}

struct relay_snapshot *relay_window_from(const struct relay_window *window)
{
    assert(window->range == NULL && window->from != NULL);
    return window->from;
}

bool relay_window_has_room(const struct relay_window *window)
{
    return window->entry_count < window->options.entry_count_max && window->bytes < window->options.bytes_max;
}

size_t relay_window_count(const struct relay_window *window)
{
    return window->entry_count;
}

size_t relay_window_sent_count(const struct relay_window *window)
{
    return window->sent_count;
}

int64_t relay_window_claimed_to(const struct relay_window *window)
{
    return window->claimed_to;
}

void relay_window_set_claimed_to(struct relay_window *window, int64_t claimed_to)
{
    window->claimed_to = claimed_to;
}

/* ---- Publishing ---- */

struct relay_entry *relay_window_next(struct relay_window *window, bool is_single)
{
    struct relay_queue *queue = is_single ? &window->suspect : &window->ready;
    struct relay_entry *entry;
    while ((entry = relay_queue_pop(queue)) != NULL) {
        if (entry->key->is_held) {
            entry->state = RELAY_HELD;
            entry->key->in_flight_count--;
        } else if (entry->key->is_delayed) {
            relay_queue_push(&window->delayed, entry);
        } else {
            return entry;
        }
    }
    return NULL;
}

void relay_window_sent(struct relay_entry *entry, bool is_single)
{
    assert(entry->state == RELAY_READY || entry->state == RELAY_SUSPECT);
    entry->state = RELAY_SENT;
    entry->is_single = is_single;
    entry->window->sent_count++;
    if (entry->id > entry->window->claimed_to) {
        entry->window->claimed_to = entry->id;
    }
}

void relay_window_put_back(struct relay_entry *entry)
{
    struct relay_queue one = {entry, entry};
    entry->next_out = NULL;
    relay_queue_prepend(entry->state == RELAY_SUSPECT ? &entry->window->suspect : &entry->window->ready, &one);
}

void relay_window_delay(struct relay_entry *entry)
{
    assert(entry->state == RELAY_READY || entry->state == RELAY_SUSPECT);
    entry->key->is_delayed = true;
    relay_queue_push(&entry->window->delayed, entry);
}

bool relay_window_has_suspect(const struct relay_window *window)
{
    return window->suspect.first != NULL;
}

void relay_window_retry(struct relay_window *window)
{
    struct relay_queue ready = {NULL, NULL};
    struct relay_queue suspect = {NULL, NULL};
    struct relay_entry *entry;
    while ((entry = relay_queue_pop(&window->delayed)) != NULL) {
        entry->key->is_delayed = false;
        relay_queue_push(entry->state == RELAY_SUSPECT ? &suspect : &ready, entry);
    }
    relay_queue_prepend(&window->ready, &ready);
    relay_queue_prepend(&window->suspect, &suspect);
}

void relay_window_refuse(struct relay_entry *entry, const struct err *err)
{
    assert(entry->state == RELAY_READY || entry->state == RELAY_SUSPECT);
    entry->state = RELAY_PARKED;
    entry->reason_code = strdup(err->code);
    entry->reason = strdup(err->text);
    entry->key->in_flight_count--;
    relay_key_hold(entry->key);
    FAILPOINT("relay.after_refusal");
}

/* A carried entry that is not on the topic: when it is read again, it is published like any other. */
static void carried_failed(struct relay_entry *entry)
{
    struct relay_window *window = entry->window;
    struct relay_key *key = entry->key;
    struct relay_entry *taken = carry_take(window, entry->id);
    assert(taken == entry);
    key->in_flight_count--;
    key->ref_count++; /* Keeps it over the next line. */
    relay_window_entry_free(taken);
    key->ref_count--;
    relay_key_promote(key, &window->ready);
    relay_keys_release(window->keys, key);
}

static void is_on_topic(struct relay_entry *entry)
{
    struct relay_key *key = entry->key;
    drop_event(entry);
    entry->state = RELAY_DONE;
    key->in_flight_count--;
    relay_key_promote(key, &entry->window->ready);
    entry_leave_key(entry);
    if (!entry->is_carried && entry->written_seq == 0) {
        relay_queue_push(&entry->window->unwritten, entry);
    }
}

void relay_window_report(struct relay_entry *entry, const struct publish_report *report)
{
    struct relay_window *window = entry->window;
    assert(entry->state == RELAY_SENT && window->sent_count > 0);
    window->sent_count--;
    if (report->was_acknowledged) {
        entry->partition = report->partition;
        entry->offset = report->offset;
        is_on_topic(entry);
    } else if (entry->written_seq != 0) { /* Another relay had the lane meanwhile, and published it. */
        is_on_topic(entry);
    } else if (entry->is_carried) {
        carried_failed(entry);
    } else if (report->err.kind == ERR_PERMANENT && entry->is_single) {
        entry->state = RELAY_SUSPECT;
        relay_window_refuse(entry, &report->err);
    } else if (report->err.kind == ERR_PERMANENT) {
        entry->state = RELAY_SUSPECT;
        relay_queue_push(&window->suspect, entry);
    } else {
        entry->state = entry->is_single ? RELAY_SUSPECT : RELAY_READY;
        relay_window_delay(entry);
    }
}
