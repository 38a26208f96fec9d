/* SPDX-License-Identifier: Apache-2.0
 *
 * One tree of keys in flight and one of tenants, under one lock. Followers
 * stand in two lists: their flight's, and all in the order of their patience,
 * which is the same for each, so that the order of coming is that order.
 */
#include "producer_flight.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"
#include "domain/identity.h"
#include "http/http_problem.h"
#include "http/http_server.h"
#include "producer_problem.h"

#define IDLE_WAIT_MS 60000

TAILQ_HEAD(keys, producer_key);

/* Lives as long as the process: tenants are few. */
struct tenant {
    char name[IDENTITY_TENANT_SIZE_MAX + 1];
    int64_t waiting_count;
    int64_t full_look; /* The last look that found it full. */
};

struct producer_flight {
    struct tenant *tenant;
    char text[PRODUCER_KEY_SIZE];
    unsigned char fingerprint[DB_SHA256_SIZE];
    char components[PRODUCER_KEY_COMPONENTS_SIZE];
    struct keys followers;
    int64_t follower_count;
};

struct producer_flights {
    const struct producer_settings *settings;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void *by_key;  /* tsearch's. */
    void *tenants; /* tsearch's. */
    struct keys waiting;
    int64_t look_count; /* At the keys that are kept. */
    bool is_closing;
    struct thread thread;
};

/* ---- trees ------------------------------------------------------------------------------------------------------- */

static int compare_tenants(const void *left, const void *right)
{
    return strcmp(((const struct tenant *)left)->name, ((const struct tenant *)right)->name);
}

static int compare_flights(const void *left, const void *right)
{
    const struct producer_flight *a = left;
    const struct producer_flight *b = right;
    int order = strcmp(a->text, b->text);
    return order != 0 ? order : strcmp(a->tenant->name, b->tenant->name);
}

static struct tenant *find_tenant(struct producer_flights *flights, const char *name)
{
    struct tenant wanted = {.waiting_count = 0};
    bool is_whole = text_copy(wanted.name, sizeof wanted.name, name);
    assert(is_whole);
    struct tenant **found = tfind(&wanted, &flights->tenants, compare_tenants);
    return found == NULL ? NULL : *found;
}

/* NULL when memory is out. */
static struct tenant *tenant_of(struct producer_flights *flights, const char *name)
{
    struct tenant *tenant = find_tenant(flights, name);
    if (tenant != NULL) {
        return tenant;
    }
    tenant = calloc(1, sizeof *tenant);
    if (tenant == NULL) {
        return NULL;
    }
    bool is_whole = text_copy(tenant->name, sizeof tenant->name, name);
    assert(is_whole);
    if (tsearch(tenant, &flights->tenants, compare_tenants) == NULL) {
        free(tenant);
        return NULL;
    }
    return tenant;
}

static void free_tenant(void *node)
{
    assert(((struct tenant *)node)->waiting_count == 0);
    free(node);
}

static struct producer_flight *find_flight(struct producer_flights *flights, struct tenant *tenant, const char *text)
{
    struct producer_flight wanted = {.tenant = tenant};
    bool is_whole = text_copy(wanted.text, sizeof wanted.text, text);
    assert(is_whole);
    struct producer_flight **found = tfind(&wanted, &flights->by_key, compare_flights);
    return found == NULL ? NULL : *found;
}

/* ---- a flight ---------------------------------------------------------------------------------------------------- */

enum joined { JOINED_LEADS, JOINED_FOLLOWS, JOINED_DIFFERS, JOINED_TOO_MANY, JOINED_NO_MEMORY };

static bool is_full(const struct producer_flights *flights, const struct tenant *tenant)
{
    return tenant->full_look > 0 && tenant->full_look == flights->look_count;
}

