# SPDX-License-Identifier: Apache-2.0
"""From a submit until its event can be read from the topic, and until its effect can be read, at a steady rate; beside the
sum of the parts, each measured alone."""

import signal
import subprocess
import time

import applying
import submitting
from figures import percentile, say
from services import BIN, BenchError, start_consumer, start_producer, start_relay, tool

RATE = 1000
WARMERS = 3
CLIENTS = 32


class Watch:
    """A program that writes what it sees, and when: "EVENT_ID MICROSECONDS" a line."""

    def __init__(self, services, path, *command):
        self.services = services
        self.path = path
        self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "watching\n":
            raise BenchError(f"{command[0]} does not watch")
        services.programs.append(self)

    def kill(self):
        self.services.programs.remove(self)
        self.process.kill()
        self.process.wait()

    def end(self, count, seconds=120):
        """Waits until so many were seen, ends it, and gives the first moment of each event id."""
        deadline = time.monotonic() + seconds
        while self.path.read_bytes().count(b"\n") < count:
            if time.monotonic() > deadline:
                raise BenchError(f"{self.path.name}: not {count} events within {seconds} s")
            time.sleep(0.1)
        self.services.programs.remove(self)
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(60) != 0:
            raise BenchError("a watch failed")
        self.process.stdout.close()
        return read_moments(self.path)


def read_moments(path):
    """The first moment of each event id."""
    moments = {}
    with open(path, encoding="ascii") as lines:
        for line in lines:
            event_id, moment = line.split()
            moments.setdefault(event_id, int(moment))
    return moments


def between(due, seen, what):
    missing = sum(1 for event_id in due if event_id not in seen)
    if missing:
        raise BenchError(f"{missing} of {len(due)} events were never {what}")
    return [(seen[event_id] - moment) / 1000 for event_id, moment in due.items()]


def load(bench, database, producer, seconds):
    """Submits at the rate, and gives the durations in ms until published and until applied."""
    folder = bench.services.folder
    services = bench.services
    topic_watch = Watch(services, folder / "published", BIN / "bench_kafka", services.kafka, "watch", database.topic, folder / "published")
    sink_watch = Watch(services, folder / "applied", BIN / "bench_sink", database.conninfo(), "watch", folder / "applied")
    seen = tool("bench_submit", "--port", producer.port, "--clients", CLIENTS, "--seconds", seconds, "--rate", RATE,
                "--out", folder / "due")
    say(f"at {RATE}/s the answer to a call comes after {seen['p50_ms']:.2f} ms, p99 {seen['p99_ms']:.2f} ms")
    due = read_moments(folder / "due")
    if seen["failures"] or len(due) < RATE * seconds * 0.99:
        raise BenchError(f"{len(due)} of {RATE * seconds} were submitted, {seen['failures']} not")
    published = topic_watch.end(len(due))
    return between(due, published, "published"), between(due, sink_watch.end(len(due)), "applied")


def parts(bench, database, script, number):
    """p50 and p99 in ms of one durable commit, of one produce until its acknowledgement, of one sink commit: each alone."""
    count = bench.pick(2000, 200)
    commits = submitting.pgbench_ms(bench.services, database, script, 1, bench.pick(3, 1))
    produced = tool("bench_kafka", bench.services.kafka, "ack", "bench.parts", count, applying.VALUE_BYTES)
    applied = applying.bare(database, f"parts{number}", count, 1)
    return {50: [percentile(commits, 50), produced["p50_ms"], applied["p50_ms"]],
            99: [percentile(commits, 99), produced["p99_ms"], applied["p99_ms"]]}


def warm_broker(bench):
    """Until the broker's own compiler has little left to do: as on a broker that has run for a while. A minute of the load
    alone is too little for that where it competes for two cores."""
    watch = Watch(bench.services, bench.services.folder / "warm", BIN / "bench_kafka", bench.services.kafka, "watch", "bench.parts",
                  bench.services.folder / "warm")
    words = [BIN / "bench_kafka", bench.services.kafka, "ack", "bench.parts", bench.pick(60000, 200), applying.VALUE_BYTES]
    warmers = [subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL) for _ in range(WARMERS)]
    for warmer in warmers:
        if warmer.wait() != 0:
            raise BenchError("the broker could not be warmed")
    watch.kill()


def measure(bench):
    database = bench.services.make_database("flowing")
    script = submitting.write_script(bench.services)
    bench.services.make_topic("bench.parts")
    producer = start_producer(database)
    relay = start_relay(database)
    consumer = start_consumer(database, "flowing")
    warm = bench.pick(60, 1)
    say(f"warming up the broker, then all for {warm} s")
    warm_broker(bench)
    load(bench, database, producer, warm)
    rounds = {(name, percent): [] for name in ("published", "applied") for percent in (50, 99)}
    for number in range(bench.rounds):
        published, applied = load(bench, database, producer, bench.pick(12, 3))
        part = parts(bench, database, script, number)
        time.sleep(bench.pick(3, 1))  # What pgbench submitted has to flow off.
        for percent in (50, 99):
            rounds["published", percent].append((percentile(published, percent), sum(part[percent][:2])))
            rounds["applied", percent].append((percentile(applied, percent), sum(part[percent])))
            say(f"latency {number + 1}: p{percent} published {percentile(published, percent):.2f} ms, applied "
                f"{percentile(applied, percent):.2f} ms; parts " + ", ".join(f"{ms:.2f}" for ms in part[percent]))
    for percent in (50, 99):
        bench.sheet.add(f"published_p{percent}", "ms", "one durable commit + one produce", rounds["published", percent])
        bench.sheet.add(f"applied_p{percent}", "ms", "one durable commit + one produce + one sink commit",
                        rounds["applied", percent])
    for program in (consumer, relay, producer):
        program.stop()
    database.drop()
