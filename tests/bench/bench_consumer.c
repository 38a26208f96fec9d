/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast the consumer applies a topic that is full: fills a topic of its own,
 * starts the program, waits, and reads the rate from the cursors' log, from the
 * first transaction to the last. Then once more from the beginning, when all
 * are duplicates.
 *
 *   ONCEWARD_TEST_DATABASE=… ONCEWARD_TEST_KAFKA=… bench_consumer [EVENTS] [PARTITIONS]
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kafka_feed.h"
#include "kafka_fixture.h"
#include "postgres_fixture.h"
#include "program.h"

#define STEP_US 200000

static const char VALUE[] =
    "{\"request_id\":\"019ad3a0-0000-7000-8000-000000000001\",\"tenant\":\"default\",\"type\":\"example.submitted\","
    "\"submitted_at\":\"2026-11-30T06:00:00.000001Z\",\"data\":{\"name\":\"a name of some length\",\"amount\":12.50},"
    "\"documents\":[]}";

static void feed(struct kafka_fixture *kafka, int event_count, int partition_count)
{
    struct kafka_feed *feed = kafka_feed_new(kafka_fixture_bootstrap(kafka), kafka_fixture_topic(kafka));
    for (int n = 0; n < event_count; n++) {
        char id[37];
        kafka_feed_id(n, id);
        kafka_feed_event(feed, n % partition_count, id, n + 1, id, VALUE);
    }
    kafka_feed_flush(feed);
    kafka_feed_free(&feed);
}

/* Waits until the cursors are at the end and says how long the log took from its first move after this moment. */
static void measure(struct postgres_fixture *postgres, const char *what, int event_count, long long since_us)
{
    char sql[400];
    char text[64];
    while (postgres_fixture_number(postgres, "SELECT coalesce(sum(next_offset), 0) FROM onceward.consumer_state "
                                             "WHERE kind = 'moved'") < event_count) {
        usleep(STEP_US);
    }
    int written =
        snprintf(sql, sizeof sql,
                 "SELECT round((%d - max(records)) / extract(epoch FROM max(created_at) - min(created_at))) || "
                 "' events/s in ' || count(*) || ' rows' FROM onceward.consumer_progress WHERE kind = 'moved' AND "
                 "extract(epoch FROM created_at) * 1000000 > %lld",
                 event_count, since_us);
    assert(written > 0 && (size_t)written < sizeof sql);
    printf("%s: %s\n", what, postgres_fixture_text(postgres, sql, text, sizeof text));
}

int main(int argc, char **argv)
{
    int event_count = argc > 1 ? atoi(argv[1]) : 200000; /* NOLINT(cert-err34-c): a person's own figure. */
    int partition_count = argc > 2 ? atoi(argv[2]) : 6;  /* NOLINT(cert-err34-c) */
    struct postgres_fixture *postgres = postgres_fixture_new();
    struct kafka_fixture *kafka = kafka_fixture_new(partition_count);
    assert(postgres != NULL && kafka != NULL);
    postgres_fixture_exec(postgres, "CREATE TABLE effects (id text PRIMARY KEY, seq bigint, name text); "
                                    "GRANT SELECT, INSERT, UPDATE ON effects TO onceward_consumer");
    feed(kafka, event_count, partition_count);
    const char *const arguments[] = {"--database",
                                     postgres_fixture_conninfo_as(postgres, "onceward_consumer"),
                                     "--kafka",
                                     kafka_fixture_bootstrap(kafka),
                                     "--consumer",
                                     kafka_fixture_topic(kafka),
                                     "--topics",
                                     kafka_fixture_topic(kafka),
                                     "--listen",
                                     "127.0.0.1:0",
                                     "--sink-table",
                                     "effects",
                                     "--sink-key",
                                     "id",
                                     "--sink-columns",
                                     "id=ce_id,seq=ce_sequence,name=/data/name",
                                     NULL};
    struct program *consumer = program_start("onceward-consumer", arguments, NULL);
    measure(postgres, "fresh", event_count, 0);
    long long now_us =
        postgres_fixture_number(postgres, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
    postgres_fixture_exec(postgres,
                          "INSERT INTO onceward.consumer_progress (consumer, scope, topic, partition, seq, owner, "
                          "incarnation, attempt, kind, next_offset, cluster_id) SELECT consumer, scope, topic, "
                          "partition, seq + 1, 'operator', gen_random_uuid(), gen_random_uuid(), 'rewound', 0, "
                          "cluster_id FROM onceward.consumer_state");
    sleep(2);
    measure(postgres, "all duplicates", event_count, now_us);
    program_free(&consumer);
    kafka_fixture_free(&kafka);
    postgres_fixture_free(&postgres);
    return 0;
}
