# SPDX-License-Identifier: Apache-2.0
"""Submits a second through HTTP, beside pgbench running the same transaction, prepared; without a key and with one."""

import re

from figures import percentile, say
from services import TYPE, run, start_producer, tool

CLIENTS = (1, 16, 64)
KEYED_CLIENTS = (1, 64)

# What a program of one's own would send for one call of POST /submissions: the producer's statements, for one row. The
# ids are made so that they grow, as the producer's do.
ID = ("(lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || "
      "'-7' || substr(gen_random_uuid()::text, 16))::uuid")
KEY = "'default', :key"
DATA = '{"order":4711,"customer":"somebody","note":"","lines":[{"article":"a-1","count":2}]}'
CLAIM = f"""
SELECT gen_random_uuid()::text AS key \\gset
SELECT pg_try_advisory_xact_lock(hashtextextended('default ' || :key, 2));
SELECT k.fingerprint, k.components, k.status, k.headers, k.body, k.resource, k.created_at, k.expires_at
  FROM onceward.idempotency_keys k WHERE (tenant, key) = ({KEY});"""
KEEP = f"""
INSERT INTO onceward.idempotency_keys (tenant, key, fingerprint, components, status, headers, body, resource, event_id,
                                       created_at, expires_at)
 VALUES ({KEY}, decode('{"00" * 32}', 'hex'), 'method=0011223344556677 path=0011223344556677 body=0011223344556677', 201,
         'Content-Type: application/json', convert_to('{{"id":"' || :request_id::text || '","event_id":"' || :event_id::text ||
         '","submitted_at":"2026-11-30T06:00:00.000001Z","queued": true,"status":"queued"}}', 'UTF8'), :request_id::text,
         :event_id::uuid, clock_timestamp(), clock_timestamp() + interval '24 hours') ON CONFLICT DO NOTHING;"""


def transaction(claim="", keep=""):
    return f"""
BEGIN;{claim}
SELECT o.topic, o.dataschema, p.event_bytes_max FROM onceward.routes o JOIN onceward.topics p ON p.topic = o.topic
 WHERE o.type = '{TYPE}' \\gset
SELECT source, {ID} AS request_id, {ID} AS event_id FROM onceward.deployment \\gset
INSERT INTO onceward.requests (tenant, request_id, type, data, fingerprint, created_at)
 VALUES ('default', :request_id::uuid, '{TYPE}', '{DATA}'::bytea, decode('{"00" * 32}', 'hex'), clock_timestamp());
WITH queued AS (INSERT INTO onceward.submissions (tenant, request_id, event_id, submitted_at)
 VALUES ('default', :request_id::uuid, :event_id::uuid, clock_timestamp()) ON CONFLICT DO NOTHING
 RETURNING tenant, request_id, event_id, submitted_at)
INSERT INTO onceward.outbox (tenant, event_id, topic, key, type, source, subject, time, content_type, value)
 SELECT tenant, event_id, :topic, request_id::text, '{TYPE}', :source, request_id::text, submitted_at, 'application/json',
        convert_to('{{"request_id":"' || request_id || '","tenant":"default","type":"{TYPE}","submitted_at":'
        '"2026-11-30T06:00:00.000001Z","data":{DATA},"documents":[]}}', 'UTF8') FROM queued RETURNING event_id;{keep}
COMMIT;
"""


def write_script(services, has_key=False):
    path = services.folder / ("submit_key.sql" if has_key else "submit.sql")
    # One command a line would be no shorter; pgbench ends a command at its semicolon or at \gset.
    path.write_text(transaction(CLAIM, KEEP) if has_key else transaction(), encoding="utf-8")
    return path


def pgbench(database, script, clients, seconds, *options):
    """Transactions a second."""
    seconds = max(1, round(seconds))
    text = run("pgbench", "-n", "-M", "prepared", "-c", clients, "-j", min(clients, 2), "-T", seconds, "-f", script,
               *options, "-d", database.conninfo("onceward_producer"), cwd=database.services.folder)
    rate = re.search(r"^tps = ([0-9.]+)", text, re.M)
    if rate is None:  # Not one was committed: the machine was away for that long.
        return pgbench(database, script, clients, 3 * seconds, *options)
    return float(rate[1])


