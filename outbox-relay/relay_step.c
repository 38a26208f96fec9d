/* SPDX-License-Identifier: Apache-2.0
 *
 * One turn of the relay. No database transaction is open while the broker is
 * talked to: each statement here ends by itself.
 */
#include "relay.h"

#include "base/clock.h"
#include "base/failpoint.h"

#define RETRY_MIN_MS 50
#define RETRY_MAX_MS 1000

bool relay_step_send(struct relay *relay, int64_t now_ms, struct err *err)
{
    bool is_retry = now_ms >= relay->next_retry_ms;
    if (is_retry) {
        bool has_failed = relay->delay.kind != ERR_NONE;
        relay->retry_interval_ms = has_failed ? 2 * relay->retry_interval_ms : RETRY_MIN_MS;
        relay->retry_interval_ms = relay->retry_interval_ms > RETRY_MAX_MS ? RETRY_MAX_MS : relay->retry_interval_ms;
        relay->next_retry_ms = now_ms + relay->retry_interval_ms;
        err_clear(&relay->delay);
    }
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        struct relay_lane *lane = &relay->lanes[i];
        if (!lane->is_held) {
            continue;
        }
        if (is_retry) {
            relay_window_retry(lane->window);
        }
        if (!relay_pump_send(relay->pump, lane->window, &relay->delay, err)) {
            return false;
        }
    }
    return true;
}

size_t relay_step_unsettled(const struct relay *relay)
{
    size_t count = 0;
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        count += relay->lanes[i].is_held ? relay_window_count(relay->lanes[i].window) : 0;
    }
    return count;
}

bool relay_step_is_full(const struct relay *relay)
{
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        struct relay_entry *first = NULL;
        const struct relay_lane *lane = &relay->lanes[i];
        if (lane->is_held && relay_window_count(lane->window) >= relay->limits.window_events &&
            relay_window_settleable(lane->window, 1, &first) > 0) {
            return true;
        }
    }
    return false;
}

/* A lane that is full of events reads nothing until it has settled, so it does not wait for its time. One that is full
 * of bytes gains nothing by it: they are free once they are acknowledged. */
static bool is_settle_due(const struct relay *relay, int64_t now_ms)
{
    return now_ms >= relay->next_settle_ms || (now_ms >= relay->full_settle_ms && relay_step_is_full(relay));
}

bool relay_step(struct relay *relay, int wait_ms, bool *ret_is_busy, struct err *err)
{
    bool is_waiting = relay_pump_outstanding_count(relay->pump) > 0;
    size_t reports = relay_pump_collect(relay->pump, is_waiting ? wait_ms : 0);
    int64_t now_ms = clock_monotonic_ms();
    FAILPOINT("relay.after_collect");
    if (is_settle_due(relay, now_ms) && !relay_settle(relay, RELAY_SETTLE_DUE, now_ms, err)) {
        return false;
    }
    size_t news_count = 0;
    size_t count = 0;
    if (!relay_reader_poll(relay, now_ms, &news_count, err) || !relay_reader_read(relay, &count, err) ||
        !relay_step_send(relay, now_ms, err)) {
        return false;
    }
    *ret_is_busy = reports > 0 || news_count + count > 0 || relay_reader_can_read(relay);
    return true;
}
