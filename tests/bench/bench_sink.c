/* SPDX-License-Identifier: Apache-2.0
 *
 * The consumer's effect without the consumer: one statement that inserts into
 * the inbox and upserts what was inserted, from arrays in memory, one statement
 * a transaction. And a reader who notes when effects can be seen.
 *
 *   bench_sink CONNINFO apply SCOPE_ID COUNT BATCH
 *   bench_sink CONNINFO watch FILE          "EVENT_ID MICROSECONDS" of each new effect, until SIGTERM
 *
 * The table: effects (n bigint GENERATED ALWAYS AS IDENTITY, id text PRIMARY KEY, seq bigint, name text).
 */
#include <arpa/inet.h>
#include <assert.h>
#include <endian.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "bench_samples.h"

#define OID_INT8 20
#define OID_TEXT 25
#define OID_UUID 2950
#define UUID_SIZE 16
#define UUID_TEXT_SIZE 37
#define NAME "a name of some length, as orders have"
#define WATCH_STEP_US 2000

static const char APPLY[] =
    "WITH item AS (SELECT * FROM unnest($2::uuid[], $3::int8[], $4::text[], $5::int8[], $6::text[]) "
    "AS i(event_id, hash, id, seq, name)), "
    "fresh AS (INSERT INTO onceward.inbox (scope_id, status, payload_hash, event_id) "
    "SELECT $1::int4, 'completed', hash, event_id FROM item ON CONFLICT DO NOTHING RETURNING event_id) "
    "INSERT INTO effects AS e (id, seq, name) SELECT i.id, i.seq, i.name FROM item i JOIN fresh USING (event_id) "
    "ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, name = excluded.name WHERE e.seq < excluded.seq";

static volatile sig_atomic_t is_stopping;

static void on_signal(int signal_number)
{
    (void)signal_number;
    is_stopping = 1;
}

static void expect(PGconn *connection, PGresult *result, ExecStatusType wanted)
{
    if (PQresultStatus(result) != wanted) {
        fprintf(stderr, "bench_sink: %s", PQerrorMessage(connection));
        exit(1);
    }
}

/* ---- Binary arrays ---- */

struct array {
    char *bytes;
    size_t size;
};

static void add_bytes(struct array *array, const void *bytes, size_t size)
{
    memcpy(array->bytes + array->size, bytes, size);
    array->size += size;
}

static void add_int4(struct array *array, uint32_t value)
{
    value = htonl(value);
    add_bytes(array, &value, sizeof value);
}

static void add_element(struct array *array, const void *bytes, size_t size)
{
    add_int4(array, (uint32_t)size);
    add_bytes(array, bytes, size);
}

/* One dimension, no nulls, from 1. */
static void open_array(struct array *array, uint32_t element_oid, size_t count)
{
    array->size = 0;
    add_int4(array, 1);
    add_int4(array, 0);
    add_int4(array, element_oid);
    add_int4(array, (uint32_t)count);
    add_int4(array, 1);
}

enum { PARAM_SCOPE, PARAM_EVENT_ID, PARAM_HASH, PARAM_ID, PARAM_SEQ, PARAM_NAME, PARAM_COUNT };

struct batch {
    struct array params[PARAM_COUNT];
    uint64_t base_ms;
};

static void fill(struct batch *batch, size_t first, size_t count)
{
    static const uint32_t oids[PARAM_COUNT] = {0, OID_UUID, OID_INT8, OID_TEXT, OID_INT8, OID_TEXT};
    for (int i = PARAM_EVENT_ID; i < PARAM_COUNT; i++) {
        open_array(&batch->params[i], oids[i], count);
    }
    for (size_t n = first; n < first + count; n++) {
        uint64_t ms = batch->base_ms + n / 4096;
        uint64_t words[2] = {htobe64(ms << 16 | 0x7000 | n % 4096),
                             htobe64(0x8000000000000000U | ((uint64_t)getpid() & 0xfff) << 48 | n)};
        uint64_t sequence = htobe64(n + 1);
        char text[UUID_TEXT_SIZE];
        snprintf(text, sizeof text, "%08x-%04x-7%03x-8%03x-%012x", (unsigned)(ms >> 16), (unsigned)(ms & 0xffff),
                 (unsigned)n % 4096, (unsigned)getpid() & 0xfff, (unsigned)n);
        add_element(&batch->params[PARAM_EVENT_ID], words, UUID_SIZE);
        add_element(&batch->params[PARAM_HASH], words, sizeof words[0]);
        add_element(&batch->params[PARAM_ID], text, UUID_TEXT_SIZE - 1);
        add_element(&batch->params[PARAM_SEQ], &sequence, sizeof sequence);
        add_element(&batch->params[PARAM_NAME], NAME, sizeof NAME - 1);
    }
}

