# SPDX-License-Identifier: Apache-2.0
"""How fast the relay publishes a backlog, beside COPY out of the outbox and librdkafka's own producer one after another."""

import subprocess
import time

from figures import say
from services import TYPE, BenchError, await_value, start_relay, tool

VALUE = ("'{\"request_id\":\"' || k || '\",\"tenant\":\"default\",\"type\":\"" + TYPE + "\",\"submitted_at\":"
         "\"2026-11-30T06:00:00.000001Z\",\"data\":{\"order\":4711,\"customer\":\"somebody\",\"note\":\"\","
         "\"lines\":[{\"article\":\"a-1\",\"count\":2}],\"name\":\"somebody\"},\"documents\":[]}'")
TRANSACTION_EVENTS = 1000
SETTLED = "SELECT coalesce(sum(cardinality(settled_ids)), 0) FROM onceward.lane_progress"
ROW_ZERO = """
TRUNCATE onceward.lane_progress;
UPDATE onceward.lanes SET owner = NULL;
INSERT INTO onceward.lane_progress (lane, seq, owner, incarnation, attempt, kind, snapshot_from, from_floor,
                                    position, claimed_to, system_identifier)
SELECT lane, 0, 'migration', '00000000-0000-0000-0000-000000000000', gen_random_uuid(), 'initial', '3:3:', 0, 0, 0,
       (SELECT system_identifier FROM pg_control_system())
  FROM onceward.lanes"""


def fill(database, count):
    """A backlog of distinct keys from transactions of a thousand events, vacuumed as after a while."""
    database.run(f"""DO $do$ BEGIN FOR i IN 1..{count // TRANSACTION_EVENTS} LOOP
        INSERT INTO onceward.outbox (tenant, event_id, topic, key, type, source, subject, time, content_type, value)
        SELECT 'default', e, '{database.topic}', k, '{TYPE}', '/onceward', k, clock_timestamp(), 'application/json',
               convert_to({VALUE}, 'UTF8')
          FROM (SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || '-7' ||
                        substr(gen_random_uuid()::text, 16))::uuid AS e, gen_random_uuid()::text AS k
                  FROM generate_series(1, {TRANSACTION_EVENTS})) made;
        COMMIT;
        IF i % 500 = 0 THEN PERFORM onceward.outbox_make_partitions(); END IF;
        END LOOP; END $do$""")
    database.run("VACUUM (ANALYZE) onceward.outbox")
    database.run("CHECKPOINT")
    return int(float(database.value("SELECT avg(octet_length(value)) FROM (SELECT value FROM onceward.outbox LIMIT 1000) v")))


def drain(database, count):
    """The seconds from the first lane's taking until the log says that all is settled, the relay's CPU seconds, and its
    peak memory. The log's own times are taken, so that neither start nor polling is in them."""
    database.run(ROW_ZERO)
    relay = start_relay(database)
    await_value(database, SETTLED, count, relay)
    cpu = relay.cpu_seconds()
    peak = relay.peak_mb()
    relay.stop()
    settled_count, seconds = database.value(
        "SELECT sum(cardinality(settled_ids)), extract(epoch FROM max(created_at) FILTER (WHERE settled_ids IS NOT NULL) "
        "- min(created_at) FILTER (WHERE kind = 'taken')) FROM onceward.lane_progress").split("|")
    if int(settled_count) != count:
        raise BenchError(f"the log tells of {settled_count} events, there are {count}")
    return {"rate": count / float(seconds), "seconds": float(seconds), "cpu": cpu / count * 1e6, "peak_mb": peak}


def copy_out(database):
    """Seconds that COPY takes for the outbox, its bytes thrown away; and the client's CPU seconds."""
    begun = time.monotonic()
    with subprocess.Popen(["psql", "-Xq", "-d", database.conninfo("onceward_relay"), "-c",
                           "COPY (SELECT * FROM onceward.outbox) TO STDOUT (FORMAT binary)"],
                          stdout=subprocess.DEVNULL) as process:
        if process.wait() != 0:
            raise BenchError("COPY failed")
    return time.monotonic() - begun


def produce(database, count, value_bytes):
    return tool("bench_kafka", database.services.kafka, "produce", database.topic, count, value_bytes)


class Pin:
    """An idle session that keeps its snapshot."""

    def __init__(self, database):
        self.process = subprocess.Popen(["psql", "-Xq", "-d", database.conninfo()], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.process.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT count(*) FROM onceward.lanes;\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def release(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def measure_small(bench, database, count, value_bytes):
    rates = []
    bound_rates = []
    cpu = []
    for number in range(bench.rounds):
        seen = drain(database, count)
        copied = copy_out(database)
        produced = produce(database, count, value_bytes)
        bound = count / (copied + produced["seconds"])
        say(f"drain {number + 1}: {seen['rate']:.0f}/s; COPY {copied:.2f} s, produce {produced['seconds']:.2f} s: {bound:.0f}/s")
        rates.append(seen["rate"])
        bound_rates.append(bound)
        cpu.append((seen["cpu"], produced["cpu_seconds"] / count * 1e6))
    bench.sheet.add("relay_drain", "events/s", "1/(1/COPY + 1/produce)", zip(rates, bound_rates))
    bench.sheet.add("cpu_relay", "CPU s per million events", "librdkafka's own producer", cpu)


def measure_pinned(bench, database, count):
    pairs = []
    for number in range(bench.pick(7, 1)):
        free = drain(database, count)["rate"]
        pin = Pin(database)
        pinned = drain(database, count)["rate"]
        pin.release()
        pairs.append((pinned, free))
        say(f"pinned {number + 1}: {pinned:.0f}/s, free {free:.0f}/s")
    bench.sheet.add("relay_drain_pinned", "events/s", "the same drain without the open snapshot", pairs)


def make_small(bench, name):
    count = bench.pick(100000, 20000)
    database = bench.services.make_database(name)
    value_bytes = fill(database, count)
    drain(database, count)
    return database, count, value_bytes


def measure_large(bench):
    """Leaves its outbox and its full topic for who measures memory."""
    count = bench.pick(2000000, 100000)
    small, small_count, _ = make_small(bench, "draining_few")
    large = bench.services.make_database("draining_many")
    say(f"filling an outbox with {count} events")
    fill(large, count)
    pairs = []
    for number in range(bench.pick(5, 1)):
        few = drain(small, small_count)
        many = drain(large, count)
        pairs.append((many["rate"], few["rate"]))
        bench.peaks["relay"].append(many["peak_mb"])
        say(f"drain of {count} {number + 1}: {many['rate']:.0f}/s, of {small_count}: {few['rate']:.0f}/s, "
            f"peak {many['peak_mb']:.1f} MB")
    bench.sheet.add("relay_drain_2m", "events/s", f"relay drain of {small_count} events", pairs)
    small.drop()
    bench.backlog = large


def measure(bench):
    database, count, value_bytes = make_small(bench, "draining")
    if bench.wants("relay_drain", "cpu_relay"):
        measure_small(bench, database, count, value_bytes)
    if bench.wants("relay_drain_pinned"):
        measure_pinned(bench, database, count)
    database.drop()
