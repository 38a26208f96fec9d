/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers items and their followers. Protects: a follower under a key gets the
 * bytes of its leader's answer, and a key is free again before anybody hears.
 */
#include "producer_leave.h"

#include <string.h>

#include "http/metrics.h"
#include "producer_answer.h"
#include "producer_problem.h"

/* Ends the flight of a leader. Its followers, under a key or of the same batch, chained. */
static struct producer_item *followers_of(const struct producer_leave *leave, struct producer_item *item)
{
    if (item->key != NULL && item->key->flight != NULL) {
        item->follower = producer_flight_end(leave->flights, item);
    }
    return item->follower;
}

/* The same submit that came again while the first was on its way is a duplicate of it. */
static void answer_duplicates(const struct producer_leave *leave, struct producer_item *item,
                              const struct uuid *event_id, int64_t submitted_us)
{
    while (item != NULL) {
        struct producer_item *follower = item->follower;
        struct buf body;
        buf_init(&body, PRODUCER_ANSWER_SIZE_MAX);
        producer_answer_receipt(&body, &item->request_id, event_id, submitted_us, false);
        metric_add(leave->duplicates, 1);
        producer_item_answer(&item, 200, &body, NULL);
        item = follower;
    }
}

static void reply_to_all(const struct producer_leave *leave, struct producer_item *item, struct producer_reply *reply)
{
    struct producer_item *follower = followers_of(leave, item);
    metric_add(leave->replays, reply->is_replayed ? 1 : 0);
    producer_item_reply(&item, reply);
    reply->is_replayed = true;
    while (follower != NULL) {
        item = follower;
        follower = item->follower;
        metric_add(leave->replays, 1);
        producer_item_reply(&item, reply);
    }
}

void producer_leave_answered(const struct producer_leave *leave, struct producer_item *item,
                             struct producer_decision *decision, const struct db_submit_found *found)
{
    if (producer_item_wants_submit(item)) {
        metric_add(found->is_submitted ? leave->duplicates : leave->queued, 1);
    }
    if (item->key != NULL) {
        const struct db_idempotency_write *answer = &decision->answer;
        struct producer_reply reply = {.status = answer->status,
                                       .headers = answer->headers,
                                       .body = answer->body,
                                       .expires_us = answer->expires_us};
        reply_to_all(leave, item, &reply);
        return;
    }
    struct producer_item *follower = followers_of(leave, item);
    const struct uuid event_id = found->is_submitted ? found->event_id : item->event_id;
    int64_t submitted_us = found->is_submitted ? found->submitted_us : item->now_us;
    producer_item_answer(&item, decision->status, &decision->body, decision->has_location ? decision->location : NULL);
    answer_duplicates(leave, follower, &event_id, submitted_us);
}

void producer_leave_replayed(const struct producer_leave *leave, struct producer_item *item,
                             const struct db_idempotency_found *answer)
{
    /* An attempt whose outcome was not known left its own time if it was committed: the answer is this call's. */
    bool is_ours = item->is_in_doubt && answer->created_us == item->now_us;
    struct producer_reply reply = {.status = answer->status,
                                   .headers = answer->headers,
                                   .body = answer->body,
                                   .is_replayed = !is_ours,
                                   .expires_us = answer->expires_us};
    reply_to_all(leave, item, &reply);
}

void producer_leave_reused(const struct producer_leave *leave, struct producer_item *item,
                           const struct db_idempotency_found *answer)
{
    struct producer_item *follower = followers_of(leave, item);
    producer_item_refuse_reused(&item, answer->components, answer->resource);
    while (follower != NULL) {
        item = follower;
        follower = item->follower;
        producer_item_refuse_reused(&item, answer->components, answer->resource);
    }
}

void producer_leave_refused(const struct producer_leave *leave, struct producer_item *item,
                            const struct http_problem *problem, const char *detail)
{
    struct producer_item *follower = followers_of(leave, item);
    producer_item_refuse(&item, problem, detail);
    while (follower != NULL) {
        item = follower;
        follower = item->follower;
        producer_item_refuse(&item, problem, detail);
    }
}

struct producer_item *producer_leave_in_progress(const struct producer_leave *leave, struct producer_item *item)
{
    struct producer_item *next = producer_flight_pass(leave->flights, item);
    producer_item_refuse(&item, producer_problem("idempotency_in_progress"),
                         "another call works under this key; ask again for its answer");
    return next;
}
