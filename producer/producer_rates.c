/* SPDX-License-Identifier: Apache-2.0
 *
 * A bucket is one time: when it will be empty again. Each take moves it by an
 * interval, and none may move it further ahead than a second.
 */
#include "producer_rates.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

#define SET_COUNT 1024
#define WAY_COUNT 4
#define SECOND_US 1000000

struct bucket {
    unsigned char key[PRODUCER_RATES_KEY_SIZE];
    int64_t empty_us;
};

struct producer_rates {
    pthread_mutex_t lock;
    int64_t per_second;
    struct bucket buckets[SET_COUNT][WAY_COUNT];
};

struct producer_rates *producer_rates_new(int64_t per_second)
{
    assert(per_second >= 0 && per_second <= SECOND_US);
    struct producer_rates *rates = calloc(1, sizeof *rates);
    if (rates != NULL) {
        rates->per_second = per_second;
        pthread_mutex_init(&rates->lock, NULL);
    }
    return rates;
}

void producer_rates_free(struct producer_rates **ratesp)
{
    struct producer_rates *rates = *ratesp;
    *ratesp = NULL;
    if (rates != NULL) {
        pthread_mutex_destroy(&rates->lock);
        free(rates);
    }
}

/* Its own, or that which is or will be empty first. */
static struct bucket *find(struct producer_rates *rates, const unsigned char *key)
{
    uint64_t number = 14695981039346656037U;
    for (int i = 0; i < PRODUCER_RATES_KEY_SIZE; i++) {
        number = (number ^ key[i]) * 1099511628211U;
    }
    struct bucket *set = rates->buckets[(number >> 32) % SET_COUNT];
    struct bucket *chosen = &set[0];
    for (int i = 0; i < WAY_COUNT; i++) {
        if (memcmp(set[i].key, key, PRODUCER_RATES_KEY_SIZE) == 0) {
            return &set[i];
        }
        chosen = set[i].empty_us < chosen->empty_us ? &set[i] : chosen;
    }
    return chosen;
}

static bool look(struct producer_rates *rates, const unsigned char *key, int64_t now_us, bool takes)
{
    if (rates->per_second == 0) {
        return true;
    }
    int64_t interval_us = SECOND_US / rates->per_second;
    thread_lock(&rates->lock);
    struct bucket *bucket = find(rates, key);
    bool is_its_own = memcmp(bucket->key, key, PRODUCER_RATES_KEY_SIZE) == 0;
    int64_t empty_us = is_its_own && bucket->empty_us > now_us ? bucket->empty_us : now_us;
    bool is_allowed = empty_us + interval_us - now_us <= SECOND_US;
    if (is_allowed && takes) {
        memcpy(bucket->key, key, PRODUCER_RATES_KEY_SIZE);
        bucket->empty_us = empty_us + interval_us;
    }
    thread_unlock(&rates->lock);
    return is_allowed;
}

bool producer_rates_allow(struct producer_rates *rates, const unsigned char *key, int64_t now_us)
{
    return look(rates, key, now_us, false);
}

bool producer_rates_take(struct producer_rates *rates, const unsigned char *key, int64_t now_us)
{
    return look(rates, key, now_us, true);
}
