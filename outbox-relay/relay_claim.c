/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking lanes, keeping them over a reconnect, losing them. The invariant: a
 * held lane's window begins at the place of a row of its log that is ours.
 */
#include "relay.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/text.h"

#define ANY_CEILING (-1)
#define SETTLE_FIRST_MS 10

const struct relay_limits relay_limits_default = {
    .window_events = 10000,
    .window_bytes = (size_t)2 * 1024 * 1024,
    .bite_events = 1000,
    .bite_bytes = (int64_t)1024 * 1024,
    .outstanding_events = 4000,
    .settle_interval_ms = 200,
    .poll_min_ms = 20,
    .poll_max_ms = 500,
    .idle_write_ms = 10000,
    .deferred_max = 100000,
};

static int in_flight_per_key(void *context, const char *topic)
{
    const struct relay *relay = context;
    for (size_t i = 0; i < relay->topic_count; i++) {
        if (strcmp(relay->topics[i].name, topic) == 0) {
            return relay->topics[i].in_flight_per_key;
        }
    }
    return 1;
}

bool relay_init(struct relay *relay, const struct relay_limits *limits, const struct db_lane_owner *owner,
                struct relay_pump *pump, struct err *err)
{
    *relay = (struct relay){.limits = *limits,
                            .owner = *owner,
                            .pump = pump,
                            .look = db_outbox_look,
                            .poll_interval_ms = limits->poll_min_ms};
    relay->settle_wait_ms = limits->settle_interval_ms < SETTLE_FIRST_MS ? limits->settle_interval_ms : SETTLE_FIRST_MS;
    size_t room = EVENT_LANE_COUNT * limits->window_events;
    relay->settled = calloc(room, sizeof *relay->settled);
    relay->deferred = calloc(room, sizeof *relay->deferred);
    bool is_complete = relay->settled != NULL && relay->deferred != NULL;
    if (!is_complete) {
        err_set(err, ERR_FATAL, "memory", "no memory for %zu events", room);
    }
    const struct relay_window_options options = {.entry_count_max = limits->window_events,
                                                 .bytes_max = limits->window_bytes,
                                                 .in_flight_per_key = in_flight_per_key,
                                                 .context = relay};
    for (int i = 0; is_complete && i < EVENT_LANE_COUNT; i++) {
        relay->lanes[i] = (struct relay_lane){.lane = i, .window_ids = limits->bite_events};
        relay->lanes[i].window = relay_window_new(&options, err);
        is_complete = relay->lanes[i].window != NULL;
    }
    if (!is_complete) {
        relay_done(relay);
    }
    return is_complete;
}

void relay_done(struct relay *relay)
{
    relay_pump_free(&relay->pump);
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        relay_window_free(&relay->lanes[i].window);
    }
    free(relay->settled);
    free(relay->deferred);
    relay->settled = NULL;
    relay->deferred = NULL;
}

uint32_t relay_claim_held(const struct relay *relay)
{
    uint32_t held = 0;
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        held |= relay->lanes[i].is_held ? 1U << i : 0;
    }
    return held;
}

static bool is_same(const struct relay_snapshot *snapshot, const char *text, int64_t floor, int64_t ceiling)
{
    return snapshot->floor == floor && (ceiling == ANY_CEILING || snapshot->ceiling == ceiling) &&
           strcmp(snapshot->text, text) == 0;
}

/* Lanes at the same place share their snapshots, so that they are read together. */
static struct relay_snapshot *share(struct relay *relay, const char *text, int64_t floor, int64_t ceiling,
                                    struct err *err)
{
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        const struct relay_lane *lane = &relay->lanes[i];
        if (!lane->is_held) {
            continue;
        }
        const struct relay_range *range = relay_window_range(lane->window);
        struct relay_snapshot *from = range == NULL ? relay_window_from(lane->window) : range->from;
        if (is_same(from, text, floor, ceiling)) {
            return relay_snapshot_ref(from);
        }
        if (range != NULL && is_same(range->to, text, floor, ceiling)) {
            return relay_snapshot_ref(range->to);
        }
    }
    return relay_snapshot_new(text, floor, ceiling == ANY_CEILING ? floor : ceiling, err);
}

static bool hold(void *context, const char *topic, const char *key, struct err *err)
{
    return relay_window_hold(context, topic, key, err);
}

/* Begins the window at a row's place. */
static bool begin_at(struct relay *relay, struct relay_lane *lane, const struct db_lane_row *row, bool keeps_done,
                     struct err *err)
{
    struct relay_point point = {.from = share(relay, row->from_text, row->from_floor, ANY_CEILING, err)};
    if (point.from == NULL) {
        return false;
    }
    bool is_begun = true;
    relay_window_reset(lane->window, &point, keeps_done);
    relay_window_set_claimed_to(lane->window, row->claimed_to);
    if (row->to_text != NULL) {
        point.to = share(relay, row->to_text, row->to_floor, row->to_ceiling, err);
        struct relay_range *range = point.to == NULL ? NULL : relay_range_new(point.from, point.to, err);
        is_begun = range != NULL;
        if (is_begun) {
            relay_window_begin(lane->window, range);
            relay_window_read_to(lane->window, row->position);
        }
        relay_range_unref(&range);
        relay_snapshot_unref(&point.to);
    }
    relay_snapshot_unref(&point.from);
    return is_begun;
}

