/* SPDX-License-Identifier: Apache-2.0
 *
 * When things happen. The invariant: nothing is published and nothing settled
 * without a lease, and no lane of an earlier lease outlives it.
 */
#include "relay_loop.h"

#include <assert.h>
#include <poll.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/rand.h"
#include "base/stop.h"
#include "base/text.h"
#include "db/db_lease.h"
#include "db/db_migrate.h"
#include "db/db_partition.h"
#include "relay_hint.h"
#include "relay_lease.h"

#define SURVEY_MS 1000
#define HOUSEKEEPING_MS 10000
#define DELAY_LOG_MS 1000
#define SILENT_LOG_MS 5000 /* Without a report though some are missing. */
#define BUSY_WAIT_MS 1     /* For reports, where nothing else wakes us. */
#define BULK_COUNT 256     /* So many under way: their reports are gathered for a while, not each taken at once. */
#define NO_LEASE_WAIT_MS 20
#define REOPEN_WAIT_MS 200

struct loop {
    const struct relay_loop_options *options;
    struct relay relay;
    struct relay_lease *lease;
    struct db *db;
    bool has_server;
    struct db_server server; /* That answered in the last session. */
    uint64_t lease_epoch;
    int hint_fd;
    int64_t next_survey_ms;
    int64_t next_housekeeping_ms;
    uint64_t report_count; /* When it changed last, or none was missing: reported_ms. */
    int64_t reported_ms;
    int64_t delayed_since_ms;
    char delay_code[ERR_CODE_SIZE]; /* Of the delay that was logged last. */
    bool is_once_done;
};

/* ---- Lease and pump ---- */

static void on_lease_expired(void *context)
{
    relay_pump_purge(context, "lease_lost", "the lease has run out");
}

/* All lanes of a lease that ran out are somebody else's, for all we know. */
static void forget_lanes(struct loop *loop)
{
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        if (loop->relay.lanes[i].is_held) {
            relay_claim_forget(&loop->relay, &loop->relay.lanes[i]);
        }
    }
    loop->next_survey_ms = 0;
}

static bool check_lease(struct loop *loop, bool *ret_is_held, struct err *err)
{
    uint64_t epoch;
    enum relay_lease_state state = relay_lease_state(loop->lease, &epoch);
    if (state == RELAY_LEASE_OUSTED) {
        return err_set(err, ERR_FATAL, "relay_ousted", "another process runs under the name %s", loop->options->name);
    }
    if (epoch != loop->lease_epoch) {
        loop->lease_epoch = epoch;
        forget_lanes(loop);
    }
    *ret_is_held = state == RELAY_LEASE_HELD;
    if (*ret_is_held) {
        health_set_ready(loop->options->health, "lease");
    } else {
        char reason[ERR_TEXT_SIZE];
        relay_lease_reason(loop->lease, reason, sizeof reason);
        health_set_unready(loop->options->health, "lease", "%s", reason);
    }
    return true;
}

/* A fatal error of the producer, or a purge: a new handle, and everything that has no report goes out again. */
static void mend_pump(struct loop *loop)
{
    struct err err = ERR_INIT;
    if (!relay_pump_is_spent(loop->relay.pump)) {
        return;
    }
    struct err why = relay_pump_spent_why(loop->relay.pump);
    log_warning("relay.publisher_spent", LOG_FIELDS(LOG_ERR(&why)),
                "the publisher cannot go on: %s; a new one takes over", why.text);
    if (!relay_pump_reopen(loop->relay.pump, &err)) {
        log_error("relay.publisher_not_opened", LOG_FIELDS(LOG_ERR(&err)), "%s", err.text);
        stop_wait_ms(REOPEN_WAIT_MS);
    }
}

/* Why something waits. A client that has met its broker takes events without one, too: then it is the reports that do
 * not come. */
