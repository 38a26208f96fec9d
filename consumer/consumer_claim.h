/* SPDX-License-Identifier: Apache-2.0
 *
 * Which events of a batch are fresh: claims them in the inbox inside the open
 * transaction and turns open verdicts into fresh, duplicate or differing ones.
 */
#ifndef CONSUMER_CLAIM_H
#define CONSUMER_CLAIM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "consumer_batch.h"

struct db_tx;

/* Room for claiming, made once. */
struct consumer_claim {
    int32_t scope_id;
    bool reads_first; /* Known ids are read before anything is inserted: cheaper where most are known. */
    size_t count_max;
    size_t *order; /* Deliveries by id. */
    struct db_inbox_item *items;
    size_t *owners; /* Delivery that items[i] is about: the first one with that id. */
    bool *is_fresh;
    struct db_inbox_answer *answers;
    size_t prepared_count; /* Deliveries in order, of what was prepared last. */
};

bool consumer_claim_init(struct consumer_claim *claim, size_t count_max, struct err *err) MUST_CHECK;
void consumer_claim_done(struct consumer_claim *claim);

/* Claims the open and the refused deliveries of items[begin, end). On false the transaction is spent. */
bool consumer_claim_run(struct consumer_claim *claim, struct db_tx *tx, struct consumer_batch *batch, size_t begin,
                        size_t end, struct err *err) MUST_CHECK;

/* The same in two halves, so that the first statement can go out along with another: what is to be inserted, borrowed
 * from the claim, and then, when it was, the verdicts. False: there is nothing of the kind, or something has to be read
 * first; then consumer_claim_run is the way. */
bool consumer_claim_prepare(struct consumer_claim *claim, struct consumer_batch *batch, size_t begin, size_t end,
                            struct db_inbox_claim *ret_claim);
bool consumer_claim_finish(struct consumer_claim *claim, struct db_tx *tx, struct consumer_batch *batch, size_t begin,
                           size_t end, const struct db_inbox_claim *made, struct err *err) MUST_CHECK;

#endif
