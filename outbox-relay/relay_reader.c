/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading what is new. Lanes at the same place of the same difference are read
 * with one statement. A difference is read as stream B (ids up to the floor of
 * its older snapshot), then stream A by windows of ids; together they are in
 * order of id. The invariant: a difference keeps its `to` until it is finished.
 */
#include "relay.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/failpoint.h"

#define WINDOW_IDS_MAX (INT64_C(1) << 20)

void relay_reader_wake(struct relay *relay)
{
    relay->next_poll_ms = 0;
    relay->poll_interval_ms = relay->limits.poll_min_ms;
}

/* ---- What is idle ---- */

static bool is_idle(const struct relay_lane *lane)
{
    return lane->is_held && !lane->is_leaving && relay_window_range(lane->window) == NULL &&
           relay_window_has_room(lane->window);
}

static const struct relay_lane *first_idle(const struct relay *relay)
{
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        if (is_idle(&relay->lanes[i])) {
            return &relay->lanes[i];
        }
    }
    return NULL;
}

/* Lanes that begin at different snapshots have not met in a common one yet: that is news enough. */
static bool begin_alike(const struct relay *relay, const struct relay_snapshot *from)
{
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        const struct relay_lane *lane = &relay->lanes[i];
        if (is_idle(lane) && relay_window_from(lane->window) != from) {
            return false;
        }
    }
    return true;
}

static bool are_all_idle(const struct relay *relay)
{
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        if (relay->lanes[i].is_held && !is_idle(&relay->lanes[i])) {
            return false;
        }
    }
    return true;
}

/* ---- Reading ---- */

static bool can_read(const struct relay_lane *lane)
{
    return lane->is_held && !lane->is_leaving && relay_window_range(lane->window) != NULL &&
           relay_window_has_room(lane->window);
}

bool relay_reader_has_range(const struct relay *relay)
{
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        if (relay->lanes[i].is_held && relay_window_range(relay->lanes[i].window) != NULL) {
            return true;
        }
    }
    return false;
}

bool relay_reader_can_read(const struct relay *relay)
{
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        if (can_read(&relay->lanes[i])) {
            return true;
        }
    }
    return false;
}

static struct db_outbox_range range_from(const struct relay *relay, const struct relay_snapshot *from, uint32_t lanes)
{
    return (struct db_outbox_range){.from_text = from->text,
                                    .from_floor = from->floor,
                                    .lanes = lanes,
                                    .row_count_max = relay->limits.bite_events,
                                    .bytes_max = relay->limits.bite_bytes};
}

static int64_t least(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* The lanes that are where this one is. */
static uint32_t group_of(const struct relay *relay, const struct relay_lane *lane)
{
    const struct relay_range *range = relay_window_range(lane->window);
    uint32_t group = 0;
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        const struct relay_lane *other = &relay->lanes[i];
        if (!can_read(other)) {
            continue;
        }
        const struct relay_range *its = relay_window_range(other->window);
        if (its->from == range->from && its->to == range->to &&
            relay_window_position(other->window) == relay_window_position(lane->window)) {
            group |= 1U << i;
        }
    }
    return group;
}

static void read_to(struct relay *relay, uint32_t group, int64_t position)
{
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        if ((group >> i & 1U) != 0) {
            relay_window_read_to(relay->lanes[i].window, position);
        }
    }
}

/* As wide as a bite of these lanes is likely to be. An empty window is followed by one twice as wide, so that gaps cost
 * little. */
static void set_window(struct relay *relay, uint32_t group, bool was_empty)
{
    int64_t likely_ids = (int64_t)relay->limits.bite_events * EVENT_LANE_COUNT / __builtin_popcount(group);
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        struct relay_lane *lane = &relay->lanes[i];
        if ((group >> i & 1U) != 0) {
            int64_t twice = 2 * lane->window_ids < WINDOW_IDS_MAX ? 2 * lane->window_ids : WINDOW_IDS_MAX;
            lane->window_ids = was_empty ? twice : likely_ids;
        }
    }
}

/* Gives the events to their lanes, which copy them: a bite is large, and one slow event would keep all of it. */
static bool distribute(struct relay *relay, const struct db_outbox_bite *bite, struct err *err)
{
    for (size_t i = 0; i < bite->count; i++) {
        const struct event *event = &bite->events[i];
        if (!relay_window_add(relay->lanes[event->lane].window, event, err)) {
            return false;
        }
    }
    return true;
}

/* Up to where the next reading goes: through stream B at once, through stream A by windows. */
static int64_t bound_of(const struct relay_range *range, int64_t position, int64_t window_ids)
{
    if (position < range->from->floor) {
        return range->from->floor;
    }
    return least(position + window_ids, range->to->ceiling);
}

/* What was read of these lanes, up to bound or where it is cut. */
static bool take_bite(struct relay *relay, const struct db_outbox_bite *bite, uint32_t group, int64_t bound,
                      struct err *err)
{
    FAILPOINT("relay.after_read");
    int64_t reached = bite->is_cut && bite->count > 0 ? bite->events[bite->count - 1].outbox_id : bound;
    if (!distribute(relay, bite, err)) {
        return false;
    }
    read_to(relay, group, reached);
    return true;
}