static struct err delay_of(struct loop *loop, bool is_reachable, int64_t now_ms)
{
    struct relay *relay = &loop->relay;
    const struct relay_pump_counts *counts = relay_pump_counts(relay->pump);
    uint64_t report_count = counts->acknowledged + counts->refused + counts->failed;
    size_t outstanding_count = relay_pump_outstanding_count(relay->pump);
    if (outstanding_count == 0 || report_count != loop->report_count) {
        loop->report_count = report_count;
        loop->reported_ms = now_ms;
    }
    struct err delay = relay->delay;
    int64_t silent_ms = now_ms - loop->reported_ms;
    if (delay.kind == ERR_NONE && !is_reachable && silent_ms > DELAY_LOG_MS) {
        (void)err_set(&delay, ERR_TRANSIENT, "broker_unreachable",
                      "no broker answers, events were sent and not acknowledged");
    } else if (delay.kind == ERR_NONE && silent_ms > SILENT_LOG_MS) {
        (void)err_set(&delay, ERR_TRANSIENT, "broker_silent", "nothing was acknowledged for %d s",
                      SILENT_LOG_MS / 1000);
    }
    return delay;
}

/* A topic that is new to the publisher is always unavailable for a moment. */
static void watch_broker(struct loop *loop)
{
    int64_t now_ms = clock_monotonic_ms();
    struct publisher *publisher = relay_pump_publisher(loop->relay.pump);
    bool is_reachable = publisher != NULL && loop->options->is_reachable(publisher);
    struct err delay = delay_of(loop, is_reachable, now_ms);
    if (!is_reachable) {
        health_set_unready(loop->options->health, "kafka", "no broker answers");
    } else {
        health_set_ready(loop->options->health, "kafka");
    }
    if (delay.kind == ERR_NONE) {
        loop->delayed_since_ms = now_ms;
    }
    bool is_long = now_ms - loop->delayed_since_ms >= DELAY_LOG_MS;
    if (text_is_equal(delay.code, loop->delay_code) || (delay.kind != ERR_NONE && !is_long)) {
        return;
    }
    if (delay.kind != ERR_NONE) {
        log_warning("relay.publish_delayed", LOG_FIELDS(LOG_ERR(&delay)), "%s; we keep trying", delay.text);
    } else {
        log_info("relay.publish_resumed", LOG_FIELDS(LOG_TEXT("code", loop->delay_code)),
                 "nothing is delayed any more");
    }
    text_copy(loop->delay_code, sizeof loop->delay_code, delay.code);
}

/* ---- Lanes ---- */

static void leave_surplus(struct loop *loop, int surplus)
{
    for (int i = EVENT_LANE_COUNT - 1; i >= 0 && surplus > 0; i--) {
        struct relay_lane *lane = &loop->relay.lanes[i];
        if (lane->is_held && !lane->is_leaving) {
            relay_claim_leave(lane);
            surplus--;
        }
    }
}

static int count_leaving(const struct relay *relay)
{
    int count = 0;
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        count += relay->lanes[i].is_held && relay->lanes[i].is_leaving;
    }
    return count;
}

static bool take_free(struct loop *loop, uint32_t lanes, int count_max, struct err *err)
{
    for (int i = 0; i < EVENT_LANE_COUNT && count_max > 0; i++) {
        bool is_taken = false;
        if ((lanes >> i & 1U) == 0 || loop->relay.lanes[i].is_held) {
            continue;
        }
        if (!relay_claim_lane(&loop->relay, i, &is_taken, err)) {
            return false;
        }
        count_max -= is_taken;
    }
    return true;
}

/* Live relays share the lanes: nobody holds more than the equal part, rounded up. What an earlier process of our name
 * held is ours whatever our part is: while our lease lives nobody else may take it, so we take all of it and then leave
 * what is too much. */
static bool share_lanes(struct loop *loop, struct err *err)
{
    struct db_lease_survey survey;
    if (!db_lease_survey(loop->db, &loop->relay.owner, &survey, err) ||
        !take_free(loop, survey.own_lanes, EVENT_LANE_COUNT, err)) {
        return false;
    }
    int live = survey.live_relay_count > 0 ? survey.live_relay_count : 1;
    int share = loop->options->is_once ? EVENT_LANE_COUNT : (EVENT_LANE_COUNT + live - 1) / live;
    int held = __builtin_popcount(relay_claim_held(&loop->relay));
    int staying = held - count_leaving(&loop->relay);
    if (staying > share) {
        leave_surplus(loop, staying - share);
    }
    return held >= share || take_free(loop, survey.free_lanes, share - held, err);
}

/* ---- Housekeeping ---- */