static bool know(void *context, const struct db_lane_ahead *ahead, struct err *err)
{
    return relay_window_know(context, ahead->id, ahead->partition, ahead->offset, ahead->seq, err);
}

/* The row is ours and the last: from here on the lane is held. The held keys are read after the row was committed. */
static bool take_place(struct relay *relay, struct relay_lane *lane, const struct db_lane_row *row, bool keeps_done,
                       struct err *err)
{
    lane->is_held = false; /* Its own old place is not to be shared with. */
    if (!begin_at(relay, lane, row, keeps_done, err) || !db_lane_each_ahead(relay->db, row, know, lane->window, err) ||
        !db_lane_each_held_key(relay->db, lane->lane, hold, lane->window, &lane->deferred_count, err)) {
        return false;
    }
    const struct relay_range *range = relay_window_range(lane->window);
    const struct relay_snapshot *from = range == NULL ? relay_window_from(lane->window) : range->from;
    lane->is_held = true;
    lane->seq = row->seq;
    lane->attempt = row->attempt;
    lane->ahead_from = row->ahead_from;
    lane->ahead_counted_seq = 0;
    lane->written_claimed_to = row->claimed_to;
    lane->written_from = from->hash;
    lane->written_position = row->position;
    lane->written_ms = clock_monotonic_ms();
    relay_reader_wake(relay);
    return true;
}

bool relay_claim_lane(struct relay *relay, int number, bool *ret_is_taken, struct err *err)
{
    struct relay_lane *lane = &relay->lanes[number];
    assert(!lane->is_held);
    struct uuid attempt = uuid_v7_new(clock_realtime_ms());
    enum db_lane_take take;
    struct db_lane_row row;
    *ret_is_taken = false;
    if (!db_lane_take(relay->db, &relay->owner, number, &attempt, &take, &row, err)) {
        return false;
    }
    if (take == DB_LANE_BUSY) {
        return true;
    }
    lane->is_leaving = false;
    lane->deleted_to = 0;
    bool is_placed = take_place(relay, lane, &row, true, err);
    if (is_placed) {
        log_info("relay.lane_taken", LOG_FIELDS(LOG_INT("lane", number), LOG_INT("seq", row.seq)),
                 "begins at %s %" PRId64, row.from_text, row.position);
    }
    db_lane_row_done(&row);
    *ret_is_taken = is_placed;
    return is_placed;
}

void relay_claim_leave(struct relay_lane *lane)
{
    assert(lane->is_held && !lane->is_leaving);
    lane->is_leaving = true;
    relay_window_stop_reading(lane->window);
}

void relay_claim_forget(struct relay *relay, struct relay_lane *lane)
{
    (void)relay;
    lane->is_held = false;
    lane->is_leaving = false;
    relay_window_reset(lane->window, NULL, true);
}

bool relay_claim_review(struct relay *relay, struct relay_lane *lane, bool keeps_done, struct err *err)
{
    struct db_lane_tail tail;
    if (!db_lane_read_tail(relay->db, lane->lane, lane->seq, &relay->owner.incarnation, &tail, err)) {
        return false;
    }
    FAILPOINT("relay.after_tail");
    bool is_reviewed = true;
    switch (relay_lane_judge(&tail, lane->seq, &lane->attempt, &relay->owner.incarnation)) {
    case RELAY_LANE_FENCED:
        relay->fenced_count++;
        relay_claim_forget(relay, lane);
        log_warning("relay.fenced", LOG_FIELDS(LOG_INT("lane", lane->lane), LOG_INT("seq", tail.last.seq)),
                    "another relay has moved the lane; we let it be");
        break;
    case RELAY_LANE_ADOPTED:
        log_info("relay.row_adopted", LOG_FIELDS(LOG_INT("lane", lane->lane), LOG_INT("seq", tail.last.seq)),
                 "the log's last row is ours, though we did not know it");
        is_reviewed = take_place(relay, lane, &tail.last, keeps_done, err);
        break;
    case RELAY_LANE_UNCHANGED: is_reviewed = take_place(relay, lane, &tail.last, keeps_done, err); break;
    }
    db_lane_row_done(&tail.last);
    return is_reviewed;
}

bool relay_claim_resume(struct relay *relay, bool is_same_server, struct err *err)
{
    uint32_t held = relay_claim_held(relay);
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        if ((held >> i & 1U) != 0 && !relay_claim_review(relay, &relay->lanes[i], is_same_server, err)) {
            relay->lanes[i].is_held = true; /* Not decided yet: the next session asks again. */
            return false;
        }
    }
    return true;
}
