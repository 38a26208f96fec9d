/* SPDX-License-Identifier: Apache-2.0
 *
 * Settling: the next rows of the lanes' logs. The invariant: a row's place has
 * nothing before it that is neither acknowledged nor deferred by that very
 * row. What is acknowledged ahead of the place is in the row too, so that a
 * crash repeats only what was acknowledged since: duplicates, never a loss.
 */
#include "relay.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/failpoint.h"

#define SETTLE_COUNT_MAX 5000 /* Of one lane in one row. */
#define FULL_SETTLE_MS 20     /* Between two settlings of a lane without room. */
#define AHEAD_REVIEW_ROWS 16  /* A walk through the window is worth it once in so many rows. */

/* What a move will settle, to be applied when the database has it. */
struct plan {
    struct relay_lane *lane;
    size_t count;
    uint64_t from;   /* Hash of the snapshot. */
    bool is_cut;     /* There is more to write. */
    bool is_counted; /* ahead_from was found anew. */
};

static size_t count_max(const struct relay *relay)
{
    return relay->limits.window_events < SETTLE_COUNT_MAX ? relay->limits.window_events : SETTLE_COUNT_MAX;
}

static void add_settled(struct relay_entry *entry, struct db_lane_settled *settled, struct db_lane_move *move)
{
    entry->is_planned = true;
    settled[move->settled_count++] = (struct db_lane_settled){
        .id = entry->id, .topic = entry->topic, .partition = entry->partition, .offset = entry->offset};
}

/* Splits the run into what is acknowledged and what is deferred. Stops where the cap on deferred events is reached:
 * then the lane waits. */
static size_t fill_lists(const struct relay *relay, const struct relay_lane *lane, struct relay_entry *entry,
                         size_t count, struct db_lane_move *move)
{
    struct db_lane_settled *settled = relay->settled + (size_t)lane->lane * relay->limits.window_events;
    struct db_lane_deferred *deferred = relay->deferred + (size_t)lane->lane * relay->limits.window_events;
    size_t done = 0;
    for (; done < count; done++, entry = entry->next) {
        if (entry->state == RELAY_DONE) {
            if (entry->written_seq == 0) {
                add_settled(entry, settled, move);
            }
            continue;
        }
        if (lane->deferred_count + (int64_t)move->deferred_count >= relay->limits.deferred_max) {
            break;
        }
        bool is_parked = entry->state == RELAY_PARKED;
        deferred[move->deferred_count++] = (struct db_lane_deferred){
            .id = entry->id,
            .is_parked = is_parked,
            .reason_code = is_parked ? entry->reason_code : "held",
            .reason = is_parked ? entry->reason : "an earlier event of its topic and key is deferred",
        };
    }
    move->settled = settled;
    move->deferred = deferred;
    return done;
}

/* Adds what is acknowledged ahead of the place. */
static void fill_ahead(const struct relay *relay, struct db_lane_move *move, struct plan *plan)
{
    struct db_lane_settled *settled = relay->settled + (size_t)move->lane * relay->limits.window_events;
    struct relay_entry *entry = relay_window_unwritten(plan->lane->window)->first;
    for (; entry != NULL && move->settled_count < count_max(relay); entry = entry->next_out) {
        if (!entry->is_planned) {
            add_settled(entry, settled, move);
        }
    }
    plan->is_cut = entry != NULL;
}

/* The least row that names something ahead of the new place. A lower one does no harm but for what a successor has to
 * read, so it is kept for a while. */
static int64_t ahead_from(const struct plan *plan, int64_t seq, size_t ahead_count, bool *ret_is_counted)
{
    const struct relay_lane *lane = plan->lane;
    *ret_is_counted = false;
    if (ahead_count == 0) {
        return 0;
    }
    if (lane->ahead_from == 0) {
        return seq;
    }
    if (seq - lane->ahead_counted_seq < AHEAD_REVIEW_ROWS) {
        return lane->ahead_from;
    }
    *ret_is_counted = true;
    int64_t least = relay_window_written_from(lane->window, plan->count);
    return least < seq ? least : seq;
}

static size_t count_done(const struct relay_entry *entry, size_t count)
{
    size_t done = 0;
    for (size_t i = 0; i < count; i++, entry = entry->next) {
        done += entry->state == RELAY_DONE;
    }
    return done;
}

static bool has_something_to_say(const struct relay *relay, const struct plan *plan, const struct db_lane_move *move,
                                 enum relay_settle_mode mode, int64_t now_ms)
{
    const struct relay_lane *lane = plan->lane;
    if (plan->count > 0 || move->settled_count > 0 || move->is_release ||
        move->claimed_to != lane->written_claimed_to) {
        return true;
    }
    bool is_elsewhere = plan->from != lane->written_from || move->position != lane->written_position;
    return is_elsewhere && (mode == RELAY_SETTLE_ALL || now_ms - lane->written_ms >= relay->limits.idle_write_ms);
}

