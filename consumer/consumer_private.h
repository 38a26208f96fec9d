/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the consumer's loop share: consumer.c (the loop),
 * consumer_collect.c (events of the group, records into the batch),
 * consumer_place.c (cursors: take, look, hints), consumer_verify.c (records
 * compared with what was seen), consumer_measure.c (metrics and readiness).
 */
#ifndef CONSUMER_PRIVATE_H
#define CONSUMER_PRIVATE_H

#include "base/backoff.h"
#include "consumer.h"
#include "consumer_apply.h"
#include "consumer_batch.h"
#include "consumer_cursor.h"
#include "consumer_settings.h"
#include "consumer_sources.h"
#include "kafka/kafka_consumer.h"
#include "kafka/kafka_reader.h"

struct db;
struct health;
struct metric;
struct metrics;

#define CONSUMER_SESSION_TIMEOUT_MS 10000
#define CONSUMER_LOOK_MS 1000
#define CONSUMER_HINT_MS 3000
#define CONSUMER_STALL_MS 5000       /* Without a record although there are some, until fetching begins anew. */
#define CONSUMER_STALL_MAX_MS 320000 /* The same when that did not help: a marker at the end of a log looks alike. */
#define CONSUMER_CHECK_MS 3000       /* For the record at the cursor to come, and for one checkpoint. */
#define CONSUMER_ASK_MS 2000         /* For a broker's answer to a question. */
#define CONSUMER_TROUBLE_CODES_MAX 8
#define CONSUMER_TROUBLE_QUIET_MS 30000 /* Without a report of trouble, until it is over. */
#define CONSUMER_DOUBT_MS 10000         /* Without a refusal after a sink refused, until it is taken for mended. */
#define CONSUMER_PRUNE_MS 60000

/* The reading of a checkpoint that is under way. */
struct consumer_checkpoint {
    bool is_active;
    size_t cursor;
    int64_t offset;      /* The cursor's anchor, which is read. */
    int64_t next_offset; /* The last record when that began: the anchor of the next round. */
    unsigned char next_hash[DB_PROGRESS_HASH_SIZE];
    int64_t deadline_ms;
};

struct consumer_meters {
    struct metric *applied;
    struct metric *duplicates;
    struct metric *dead_letters;
    struct metric *batches;
    struct metric *batch_records;
    struct metric *assigned;
    struct metric *stopped;
    struct consumer_counts told;
};

struct consumer {
    const struct consumer_settings *settings;
    struct health *health;
    struct metrics *metrics;
    struct consumer_meters meters;
    struct db_progress_self self;
    struct db *db; /* NULL before the first connect. */
    struct kafka_consumer *kafka;
    struct kafka_reader *reader;
    char cluster_id[KAFKA_CLUSTER_ID_SIZE]; /* "" until a broker told it. */
    struct sink *sink;
    struct consumer_sources sources;
    struct consumer_batch batch;
    struct consumer_apply apply;
    struct consumer_cursors cursors;
    bool is_assigned;
    bool is_suspended;   /* Database or sink are away: all is paused until a restore succeeds. */
    bool is_halted;      /* The breaker is open: all is paused until the process starts again. */
    bool is_unreachable; /* The last thing heard of the brokers was that they are away. */
    struct backoff backoff;
    int64_t retry_at_ms;
    int64_t take_at_ms;
    int64_t look_at_ms;
    int64_t hint_at_ms;
    int64_t prune_at_ms;
    int64_t probe_at_ms;
    int64_t checkpoint_at_ms;
    size_t checkpoint_next; /* Index of the cursor whose turn it is. */
    struct consumer_checkpoint checkpoint;
    char trouble_codes[CONSUMER_TROUBLE_CODES_MAX][ERR_CODE_SIZE]; /* Each was logged since it began. */
    size_t trouble_code_count;
    uint64_t trouble_count;             /* Reports since then. */
    int64_t trouble_at_ms;              /* The last one. */
    char suspended_code[ERR_CODE_SIZE]; /* The reason that was logged last; "" once it runs. */
    bool is_doubtful;                   /* The sink refused: only what is applied shows that it is mended. */
    int64_t doubt_until_ms;             /* Or that nothing is refused until then. */
};

/* consumer.c */

/* Gives up what is in memory, pauses everything and plans the next try. False only for FATAL. */
bool consumer_suspend(struct consumer *consumer, const struct err *why, struct err *err) MUST_CHECK;
/* Applies the batch and empties it. */
bool consumer_apply_now(struct consumer *consumer, struct err *err) MUST_CHECK;

/* consumer_collect.c */

/* Waits up to timeout_ms for the first event, then takes what is there until the batch is full. */
bool consumer_collect(struct consumer *consumer, int timeout_ms, struct err *err) MUST_CHECK;

/* Says when the library's trouble is over. */
void consumer_collect_tend(struct consumer *consumer, int64_t now_ms);

/* consumer_place.c: the database's functions need a usable connection; false is its error. */

/* Makes cursors ours that are due. */
bool consumer_place_take(struct consumer *consumer, struct err *err) MUST_CHECK;
/* Reads the last rows and obeys them. */
bool consumer_place_look(struct consumer *consumer, struct err *err) MUST_CHECK;
/* Tells the group how far the cursors are. */
void consumer_place_hint(struct consumer *consumer);
/* Writes into the database why partitions stand still, where it does not know yet. */
bool consumer_place_tell_stops(struct consumer *consumer, struct err *err) MUST_CHECK;
bool consumer_place_prune(struct consumer *consumer, struct err *err) MUST_CHECK;
/* Assigns everything anew, each at its place: what is spent cannot be sought, and what was lost on the way comes again.
 */
bool consumer_place_assign(struct consumer *consumer, struct err *err) MUST_CHECK;

/* Reads from its cursor on: the record to compare first, unless it was compared before. */
bool consumer_place_start(struct consumer *consumer, struct consumer_cursor *cursor, bool must_compare,
                          struct err *err) MUST_CHECK;
/* Pauses it for good and says why. */
void consumer_place_stop(struct consumer *consumer, struct consumer_cursor *cursor, const char *code,
                         const char *format, ...) PRINTF_LIKE(4, 5);
bool consumer_place_pause_all(struct consumer *consumer, struct err *err) MUST_CHECK;

/* consumer_verify.c */

/* Compares the record that a cursor waits for. *ret_is_wanted: it is beyond the cursor and is to be applied. */
void consumer_verify_record(struct consumer *consumer, struct consumer_cursor *cursor,
                            const struct kafka_record *record, bool *ret_is_wanted);
/* Asks the broker where the log begins and ends, and decides what that means for the cursor. */
bool consumer_verify_log(struct consumer *consumer, struct consumer_cursor *cursor, struct err *err) MUST_CHECK;
/* One turn of waiting checks and of the running checkpoint. */
bool consumer_verify_step(struct consumer *consumer, int64_t now_ms, struct err *err) MUST_CHECK;
/* Ends the checkpoint that is under way: the cursors are about to change. */
void consumer_verify_cancel(struct consumer *consumer);

/* consumer_measure.c */

void consumer_measure_init(struct consumer *consumer);
void consumer_measure_cursor(struct consumer *consumer, struct consumer_cursor *cursor);
void consumer_measure_step(struct consumer *consumer);
/* The last figures of cursors that go to somebody else. */
void consumer_measure_leave(struct consumer *consumer);
/* Asks whether there is a broker and the topics, while that is in doubt. */
void consumer_measure_probe(struct consumer *consumer, int64_t now_ms);

#endif