static enum joined lead(struct producer_flights *flights, struct tenant *tenant, struct producer_key *key)
{
    struct producer_flight *flight = calloc(1, sizeof *flight);
    if (flight == NULL) {
        return JOINED_NO_MEMORY;
    }
    flight->tenant = tenant;
    key->is_tenant_full = is_full(flights, tenant);
    memcpy(flight->text, key->text, sizeof flight->text);
    memcpy(flight->fingerprint, key->fingerprint, sizeof flight->fingerprint);
    memcpy(flight->components, key->components, sizeof flight->components);
    TAILQ_INIT(&flight->followers);
    if (tsearch(flight, &flights->by_key, compare_flights) == NULL) {
        free(flight);
        return JOINED_NO_MEMORY;
    }
    key->flight = flight;
    return JOINED_LEADS;
}

static enum joined follow(struct producer_flights *flights, struct producer_flight *flight, struct producer_key *key)
{
    const struct producer_settings *settings = flights->settings;
    if (memcmp(flight->fingerprint, key->fingerprint, DB_SHA256_SIZE) != 0) {
        return JOINED_DIFFERS;
    }
    if (flight->follower_count >= settings->key_waiters_max ||
        flight->tenant->waiting_count >= settings->tenant_waiters_max) {
        return JOINED_TOO_MANY;
    }
    key->flight = flight;
    key->until_ms = clock_monotonic_ms() + settings->key_wait_ms;
    TAILQ_INSERT_TAIL(&flight->followers, key, of_flight);
    TAILQ_INSERT_TAIL(&flights->waiting, key, of_time);
    flight->follower_count++;
    flight->tenant->waiting_count++;
    pthread_cond_signal(&flights->changed);
    return JOINED_FOLLOWS;
}

/* Out of both lists. */
static void leave(struct producer_flights *flights, struct producer_key *key)
{
    struct producer_flight *flight = key->flight;
    assert(flight != NULL);
    TAILQ_REMOVE(&flight->followers, key, of_flight);
    TAILQ_REMOVE(&flights->waiting, key, of_time);
    flight->follower_count--;
    flight->tenant->waiting_count--;
    key->flight = NULL;
}

static void end(struct producer_flights *flights, struct producer_flight *flight)
{
    assert(TAILQ_EMPTY(&flight->followers));
    (void)tdelete(flight, &flights->by_key, compare_flights);
    free(flight);
}

/* ---- patience ---------------------------------------------------------------------------------------------------- */

/* Those whose time is over, chained by follower. Under the lock. */
static struct producer_item *take_impatient(struct producer_flights *flights, int64_t now_ms)
{
    struct producer_item *first = NULL;
    struct producer_item **last = &first;
    struct producer_key *key = NULL;
    while ((key = TAILQ_FIRST(&flights->waiting)) != NULL && key->until_ms <= now_ms) {
        leave(flights, key);
        *last = key->item;
        last = &key->item->follower;
    }
    *last = NULL;
    return first;
}

