# SPDX-License-Identifier: Apache-2.0
"""Submits a second through HTTP, beside pgbench running the same transaction, prepared."""

import re

from figures import say
from services import TYPE, run, start_producer, tool

CLIENTS = (1, 16, 64)

# What a program of one's own would send for one call of POST /submissions: the producer's statements, for one row. The
# ids are made so that they grow, as the producer's do.
ID = ("(lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || "
      "'-7' || substr(gen_random_uuid()::text, 16))::uuid")
DATA = '{"order":4711,"customer":"somebody","note":"","lines":[{"article":"a-1","count":2}]}'
TRANSACTION = f"""
BEGIN;
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
        '"2026-11-30T06:00:00.000001Z","data":{DATA},"documents":[]}}', 'UTF8') FROM queued RETURNING event_id;
COMMIT;
"""


def write_script(services):
    path = services.folder / "submit.sql"
    # One command a line would be no shorter; pgbench ends a command at its semicolon or at \gset.
    path.write_text(TRANSACTION, encoding="utf-8")
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


def measure(bench):
    database = bench.services.make_database("submitting")
    script = write_script(bench.services)
    producer = start_producer(database)
    seconds = bench.pick(4, 0.8)
    pairs = {clients: [] for clients in CLIENTS}
    cpu = []
    submit(producer, 16, 1)
    for number in range(bench.rounds):
        for clients in CLIENTS:
            seen = submit(producer, clients, seconds)
            beside = pgbench(database, script, clients, seconds)
            pairs[clients].append((seen["rate"], beside))
            say(f"submit {number + 1}: {clients} clients {seen['rate']:.0f}/s, pgbench {beside:.0f}/s")
            if clients == CLIENTS[-1]:
                cpu.append((seen["producer_cpu"], seen["cpu_seconds"] / seen["count"] * 1e6))
    bench.remember_peak("producer", producer)
    producer.stop()
    for clients in CLIENTS:
        bench.sheet.add(f"submit_{clients}", "submits/s", "pgbench of the same transaction, prepared", pairs[clients])
    bench.sheet.add("cpu_producer", "CPU s per million events", "the HTTP client that sends them", cpu)
    database.drop()


