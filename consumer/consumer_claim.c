/* SPDX-License-Identifier: Apache-2.0
 *
 * Claiming a batch. Insert first, then compare the hashes of what was not
 * inserted, in a second statement: the insert's own snapshot does not see the
 * rival whom it waited for. The invariant: FRESH means that this transaction
 * inserted the row, and nothing else ever means it.
 */
#include "consumer_claim.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"

bool consumer_claim_init(struct consumer_claim *claim, size_t count_max, struct err *err)
{
    *claim = (struct consumer_claim){.count_max = count_max};
    claim->order = calloc(count_max, sizeof *claim->order);
    claim->items = calloc(count_max, sizeof *claim->items);
    claim->owners = calloc(count_max, sizeof *claim->owners);
    claim->answers = calloc(count_max, sizeof *claim->answers);
    claim->is_fresh = calloc(count_max, sizeof *claim->is_fresh);
    return (claim->order != NULL && claim->items != NULL && claim->owners != NULL && claim->answers != NULL &&
            claim->is_fresh != NULL) ||
           err_set(err, ERR_FATAL, "out_of_memory", "claims of %zu events", count_max);
}

void consumer_claim_done(struct consumer_claim *claim)
{
    free(claim->order);
    free(claim->items);
    free(claim->owners);
    free(claim->answers);
    free(claim->is_fresh);
    *claim = (struct consumer_claim){.order = NULL};
}

static int compare_ids(const struct consumer_delivery *left, const struct consumer_delivery *right)
{
    if (left->kind != right->kind) {
        return left->kind < right->kind ? -1 : 1;
    }
    if (left->kind == DB_INBOX_OWN) {
        return uuid_compare(&left->event_id, &right->event_id);
    }
    int order = strcmp(left->event.source, right->event.source);
    return order != 0 ? order : strcmp(left->event.event_id, right->event.event_id);
}

/* Of one id the first that came is first. */
static int compare_deliveries(const void *left, const void *right, void *context)
{
    const struct consumer_batch *batch = context;
    size_t left_index = *(const size_t *)left;
    size_t right_index = *(const size_t *)right;
    int order = compare_ids(&batch->items[left_index], &batch->items[right_index]);
    return order != 0 ? order : left_index < right_index ? -1 : left_index > right_index;
}

static size_t sort_open(struct consumer_claim *claim, struct consumer_batch *batch, size_t begin, size_t end,
                        enum db_inbox_source kind)
{
    size_t count = 0;
    for (size_t i = begin; i < end; i++) {
        const struct consumer_delivery *delivery = &batch->items[i];
        bool is_claimed = delivery->verdict == CONSUMER_VERDICT_OPEN || delivery->verdict == CONSUMER_VERDICT_REFUSED;
        if (is_claimed && delivery->kind == kind) {
            claim->order[count++] = i;
        }
    }
    qsort_r(claim->order, count, sizeof *claim->order, compare_deliveries, batch);
    return count;
}

static struct db_inbox_item item_of(const struct consumer_delivery *delivery)
{
    return (struct db_inbox_item){
        .event_id = delivery->event_id,
        .source = delivery->event.source,
        .id = delivery->event.event_id,
        .payload_hash = delivery->payload_hash,
        .status = delivery->verdict == CONSUMER_VERDICT_REFUSED ? DB_INBOX_FAILED : DB_INBOX_COMPLETED,
    };
}

/* One item per id that is still open; several deliveries of one id share the first one's. */
static size_t collect_items(struct consumer_claim *claim, const struct consumer_batch *batch, size_t count)
{
    size_t item_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct consumer_delivery *delivery = &batch->items[claim->order[i]];
        bool is_copy = item_count > 0 && compare_ids(&batch->items[claim->owners[item_count - 1]], delivery) == 0;
        if (!is_copy) {
            claim->owners[item_count] = claim->order[i];
            claim->items[item_count++] = item_of(delivery);
        }
    }
    return item_count;
}

static void judge_known(struct consumer_delivery *delivery, int64_t known_hash)
{
    delivery->known_hash = known_hash;
    if (delivery->payload_hash == known_hash) {
        delivery->verdict = CONSUMER_VERDICT_DUPLICATE;
        return;
    }
    delivery->verdict = CONSUMER_VERDICT_DIFFERS;
    err_clear(&delivery->reason);
    err_set(&delivery->reason, ERR_PERMANENT, "payload_differs", "this id is known with another payload");
}

/* Further deliveries of an id that this batch holds already. */
static void judge_copies(struct consumer_claim *claim, struct consumer_batch *batch, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct consumer_delivery *delivery = &batch->items[claim->order[i]];
        const struct consumer_delivery *before = &batch->items[claim->order[i - 1]];
        if (compare_ids(before, delivery) == 0) {
            judge_known(delivery, before->known_hash);
        }
    }
}