static void run(void *context)
{
    struct producer_flights *flights = context;
    thread_lock(&flights->lock);
    while (!flights->is_closing) {
        int64_t now_ms = clock_monotonic_ms();
        struct producer_item *item = take_impatient(flights, now_ms);
        if (item == NULL) {
            const struct producer_key *first = TAILQ_FIRST(&flights->waiting);
            int64_t until_ms = first == NULL ? now_ms + IDLE_WAIT_MS : first->until_ms;
            (void)thread_cond_wait_until(&flights->changed, &flights->lock, until_ms);
            continue;
        }
        thread_unlock(&flights->lock);
        while (item != NULL) {
            struct producer_item *next = item->follower;
            producer_item_refuse(&item, producer_problem("idempotency_in_progress"),
                                 "another call works under this key; ask again for its answer");
            item = next;
        }
        thread_lock(&flights->lock);
    }
    thread_unlock(&flights->lock);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

struct producer_flights *producer_flight_open(const struct producer_settings *settings, struct err *err)
{
    struct producer_flights *flights = calloc(1, sizeof *flights);
    if (flights == NULL) {
        err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for the keys in flight");
        return NULL;
    }
    flights->settings = settings;
    pthread_mutex_init(&flights->lock, NULL);
    thread_cond_init(&flights->changed);
    TAILQ_INIT(&flights->waiting);
    if (!thread_start(&flights->thread, "flights", run, flights, err)) {
        producer_flight_close(&flights);
    }
    return flights;
}

void producer_flight_close(struct producer_flights **flightsp)
{
    struct producer_flights *flights = *flightsp;
    *flightsp = NULL;
    if (flights == NULL) {
        return;
    }
    thread_lock(&flights->lock);
    flights->is_closing = true;
    pthread_cond_signal(&flights->changed);
    thread_unlock(&flights->lock);
    thread_join(&flights->thread);
    assert(flights->by_key == NULL && TAILQ_EMPTY(&flights->waiting));
    tdestroy(flights->tenants, free_tenant);
    pthread_cond_destroy(&flights->changed);
    pthread_mutex_destroy(&flights->lock);
    free(flights);
}

bool producer_flight_join(struct producer_flights *flights, struct producer_item *item)
{
    struct producer_key *key = item->key;
    char components[PRODUCER_KEY_COMPONENTS_SIZE] = "";
    assert(key != NULL && key->flight == NULL);
    thread_lock(&flights->lock);
    struct tenant *tenant = tenant_of(flights, item->tenant);
    struct producer_flight *flight = tenant == NULL ? NULL : find_flight(flights, tenant, key->text);
    enum joined joined = tenant == NULL   ? JOINED_NO_MEMORY
                         : flight == NULL ? lead(flights, tenant, key)
                                          : follow(flights, flight, key);
    if (joined == JOINED_DIFFERS) {
        memcpy(components, flight->components, sizeof components);
    }
    thread_unlock(&flights->lock);
    if (joined == JOINED_DIFFERS) {
        producer_item_refuse_reused(&item, components, NULL);
    } else if (joined == JOINED_TOO_MANY) {
        producer_item_refuse(&item, producer_problem("too_many_waiting"),
                             "too many calls wait under this key or for this tenant");
    } else if (joined == JOINED_NO_MEMORY) {
        producer_item_refuse(&item, producer_problem("too_busy"), "no memory for the call");
    }
    return joined == JOINED_LEADS;
}

bool producer_flight_is_running(struct producer_flights *flights, const char *tenant_name, const char *text)
{
    thread_lock(&flights->lock);
    struct tenant *tenant = find_tenant(flights, tenant_name);
    bool is_running = tenant != NULL && find_flight(flights, tenant, text) != NULL;
    thread_unlock(&flights->lock);
    return is_running;
}

void producer_flight_note_full(struct producer_flights *flights, const char *tenant_name)
{
    thread_lock(&flights->lock);
    struct tenant *tenant = tenant_of(flights, tenant_name);
    if (tenant != NULL) {
        tenant->full_look = flights->look_count + 1;
    }
    thread_unlock(&flights->lock);
}

void producer_flight_end_look(struct producer_flights *flights)
{
    thread_lock(&flights->lock);
    flights->look_count++;
    thread_unlock(&flights->lock);
}

struct producer_item *producer_flight_end(struct producer_flights *flights, struct producer_item *item)
{
    struct producer_flight *flight = item->key->flight;
    struct producer_item *first = NULL;
    struct producer_item **last = &first;
    struct producer_key *key = NULL;
    assert(flight != NULL);
    thread_lock(&flights->lock);
    while ((key = TAILQ_FIRST(&flight->followers)) != NULL) {
        leave(flights, key);
        *last = key->item;
        last = &key->item->follower;
    }
    *last = NULL;
    end(flights, flight);
    thread_unlock(&flights->lock);
    item->key->flight = NULL;
    return first;
}

struct producer_item *producer_flight_pass(struct producer_flights *flights, struct producer_item *item)
{
    struct producer_flight *flight = item->key->flight;
    assert(flight != NULL);
    item->key->flight = NULL;
    thread_lock(&flights->lock);
    struct producer_key *next = TAILQ_FIRST(&flight->followers);
    if (next == NULL) {
        end(flights, flight);
    } else {
        leave(flights, next);
        next->flight = flight;
        next->is_tenant_full = is_full(flights, flight->tenant);
    }
    thread_unlock(&flights->lock);
    return next == NULL ? NULL : next->item;
}
