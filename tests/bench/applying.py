# SPDX-License-Identifier: Apache-2.0
"""How fast the consumer applies a full topic, beside one bare statement with the same inbox and upsert."""

from draining import produce
from figures import say
from services import await_value, start_consumer, tool

BATCH = 1000
VALUE_BYTES = 260
# From the end of the first transaction to that of the last: its own start and Kafka's assignment are not in it.
MOVED = ("SELECT (sum(records) - (array_agg(records ORDER BY created_at))[1]) / "
         "greatest(extract(epoch FROM max(created_at) - min(created_at)), 0.000001) FROM "
         "onceward.consumer_progress WHERE kind = 'moved' AND consumer = '{consumer}'")


APPLIED = "SELECT coalesce(sum(records), 0) FROM onceward.consumer_progress WHERE kind = 'moved' AND consumer = '{consumer}'"


def apply_all(database, consumer, count):
    """A consumer that was never there applies so much of the topic."""
    database.run("TRUNCATE effects")
    program = start_consumer(database, consumer)
    await_value(database, APPLIED.format(consumer=consumer), count, program)
    seen = {"rate": float(database.value(MOVED.format(consumer=consumer))), "cpu": program.cpu_seconds() / count * 1e6,
            "peak_mb": program.peak_mb()}
    program.stop()
    return seen


def bare(database, scope, count, batch=BATCH):
    database.run("TRUNCATE effects")
    scope_id = database.value("INSERT INTO onceward.inbox_scopes (consumer, scope) VALUES ('bare', "
                              f"'{scope}') RETURNING scope_id")
    return tool("bench_sink", database.conninfo("onceward_consumer"), "apply", scope_id, count, batch)


def measure(bench):
    count = bench.pick(100000, 20000)
    database = bench.services.make_database("applying")
    produce(database, count, VALUE_BYTES)
    if not bench.is_quick:
        apply_all(database, "warm", count)
    rates = []
    cpu = []
    for number in range(bench.rounds):
        seen = apply_all(database, f"round{number}", count)
        beside = bare(database, f"round{number}", count)
        say(f"apply {number + 1}: {seen['rate']:.0f}/s, bare statement {beside['rate']:.0f}/s")
        rates.append((seen["rate"], beside["rate"]))
        cpu.append((seen["cpu"], beside["cpu_seconds"] / count * 1e6))
        database.run("CHECKPOINT")
    bench.sheet.add("consumer_apply", "events/s", "one bare statement with the same inbox and upsert", rates)
    bench.sheet.add("cpu_consumer", "CPU s per million events", "the client of the bare statement", cpu)
    database.drop()
