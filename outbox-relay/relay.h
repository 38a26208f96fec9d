/* SPDX-License-Identifier: Apache-2.0
 *
 * One relay: the lanes it holds, the connection it reads and settles on, the
 * pump. The parts of this struct are moved by relay_reader (what is new),
 * relay_settle (what is done), relay_claim (which lanes) and relay_loop (when).
 * One thread uses it; the lease has its own.
 */
#ifndef RELAY_H
#define RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "db/db.h"
#include "db/db_lane.h"
#include "db/db_outbox.h"
#include "domain/event.h"
#include "relay_lane.h"
#include "relay_pump.h"

#define RELAY_TOPIC_COUNT_MAX 256

struct relay_limits {
    size_t window_events; /* Of one lane. */
    size_t window_bytes;
    int32_t bite_events;
    int64_t bite_bytes;
    size_t outstanding_events; /* Handed to the broker's client. */
    int64_t settle_interval_ms;
    int64_t poll_min_ms;
    int64_t poll_max_ms;
    int64_t idle_write_ms; /* How often an idle lane's place is written. */
    int64_t deferred_max;  /* Deferred events of a lane; then it waits. */
};

/* The defaults of the settings. */
extern const struct relay_limits relay_limits_default;

/* A topic that allows more than one unacknowledged event per key. */
struct relay_topic {
    char name[256];
    int in_flight_per_key;
};

/* How a snapshot is taken, and perhaps read up to: from range on, or, for NULL, in any case. One way is right; tests
 * put wrong ones in its place and must notice. */
typedef bool relay_look(struct db *db, const struct db_outbox_range *range, int64_t until,
                        struct db_outbox_look *ret_look, struct err *err);

struct relay {
    struct relay_limits limits;
    struct db *db; /* Owned by the loop. */
    struct db_lane_owner owner;
    struct relay_lane lanes[EVENT_LANE_COUNT];
    struct relay_pump *pump;
    relay_look *look;
    struct relay_topic topics[RELAY_TOPIC_COUNT_MAX];
    size_t topic_count;
    int64_t next_poll_ms;
    int64_t poll_interval_ms;
    int64_t next_settle_ms;
    int64_t full_settle_ms; /* The same for a lane without room. */
    int64_t settle_wait_ms; /* Grows to settle_interval_ms. */
    int64_t next_retry_ms;  /* Of what the pump could not hand over. */
    int64_t retry_interval_ms;
    struct err delay; /* Why something could not be handed over at the last try; ERR_NONE when all could. */
    uint64_t fenced_count;
    uint64_t deferred_count;
    uint64_t settled_count;
    bool is_once;                    /* Only what is pending now: one common difference, then no more. */
    bool is_stopping;                /* Lanes that leave are let go, whatever is still on its way. */
    bool has_last_round;             /* It has begun. */
    struct db_lane_settled *settled; /* Room for the rows of one settling. */
    struct db_lane_deferred *deferred;
};

/* Fills a relay that holds nothing. The pump is taken over by relay_done. */
bool relay_init(struct relay *relay, const struct relay_limits *limits, const struct db_lane_owner *owner,
                struct relay_pump *pump, struct err *err) MUST_CHECK;
void relay_done(struct relay *relay);

/* ---- relay_claim.c: which lanes ---- */

/* Takes a lane if it is free, and begins at the place of its log. */
bool relay_claim_lane(struct relay *relay, int lane, bool *ret_is_taken, struct err *err) MUST_CHECK;

/* After a reconnect: reads the log's end of each held lane and begins there anew, or lets a fenced lane be. */
bool relay_claim_resume(struct relay *relay, bool is_same_server, struct err *err) MUST_CHECK;

/* Reads the log's end of one lane after a row of ours was not added. */
bool relay_claim_review(struct relay *relay, struct relay_lane *lane, bool keeps_done, struct err *err) MUST_CHECK;

/* Forgets a lane without a word to the database: it is somebody else's. */
void relay_claim_forget(struct relay *relay, struct relay_lane *lane);

/* Reads no more of a lane, and lets it go when what was begun is settled. */
void relay_claim_leave(struct relay_lane *lane);

uint32_t relay_claim_held(const struct relay *relay); /* Bit n is lane n. */

/* ---- relay_reader.c: what is new ---- */

/* Looks for news in the lanes that are read to the end, when the time has come. *ret_count is the number of events
 * that came with it. */
bool relay_reader_poll(struct relay *relay, int64_t now_ms, size_t *ret_count, struct err *err) MUST_CHECK;

/* Reads a bite of every difference that has room. *ret_count is the number of events. */
bool relay_reader_read(struct relay *relay, size_t *ret_count, struct err *err) MUST_CHECK;

/* Whether a held lane is inside a difference. */
bool relay_reader_has_range(const struct relay *relay);

/* Whether a lane could be read on at once. */
bool relay_reader_can_read(const struct relay *relay);

/* Something may have happened: the next poll is due. */
void relay_reader_wake(struct relay *relay);

/* ---- relay_settle.c: what is done ---- */

enum relay_settle_mode {
    RELAY_SETTLE_DUE, /* Only what has something to say. */
    RELAY_SETTLE_ALL, /* Every place, as before a stop. */
};

/* Adds a row to the logs of the held lanes. A lane that leaves is let go with the row that settles its last event. */
bool relay_settle(struct relay *relay, enum relay_settle_mode mode, int64_t now_ms, struct err *err) MUST_CHECK;

/* ---- relay_step.c ---- */

/* Hands over what is ready in all lanes. */
bool relay_step_send(struct relay *relay, int64_t now_ms, struct err *err) MUST_CHECK;

/* One turn: collect reports (waiting up to wait_ms while some are missing), settle when due, poll and read, send.
 * *ret_is_busy: there is more to do at once. */
bool relay_step(struct relay *relay, int wait_ms, bool *ret_is_busy, struct err *err) MUST_CHECK;

/* Whether a lane has no room for more events, and would have if it settled. */
bool relay_step_is_full(const struct relay *relay);

/* Events that are read and not settled. */
size_t relay_step_unsettled(const struct relay *relay);

#endif