static void run_batch(PGconn *connection, const struct batch *batch)
{
    const char *values[PARAM_COUNT];
    int sizes[PARAM_COUNT];
    int formats[PARAM_COUNT];
    for (int i = 0; i < PARAM_COUNT; i++) {
        values[i] = batch->params[i].bytes;
        sizes[i] = (int)batch->params[i].size;
        formats[i] = 1;
    }
    PGresult *result = PQexecPrepared(connection, "apply", PARAM_COUNT, values, sizes, formats, 0);
    expect(connection, result, PGRES_COMMAND_OK);
    PQclear(result);
}

static int apply(PGconn *connection, uint32_t scope_id, size_t count, size_t batch_count)
{
    struct batch batch = {.base_ms = (uint64_t)bench_wall_us() / 1000};
    for (int i = 0; i < PARAM_COUNT; i++) {
        batch.params[i].bytes = malloc(64 + batch_count * 64);
        assert(batch.params[i].bytes != NULL);
    }
    add_int4(&batch.params[PARAM_SCOPE], scope_id);
    PGresult *result = PQprepare(connection, "apply", APPLY, 0, NULL);
    expect(connection, result, PGRES_COMMAND_OK);
    PQclear(result);
    struct bench_samples samples;
    bench_samples_init(&samples, count / batch_count + 1);
    int64_t begun_us = bench_monotonic_us();
    for (size_t n = 0; n < count; n += batch_count) {
        int64_t started_us = bench_monotonic_us();
        fill(&batch, n, count - n < batch_count ? count - n : batch_count);
        run_batch(connection, &batch);
        bench_samples_add(&samples, bench_monotonic_us() - started_us);
    }
    bench_print(count, (double)(bench_monotonic_us() - begun_us) / 1e6, &samples, 0);
    bench_samples_done(&samples);
    for (int i = 0; i < PARAM_COUNT; i++) {
        free(batch.params[i].bytes);
    }
    return 0;
}

/* One consumer writes one transaction after another, so what can be seen has no gaps that close later. */
static int watch(PGconn *connection, const char *path)
{
    FILE *out = fopen(path, "we");
    assert(out != NULL);
    setvbuf(out, NULL, _IOLBF, 0); /* Whoever waits for the last one counts the lines. */
    PGresult *result = PQexec(connection, "SELECT coalesce(max(n), 0) FROM effects");
    expect(connection, result, PGRES_TUPLES_OK);
    char last[32];
    snprintf(last, sizeof last, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    result = PQprepare(connection, "watch", "SELECT n, id FROM effects WHERE n > $1::int8 ORDER BY n", 0, NULL);
    expect(connection, result, PGRES_COMMAND_OK);
    PQclear(result);
    printf("watching\n");
    fflush(stdout);
    while (!is_stopping) {
        const char *values[] = {last};
        result = PQexecPrepared(connection, "watch", 1, values, NULL, NULL, 0);
        expect(connection, result, PGRES_TUPLES_OK);
        int64_t seen_us = bench_wall_us();
        for (int row = 0; row < PQntuples(result); row++) {
            fprintf(out, "%s %lld\n", PQgetvalue(result, row, 1), (long long)seen_us);
            snprintf(last, sizeof last, "%s", PQgetvalue(result, row, 0));
        }
        PQclear(result);
        usleep(WATCH_STEP_US);
    }
    return fclose(out) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 3 ? argv[2] : "";
    int is_apply = strcmp(verb, "apply") == 0 && argc == 6;
    int is_watch = strcmp(verb, "watch") == 0 && argc == 4;
    if (!is_apply && !is_watch) {
        fprintf(stderr, "usage: bench_sink CONNINFO apply SCOPE_ID COUNT BATCH | watch FILE\n");
        return 2;
    }
    signal(SIGTERM, on_signal);
    PGconn *connection = PQconnectdb(argv[1]);
    if (PQstatus(connection) != CONNECTION_OK) {
        fprintf(stderr, "bench_sink: %s", PQerrorMessage(connection));
        return 1;
    }
    int code = is_watch ? watch(connection, argv[3])
                        : apply(connection, (uint32_t)strtoul(argv[3], NULL, 10), strtoul(argv[4], NULL, 10),
                                strtoul(argv[5], NULL, 10));
    PQfinish(connection);
    return code;
}