/* Judges the items that the inbox knows, and moves those that it does not to the front. */
static bool look_up(struct consumer_claim *claim, struct db_tx *tx, struct consumer_batch *batch,
                    enum db_inbox_source kind, size_t *item_count, struct err *err)
{
    if (*item_count == 0) {
        return true;
    }
    if (!db_inbox_known(tx, claim->scope_id, kind, claim->items, *item_count, claim->answers, err)) {
        return false;
    }
    size_t unknown_count = 0;
    for (size_t i = 0; i < *item_count; i++) {
        if (claim->answers[i].is_known) {
            judge_known(&batch->items[claim->owners[i]], claim->answers[i].payload_hash);
        } else {
            claim->items[unknown_count] = claim->items[i];
            claim->owners[unknown_count++] = claim->owners[i];
        }
    }
    *item_count = unknown_count;
    return true;
}

/* Judges what was inserted; what was not stays, at the front. */
static void judge_inserted(struct consumer_claim *claim, struct consumer_batch *batch, size_t *item_count)
{
    size_t rest_count = 0;
    for (size_t i = 0; i < *item_count; i++) {
        struct consumer_delivery *delivery = &batch->items[claim->owners[i]];
        if (!claim->is_fresh[i]) {
            claim->items[rest_count] = claim->items[i];
            claim->owners[rest_count++] = claim->owners[i];
        } else {
            delivery->known_hash = delivery->payload_hash;
            delivery->verdict = delivery->verdict == CONSUMER_VERDICT_OPEN ? CONSUMER_VERDICT_FRESH : delivery->verdict;
        }
    }
    *item_count = rest_count;
}

static bool insert(struct consumer_claim *claim, struct db_tx *tx, struct consumer_batch *batch,
                   enum db_inbox_source kind, size_t *item_count, struct err *err)
{
    if (*item_count == 0) {
        return true;
    }
    if (!db_inbox_claim(tx, claim->scope_id, kind, claim->items, *item_count, claim->is_fresh, err)) {
        return false;
    }
    judge_inserted(claim, batch, item_count);
    return true;
}

/* What the inserts have left over: known, or copies. count deliveries are in the claim's order. */
static bool judge_rest(struct consumer_claim *claim, struct db_tx *tx, struct consumer_batch *batch, size_t count,
                       enum db_inbox_source kind, size_t item_count, struct err *err)
{
    if (!look_up(claim, tx, batch, kind, &item_count, err)) {
        return false;
    }
    if (item_count > 0) {
        return err_set(err, ERR_TRANSIENT, "inbox_changed", "%zu ids were neither inserted nor found", item_count);
    }
    judge_copies(claim, batch, count);
    return true;
}

static bool claim_kind(struct consumer_claim *claim, struct db_tx *tx, struct consumer_batch *batch, size_t begin,
                       size_t end, enum db_inbox_source kind, struct err *err)
{
    size_t count = sort_open(claim, batch, begin, end, kind);
    size_t item_count = collect_items(claim, batch, count);
    /* The switch makes of this what a race must find out, where the inbox has no key: look first, insert then. */
    bool reads_first = FAILPOINT_FAILS("consumer.check_then_act") || claim->reads_first;
    return (!reads_first || look_up(claim, tx, batch, kind, &item_count, err)) &&
           insert(claim, tx, batch, kind, &item_count, err) &&
           judge_rest(claim, tx, batch, count, kind, item_count, err);
}

bool consumer_claim_run(struct consumer_claim *claim, struct db_tx *tx, struct consumer_batch *batch, size_t begin,
                        size_t end, struct err *err)
{
    assert(claim->scope_id > 0 && end - begin <= claim->count_max);
    return claim_kind(claim, tx, batch, begin, end, DB_INBOX_OWN, err) &&
           claim_kind(claim, tx, batch, begin, end, DB_INBOX_FOREIGN, err);
}

bool consumer_claim_prepare(struct consumer_claim *claim, struct consumer_batch *batch, size_t begin, size_t end,
                            struct db_inbox_claim *ret_claim)
{
    assert(claim->scope_id > 0 && end - begin <= claim->count_max);
    if (claim->reads_first || FAILPOINT_IS_ARMED("consumer.check_then_act")) {
        return false;
    }
    claim->prepared_count = sort_open(claim, batch, begin, end, DB_INBOX_OWN);
    *ret_claim = (struct db_inbox_claim){.scope_id = claim->scope_id,
                                         .kind = DB_INBOX_OWN,
                                         .items = claim->items,
                                         .count = collect_items(claim, batch, claim->prepared_count),
                                         .ret_is_fresh = claim->is_fresh};
    return ret_claim->count > 0;
}

bool consumer_claim_finish(struct consumer_claim *claim, struct db_tx *tx, struct consumer_batch *batch, size_t begin,
                           size_t end, const struct db_inbox_claim *made, struct err *err)
{
    size_t item_count = made->count;
    judge_inserted(claim, batch, &item_count);
    return judge_rest(claim, tx, batch, claim->prepared_count, DB_INBOX_OWN, item_count, err) &&
           claim_kind(claim, tx, batch, begin, end, DB_INBOX_FOREIGN, err);
}