static void add_topic(void *context, const char *topic, int in_flight_per_key)
{
    struct relay *relay = context;
    if (relay->topic_count < RELAY_TOPIC_COUNT_MAX) {
        struct relay_topic *added = &relay->topics[relay->topic_count];
        if (text_copy(added->name, sizeof added->name, topic)) {
            added->in_flight_per_key = in_flight_per_key;
            relay->topic_count++;
        }
    }
}

static bool read_topics(struct loop *loop, struct err *err)
{
    loop->relay.topic_count = 0;
    return db_outbox_each_topic(loop->db, add_topic, &loop->relay, err);
}

static void make_partitions(struct loop *loop)
{
    struct err err = ERR_INIT;
    int made = 0;
    int64_t ids_ahead = 0;
    int64_t ids_a_day = 0;
    if (!db_partition_make(loop->db, &made, &ids_ahead, &ids_a_day, &err)) {
        log_warning("relay.partitions_not_made", LOG_FIELDS(LOG_ERR(&err)), "%s; we try again", err.text);
        return;
    }
    if (made > 0) {
        log_info("relay.partitions_made", LOG_FIELDS(LOG_INT("count", made)), "%lld ids ahead", (long long)ids_ahead);
    }
    if (ids_ahead < ids_a_day) {
        health_set_unready(loop->options->health, "partitions", "the outbox has room for %lld more events only",
                           (long long)ids_ahead);
    } else {
        health_set_ready(loop->options->health, "partitions");
    }
}

static bool keep_house(struct loop *loop, struct err *err)
{
    for (int i = 0; i < EVENT_LANE_COUNT; i++) {
        struct relay_lane *lane = &loop->relay.lanes[i];
        int64_t count;
        if (lane->is_held && !db_lane_delete_old(loop->db, i, &lane->deleted_to, &count, err)) {
            return false;
        }
    }
    FAILPOINT("relay.after_old_rows");
    make_partitions(loop);
    return db_is_usable(loop->db) ? read_topics(loop, err)
                                  : err_set(err, ERR_TRANSIENT, "connection_lost", "the connection was lost");
}

/* ---- Turns ---- */

static int64_t next_event_ms(const struct loop *loop, int64_t now_ms)
{
    const struct relay *relay = &loop->relay;
    int64_t until_ms = loop->next_survey_ms;
    if (relay_claim_held(relay) != 0 && relay->next_poll_ms < until_ms) {
        until_ms = relay->next_poll_ms;
    }
    if (relay_step_unsettled(relay) > 0 && relay->next_settle_ms < until_ms) {
        until_ms = relay->next_settle_ms;
    }
    if (relay->delay.kind != ERR_NONE && relay->next_retry_ms < until_ms) {
        until_ms = relay->next_retry_ms;
    }
    if (relay_step_is_full(relay) && relay->full_settle_ms < until_ms) {
        until_ms = relay->full_settle_ms;
    }
    return until_ms > now_ms ? until_ms : now_ms + 1;
}

/* Sleeps until something is due, a hint or a report comes, or a stop is asked for. In bulk a report wakes nobody. */
static void wait_for_work(struct loop *loop, int64_t now_ms)
{
    int reports[RELAY_PUMP_FD_COUNT];
    relay_pump_report_fds(loop->relay.pump, reports);
    struct pollfd fds[] = {{.fd = stop_fd(), .events = POLLIN},
                           {.fd = loop->hint_fd, .events = POLLIN},
                           {.fd = reports[0], .events = POLLIN},
                           {.fd = reports[1], .events = POLLIN}};
    bool is_blind = relay_pump_outstanding_count(loop->relay.pump) >= (reports[0] < 0 ? 1 : BULK_COUNT);
    poll(fds, is_blind ? 2 : 4, is_blind ? BUSY_WAIT_MS : (int)(next_event_ms(loop, now_ms) - now_ms));
}

/* --once has done its part when there was no free lane, or its lanes are read to the end and settled. */
static bool is_once_done(const struct loop *loop)
{
    if (!loop->options->is_once || loop->next_survey_ms == 0) {
        return false;
    }
    return relay_claim_held(&loop->relay) == 0 ||
           (loop->relay.has_last_round && relay_step_unsettled(&loop->relay) == 0 &&
            !relay_reader_has_range(&loop->relay));
}

