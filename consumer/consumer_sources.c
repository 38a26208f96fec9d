/* SPDX-License-Identifier: Apache-2.0
 *
 * Sources and ids. The invariant: an id of our own source goes to the inbox of
 * own ids or nowhere; putting it elsewhere would let it stand twice.
 */
#include "consumer_sources.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"

bool consumer_sources_load(struct consumer_sources *sources, struct db *db, struct err *err)
{
    return db_inbox_own_source(db, sources->own, err) && db_inbox_range(db, &sources->range, err);
}

static struct consumer_source *find(struct consumer_sources *sources, const char *source)
{
    for (size_t i = 0; i < sources->known_count; i++) {
        if (strcmp(sources->known[i].source, source) == 0) {
            return &sources->known[i];
        }
    }
    return NULL;
}

static struct consumer_source *pin(struct consumer_sources *sources, struct db *db, const char *source, struct err *err)
{
    enum db_inbox_source wanted = strcmp(source, sources->own) == 0 ? DB_INBOX_OWN : DB_INBOX_FOREIGN;
    enum db_inbox_source kind = wanted;
    if (!db_inbox_pin_source(db, sources->consumer, source, wanted, &kind, err)) {
        return NULL;
    }
    size_t place = sources->known_count < CONSUMER_SOURCES_KNOWN_MAX ? sources->known_count++ : sources->known_next;
    sources->known_next = (place + 1) % CONSUMER_SOURCES_KNOWN_MAX;
    struct consumer_source *known = &sources->known[place];
    bool has_fitted = text_copy(known->source, sizeof known->source, source);
    assert(has_fitted); /* The decoder's limit. */
    known->kind = kind;
    return known;
}

static bool has_room(const struct db_inbox_range *range, const struct uuid *id)
{
    return range->has_room && uuid_compare(id, &range->first) >= 0 && uuid_compare(id, &range->end) < 0;
}

/* The range is read again before an id is turned away: partitions are made while we run. Once per batch. */
static bool settle_own(struct consumer_sources *sources, struct db *db, struct consumer_delivery *delivery,
                       bool *has_reloaded, struct err *err)
{
    const char *id = delivery->event.event_id;
    if (!uuid_from_text(id, strlen(id), &delivery->event_id) || uuid_v7_ms(&delivery->event_id) < 0) {
        consumer_delivery_kill(delivery, "event_id_invalid",
                               "ce_id is not the lower-case text of a UUIDv7, as all of its source are");
        return true;
    }
    if (!has_room(&sources->range, &delivery->event_id) && !*has_reloaded) {
        *has_reloaded = true;
        if (!db_inbox_range(db, &sources->range, err)) {
            return false;
        }
    }
    if (!has_room(&sources->range, &delivery->event_id)) {
        consumer_delivery_kill(delivery, "event_id_outside_inbox",
                               "no partition of the inbox has room for the time in ce_id");
    }
    return true;
}

bool consumer_sources_settle(struct consumer_sources *sources, struct db *db, struct consumer_batch *batch,
                             struct err *err)
{
    bool has_reloaded = false;
    for (size_t i = 0; i < batch->count; i++) {
        struct consumer_delivery *delivery = &batch->items[i];
        if (delivery->verdict != CONSUMER_VERDICT_OPEN) {
            continue;
        }
        const struct consumer_source *source = find(sources, delivery->event.source);
        if (source == NULL) {
            source = pin(sources, db, delivery->event.source, err);
        }
        if (source == NULL) {
            return false;
        }
        delivery->kind = source->kind;
        if (source->kind == DB_INBOX_OWN && !settle_own(sources, db, delivery, &has_reloaded, err)) {
            return false;
        }
    }
    return true;
}