/* Where there was something there is more soon. */
static void expect_more(struct relay *relay)
{
    relay_reader_wake(relay);
    relay->next_poll_ms = clock_monotonic_ms() + relay->poll_interval_ms;
}

static bool read_group(struct relay *relay, struct relay_lane *lane, uint32_t group, size_t *ret_count, struct err *err)
{
    const struct relay_range *range = relay_window_range(lane->window);
    int64_t position = relay_window_position(lane->window);
    bool is_late = position < range->from->floor;
    int64_t bound = bound_of(range, position, lane->window_ids);
    *ret_count = 0;
    if ((is_late && !range->has_late) || bound <= position) {
        read_to(relay, group, bound > position ? bound : position);
        return true;
    }
    struct db_outbox_range what = range_from(relay, range->from, group);
    what.to_text = range->to->text;
    struct db_outbox_bite bite;
    bool is_read = is_late ? db_outbox_read_late(relay->db, &what, position, &bite, err)
                           : db_outbox_read_window(relay->db, &what, position, bound, &bite, err);
    if (!is_read) {
        return false;
    }
    *ret_count = bite.count;
    if (!is_late) {
        set_window(relay, group, bite.count == 0);
    }
    bool is_taken = take_bite(relay, &bite, group, bound, err);
    db_outbox_bite_done(&bite);
    return is_taken;
}

bool relay_reader_read(struct relay *relay, size_t *ret_count, struct err *err)
{
    uint32_t served = 0;
    *ret_count = 0;
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        struct relay_lane *lane = &relay->lanes[i];
        if ((served >> i & 1U) != 0 || !can_read(lane)) {
            continue;
        }
        uint32_t group = group_of(relay, lane);
        size_t count = 0;
        if (!read_group(relay, lane, group, &count, err)) {
            return false;
        }
        served |= group;
        *ret_count += count;
        if (count > 0) {
            expect_more(relay);
        }
    }
    return true;
}

/* ---- Polling ---- */

/* One range for all idle lanes that begin where this one does. */
static bool begin_range(struct relay *relay, struct relay_snapshot *from, struct relay_snapshot *to, struct err *err)
{
    struct relay_range *range = relay_range_new(from, to, err);
    if (range == NULL) {
        return false;
    }
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        struct relay_lane *lane = &relay->lanes[i];
        if (is_idle(lane) && relay_window_from(lane->window) == range->from) {
            relay_window_begin(lane->window, range);
        }
    }
    relay_range_unref(&range);
    return true;
}

static bool begin_ranges(struct relay *relay, const struct db_outbox_snapshot *taken, struct err *err)
{
    struct relay_snapshot *to = relay_snapshot_new(taken->text, taken->floor, taken->ceiling, err);
    if (to == NULL) {
        return false;
    }
    FAILPOINT("relay.after_snapshot");
    bool is_begun = true;
    const struct relay_lane *lane;
    while (is_begun && (lane = first_idle(relay)) != NULL) {
        is_begun = begin_range(relay, relay_window_from(lane->window), to, err);
    }
    relay_snapshot_unref(&to);
    return is_begun;
}

static uint32_t all_idle(const struct relay *relay)
{
    uint32_t lanes = 0;
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        lanes |= is_idle(&relay->lanes[i]) ? 1U << i : 0;
    }
    return lanes;
}

/* Begins the difference up to what the look found, and takes in its first bite. */
static bool take_in(struct relay *relay, const struct db_outbox_look *look, uint32_t lanes, int64_t until,
                    size_t *ret_count, struct err *err)
{
    if (!begin_ranges(relay, &look->snapshot, err)) {
        return false;
    }
    *ret_count = look->bite.count;
    return !look->is_read || take_bite(relay, &look->bite, lanes, least(until, look->snapshot.ceiling), err);
}

bool relay_reader_poll(struct relay *relay, int64_t now_ms, size_t *ret_count, struct err *err)
{
    const struct relay_lane *lane = first_idle(relay);
    *ret_count = 0;
    if (lane == NULL || now_ms < relay->next_poll_ms || relay->has_last_round) {
        return true;
    }
    struct relay_snapshot *from = relay_window_from(lane->window);
    uint32_t lanes = all_idle(relay);
    bool are_alike = begin_alike(relay, from);
    relay->has_last_round = relay->is_once && are_alike && are_all_idle(relay);
    struct db_outbox_range range = range_from(relay, from, lanes);
    int64_t until = from->floor + lane->window_ids;
    struct db_outbox_look look;
    if (!relay->look(relay->db, are_alike ? &range : NULL, until, &look, err)) {
        return false;
    }
    relay->next_poll_ms = now_ms + relay->poll_interval_ms;
    relay->poll_interval_ms = least(2 * relay->poll_interval_ms, relay->limits.poll_max_ms);
    bool is_good = !look.has_news || take_in(relay, &look, lanes, until, ret_count, err);
    db_outbox_look_done(&look);
    if (is_good && *ret_count > 0) {
        expect_more(relay);
    }
    return is_good;
}