def submit(producer, clients, seconds, *options):
    """Through HTTP: what the clients saw, and the producer's CPU seconds per million events."""
    begun = producer.cpu_seconds()
    seen = tool("bench_submit", "--port", producer.port, "--clients", clients, "--seconds", seconds, *options)
    seen["producer_cpu"] = (producer.cpu_seconds() - begun) / seen["count"] * 1e6
    return seen


def pgbench_ms(services, database, script, clients, seconds, *options):
    """What each transaction took, in ms; at a rate from the moment that it was due."""
    for old in services.folder.glob("times.*"):
        old.unlink()
    pgbench(database, script, clients, seconds, "-l", "--log-prefix", services.folder / "times", *options)
    return [int(line.split()[2]) / 1000 for path in services.folder.glob("times.*") for line in path.open(encoding="ascii")]


def compare(bench, database, producer, clients, seconds, has_key=False):
    """Rates of submits and of pgbench, one after the other; and what else was seen of the submits."""
    seen = submit(producer, clients, seconds, *(["--keys"] if has_key else []))
    beside = pgbench(database, write_script(bench.services, has_key), clients, seconds)
    say(f"submit{' with a key' if has_key else ''}: {clients} clients {seen['rate']:.0f}/s, pgbench {beside:.0f}/s")
    return (seen["rate"], beside), seen


def measure(bench):
    database = bench.services.make_database("submitting")
    producer = start_producer(database)
    seconds = bench.pick(4, 0.8)
    pairs = {clients: [] for clients in CLIENTS}
    cpu = []
    submit(producer, 16, 1)
    for _ in range(bench.rounds):
        for clients in CLIENTS:
            pair, seen = compare(bench, database, producer, clients, seconds)
            pairs[clients].append(pair)
        cpu.append((seen["producer_cpu"], seen["cpu_seconds"] / seen["count"] * 1e6))
    bench.remember_peak("producer", producer)
    producer.stop()
    for clients in CLIENTS:
        bench.sheet.add(f"submit_{clients}", "submits/s", "pgbench of the same transaction, prepared", pairs[clients])
    bench.sheet.add("cpu_producer", "CPU s per million events", "the HTTP client that sends them", cpu)
    database.drop()


def compare_p99(bench, database, producer, rate):
    """p99 in ms of submits with a key at this rate, and of one transaction for each."""
    clients, seconds = KEYED_CLIENTS[-1], bench.pick(6, 1)
    seen = submit(producer, clients, seconds, "--keys", "--rate", round(rate))
    script = write_script(bench.services, has_key=True)
    beside = percentile(pgbench_ms(bench.services, database, script, clients, seconds, "-R", round(rate)), 99)
    say(f"submit with a key at {rate:.0f}/s: p99 {seen['p99_ms']:.1f} ms, one transaction each {beside:.1f} ms")
    return seen["p99_ms"], beside


def measure_keyed(bench):
    database = bench.services.make_database("keyed")
    producer = start_producer(database)
    pairs = {clients: [] for clients in KEYED_CLIENTS}
    half, low = [], []
    submit(producer, 16, 1, "--keys")
    for _ in range(bench.rounds):
        for clients in KEYED_CLIENTS:
            pairs[clients].append(compare(bench, database, producer, clients, bench.pick(4, 0.8), has_key=True)[0])
        rate, beside = pairs[clients][-1]
        half.append(compare_p99(bench, database, producer, rate / 2))
        low.append(compare_p99(bench, database, producer, beside / 2))
    bench.remember_peak("producer", producer)
    producer.stop()
    for clients in KEYED_CLIENTS:
        bench.sheet.add(f"submit_key_{clients}", "submits/s", "pgbench of the same transaction, prepared", pairs[clients])
    bench.sheet.add("submit_key_p99", "ms", "one transaction for each (pgbench) at the same load: half of submit_key_64", half)
    bench.sheet.add("submit_key_p99_low", "ms", "one transaction for each (pgbench) at the same load: half of what it can", low)
    database.drop()