static bool turn(struct loop *loop, bool *ret_is_busy, struct err *err)
{
    int64_t now_ms = clock_monotonic_ms();
    health_heartbeat(loop->options->health);
    relay_metrics_update(loop->options->metrics, &loop->relay);
    bool is_held = false;
    if (!check_lease(loop, &is_held, err)) {
        return false;
    }
    mend_pump(loop);
    watch_broker(loop);
    if (!is_held) {
        *ret_is_busy = true;
        stop_wait_ms(NO_LEASE_WAIT_MS);
        return true;
    }
    if (now_ms >= loop->next_survey_ms) {
        loop->next_survey_ms = now_ms + SURVEY_MS;
        if (!share_lanes(loop, err)) {
            return false;
        }
    }
    if (now_ms >= loop->next_housekeeping_ms) {
        loop->next_housekeeping_ms = now_ms + HOUSEKEEPING_MS;
        if (!keep_house(loop, err)) {
            return false;
        }
    }
    if (relay_hint_take(loop->hint_fd)) {
        relay_reader_wake(&loop->relay);
    }
    return relay_step(&loop->relay, 0, ret_is_busy, err);
}

static bool run_turns(struct loop *loop, struct err *err)
{
    while (!stop_requested()) {
        bool is_busy = false;
        if (!turn(loop, &is_busy, err)) {
            return false;
        }
        if (is_once_done(loop)) {
            loop->is_once_done = true;
            return true;
        }
        if (!is_busy) {
            wait_for_work(loop, clock_monotonic_ms());
        }
    }
    return true;
}

/* Reads nothing more, finishes what was begun, and lets the lanes go; at the deadline, whatever is on its way. */
static bool drain(struct loop *loop, struct err *err)
{
    int64_t deadline_ms = clock_monotonic_ms() + loop->options->drain_timeout_ms;
    bool is_held = false;
    leave_surplus(loop, EVENT_LANE_COUNT);
    FAILPOINT("relay.draining");
    loop->relay.next_settle_ms = 0; /* Lanes with nothing in flight go at once. */
    while (relay_claim_held(&loop->relay) != 0 && clock_monotonic_ms() < deadline_ms) {
        bool is_busy = false;
        health_heartbeat(loop->options->health);
        relay_metrics_update(loop->options->metrics, &loop->relay);
        mend_pump(loop);
        if (!check_lease(loop, &is_held, err) || !is_held || !relay_step(&loop->relay, BUSY_WAIT_MS, &is_busy, err)) {
            return err->kind == ERR_NONE;
        }
        if (!is_busy && relay_pump_outstanding_count(loop->relay.pump) == 0) {
            poll(NULL, 0, BUSY_WAIT_MS);
        }
    }
    loop->relay.is_stopping = true;
    if (!check_lease(loop, &is_held, err)) {
        return false;
    }
    return !is_held || relay_settle(&loop->relay, RELAY_SETTLE_ALL, clock_monotonic_ms(), err);
}

/* ---- Sessions ---- */

static bool connect_db(struct loop *loop, struct err *err)
{
    if (loop->db != NULL) {
        return db_reset(loop->db, err);
    }
    loop->db = db_open(&loop->options->database, err);
    loop->relay.db = loop->db;
    return loop->db != NULL;
}

/* In-memory progress dies with its connection. What is known to be acknowledged stays known on the same server only. */
static bool begin_session(struct loop *loop, struct err *err)
{
    if (!connect_db(loop, err) || !db_migrate_check_version(loop->db, err) ||
        !db_outbox_check_sequence(loop->db, err) || !read_topics(loop, err)) {
        return false;
    }
    bool is_same_server = loop->has_server && db_server_equals(&loop->server, db_server(loop->db));
    if (loop->has_server && !is_same_server) {
        relay_pump_purge(loop->relay.pump, "server_changed", "the database is another server than before");
        mend_pump(loop);
    }
    loop->server = *db_server(loop->db);
    loop->has_server = true;
    bool is_held = false;
    if (!check_lease(loop, &is_held, err) || !relay_claim_resume(&loop->relay, is_same_server, err)) {
        return false;
    }
    make_partitions(loop);
    loop->next_survey_ms = 0;
    loop->next_housekeeping_ms = clock_monotonic_ms() + HOUSEKEEPING_MS;
    health_set_ready(loop->options->health, "database");
    log_info("relay.session_begun", LOG_FIELDS(LOG_TEXT("cluster", loop->server.system_identifier)), "%s",
             db_where(loop->db));
    return true;
}