/* False when the lane has nothing to say. */
static bool plan_move(struct relay *relay, struct relay_lane *lane, enum relay_settle_mode mode, int64_t now_ms,
                      struct plan *ret_plan, struct db_lane_move *ret_move)
{
    struct relay_window *window = lane->window;
    struct relay_entry *first = NULL;
    size_t count = relay_window_settleable(window, count_max(relay), &first);
    *ret_move = (struct db_lane_move){.lane = lane->lane, .seq = lane->seq, .attempt = lane->attempt};
    count = fill_lists(relay, lane, first, count, ret_move);
    struct relay_point point = relay_window_point_after(window, count);
    ret_move->new_attempt = uuid_v7_new(clock_realtime_ms());
    ret_move->from_text = point.from->text;
    ret_move->from_floor = point.from->floor;
    if (point.to != NULL) {
        ret_move->to_text = point.to->text;
        ret_move->to_floor = point.to->floor;
        ret_move->to_ceiling = point.to->ceiling;
    }
    ret_move->position = point.position;
    ret_move->claimed_to = relay_window_claimed_to(window);
    ret_move->claimed_count = (int32_t)relay_window_sent_count(window);
    ret_move->is_release = lane->is_leaving && (count == relay_window_count(window) || relay->is_stopping);
    *ret_plan = (struct plan){.lane = lane, .count = count, .from = point.from->hash};
    fill_ahead(relay, ret_move, ret_plan);
    size_t known_count = relay_window_written_count(window) + ret_move->settled_count;
    ret_move->ahead_from =
        ahead_from(ret_plan, lane->seq + 1, known_count - count_done(first, count), &ret_plan->is_counted);
    return has_something_to_say(relay, ret_plan, ret_move, mode, now_ms);
}

static void apply(struct relay *relay, const struct plan *plan, const struct db_lane_move *move, int64_t now_ms)
{
    struct relay_lane *lane = plan->lane;
    if (move->deferred_count > 0) {
        FAILPOINT("relay.after_deferral");
    }
    lane->seq++;
    lane->attempt = move->new_attempt;
    lane->written_claimed_to = move->claimed_to;
    lane->written_from = plan->from;
    lane->written_position = move->position;
    lane->written_ms = now_ms;
    lane->ahead_from = move->ahead_from;
    lane->ahead_counted_seq = plan->is_counted || move->ahead_from == lane->seq ? lane->seq : lane->ahead_counted_seq;
    lane->deferred_count += (int64_t)move->deferred_count;
    relay->deferred_count += move->deferred_count;
    relay->settled_count += move->settled_count;
    relay_window_written(lane->window, lane->seq);
    relay_window_settled(lane->window, plan->count);
    if (move->is_release) {
        FAILPOINT("relay.after_release");
        relay_claim_forget(relay, lane);
    }
}

/* Short at first, so that a process that never lives for long gets on too. */
static void grow_wait(struct relay *relay)
{
    relay->settle_wait_ms *= 2;
    if (relay->settle_wait_ms > relay->limits.settle_interval_ms) {
        relay->settle_wait_ms = relay->limits.settle_interval_ms;
    }
}

bool relay_settle(struct relay *relay, enum relay_settle_mode mode, int64_t now_ms, struct err *err)
{
    struct plan plans[EVENT_LANE_COUNT];
    struct db_lane_move moves[EVENT_LANE_COUNT];
    size_t count = 0;
    bool is_cut = false;
    relay->full_settle_ms = now_ms + FULL_SETTLE_MS;
    relay->next_settle_ms = now_ms + relay->settle_wait_ms;
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        struct relay_lane *lane = &relay->lanes[i];
        if (lane->is_held && plan_move(relay, lane, mode, now_ms, &plans[count], &moves[count])) {
            is_cut |= plans[count].is_cut;
            count++;
        }
    }
    if (count == 0) {
        return true;
    }
    grow_wait(relay);
    relay->next_settle_ms = is_cut ? now_ms : relay->next_settle_ms;
    FAILPOINT("relay.before_settle");
    if (db_lane_move(relay->db, &relay->owner, moves, count, err) != DB_LANE_WRITTEN) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (moves[i].was_moved) {
            apply(relay, &plans[i], &moves[i], now_ms);
        } else if (!relay_claim_review(relay, plans[i].lane, true, err)) {
            return false;
        }
    }
    return true;
}
