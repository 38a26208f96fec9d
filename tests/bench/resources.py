# SPDX-License-Identifier: Apache-2.0
"""Memory with a large backlog and with large events, and what the programs take when nothing happens."""

import time

import applying
import submitting
from draining import SETTLED
from figures import say
from services import await_value, start_consumer, start_producer, start_relay

PEAK_MB_MAX = 48
IDLE_PERCENT_MAX = 2
LARGE_BYTES = 1000000
LARGE_CLIENTS = 4


def measure_backlog(bench):
    """The topic that the relay filled, applied from its beginning; and submits beside the outbox that it came from."""
    database = bench.backlog
    count = int(database.value("SELECT count(*) FROM onceward.outbox")) // bench.pick(1, 2)
    say(f"applying {count} events, for the memory")
    bench.peaks["consumer"].append(applying.apply_all(database, "backlog", count)["peak_mb"])
    producer = start_producer(database)
    submitting.submit(producer, 64, bench.pick(5, 1))
    bench.peaks["producer"].append(producer.peak_mb())
    producer.stop()
    say("peaks with a backlog: " + ", ".join(f"{name} {max(values):.1f} MB" for name, values in bench.peaks.items()))
    database.drop()
    bench.backlog = None


def measure_large_events(bench):
    """Events of 1 MB through all three: first as a backlog of the relay, then of the consumer."""
    database = bench.services.make_database("large")
    producer = start_producer(database)
    seconds = bench.pick(10, 1)
    seen = submitting.submit(producer, LARGE_CLIENTS, seconds, "--bytes", LARGE_BYTES)
    relay = start_relay(database)
    await_value(database, SETTLED, seen["count"], relay)
    consumer = start_consumer(database, "large")
    await_value(database, applying.APPLIED.format(consumer="large"), seen["count"], consumer)
    for name, program in (("producer", producer), ("relay", relay), ("consumer", consumer)):
        bench.peaks[name].append(program.peak_mb())
        say(f"{seen['count']} events of 1 MB: {name} {program.peak_mb():.1f} MB")
        program.stop()
    database.drop()


def measure_memory(bench):
    if bench.backlog is not None:
        measure_backlog(bench)
    measure_large_events(bench)
    for name, peaks in bench.peaks.items():
        bench.sheet.add(f"memory_{name}", "MB (VmHWM)", "what is allowed", [(max(peaks), PEAK_MB_MAX)])


def measure_idle(bench):
    database = bench.services.make_database("idle")
    relay = start_relay(database)
    consumer = start_consumer(database, "idle")
    rounds = []
    time.sleep(bench.pick(5, 1))
    for number in range(bench.rounds):
        seconds = bench.pick(8, 2)
        begun = [relay.cpu_seconds(), consumer.cpu_seconds()]
        time.sleep(seconds)
        used = [(after - before) / seconds * 100
                for before, after in zip(begun, (relay.cpu_seconds(), consumer.cpu_seconds()))]
        say(f"idle {number + 1}: relay {used[0]:.2f} %, consumer {used[1]:.2f} % of a core")
        rounds.append((max(used), IDLE_PERCENT_MAX))
    bench.sheet.add("idle_cpu", "% of a core (the greater of relay and consumer)", "what is allowed", rounds)
    relay.stop()
    consumer.stop()
    database.drop()