static bool session(struct loop *loop, struct err *err)
{
    return begin_session(loop, err) && run_turns(loop, err) && drain(loop, err);
}

/* Reports are taken while the database is away, so that what is on the topic is known. */
static void wait_for_database(struct loop *loop, int64_t wait_ms)
{
    int64_t until_ms = clock_monotonic_ms() + wait_ms;
    int64_t now_ms;
    while ((now_ms = clock_monotonic_ms()) < until_ms && !stop_requested()) {
        health_heartbeat(loop->options->health);
        relay_metrics_update(loop->options->metrics, &loop->relay);
        int step_ms = until_ms - now_ms < BUSY_WAIT_MS ? (int)(until_ms - now_ms) : BUSY_WAIT_MS;
        if (relay_pump_outstanding_count(loop->relay.pump) == 0 || relay_pump_collect(loop->relay.pump, step_ms) == 0) {
            stop_wait_ms(step_ms);
        }
        mend_pump(loop);
        watch_broker(loop);
    }
}

static bool run_sessions(struct loop *loop, struct err *err)
{
    struct backoff backoff = {.first_ms = 100, .max_ms = 5000};
    while (!stop_requested() && !loop->is_once_done) {
        err_clear(err);
        bool had_server = loop->has_server;
        int64_t begun_ms = clock_monotonic_ms();
        if (session(loop, err)) {
            continue;
        }
        if (err->kind != ERR_TRANSIENT) {
            return false;
        }
        if (had_server && clock_monotonic_ms() - begun_ms > backoff.max_ms) {
            backoff_reset(&backoff);
        }
        int64_t wait_ms = backoff_next_ms(&backoff, rand_uint32());
        backoff_fail(&backoff);
        health_set_unready(loop->options->health, "database", "%s", err->text);
        log_warning("relay.session_ended", LOG_FIELDS(LOG_ERR(err)), "%s; trying again in %lld ms", err->text,
                    (long long)wait_ms);
        wait_for_database(loop, wait_ms);
    }
    err_clear(err);
    return true;
}

static bool start_lease(struct loop *loop, struct err *err)
{
    struct relay_lease_options lease = {.database = loop->options->database,
                                        .owner = loop->relay.owner,
                                        .renew_ms = loop->options->renew_ms,
                                        .margin_ms = loop->options->margin_ms,
                                        .expired = on_lease_expired,
                                        .context = loop->relay.pump};
    lease.database.application_name = "onceward-relay-lease";
    lease.database.stop_fd = -1;
    lease.database.connect_timeout_ms = 2000;
    lease.database.statement_timeout_ms = 2000;
    lease.database.lock_timeout_ms = 1000;
    lease.database.answer_timeout_ms = 3000;
    loop->lease = relay_lease_start(&lease, err);
    return loop->lease != NULL;
}

bool relay_loop_run(const struct relay_loop_options *options, struct err *err)
{
    struct loop loop = {.options = options, .hint_fd = -1};
    struct db_lane_owner owner = {
        .relay = options->name, .incarnation = uuid_v7_new(clock_realtime_ms()), .lease_ms = options->lease_ms};
    struct relay_pump_options pump_options = {.open = options->open,
                                              .context = options->context,
                                              .outstanding_count_max = options->limits.outstanding_events};
    health_set_unready(options->health, "database", "not connected yet");
    health_set_unready(options->health, "kafka", "no broker answered yet");
    struct relay_pump *pump = relay_pump_new(&pump_options, err);
    if (pump == NULL || !relay_init(&loop.relay, &options->limits, &owner, pump, err)) {
        return false;
    }
    loop.relay.is_once = options->is_once;
    bool is_done = relay_hint_open(&options->hint_listen, &loop.hint_fd, err) && start_lease(&loop, err) &&
                   run_sessions(&loop, err);
    relay_metrics_update(options->metrics, &loop.relay);
    relay_lease_stop(&loop.lease);
    relay_hint_close(&loop.hint_fd);
    relay_done(&loop.relay);
    db_close(&loop.db);
    return is_done;
}
