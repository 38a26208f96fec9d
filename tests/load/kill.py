# SPDX-License-Identifier: Apache-2.0
"""A whole system under load while everything that can fail does, over and over; then the checker, and what really happened.

Starts a Postgres and a Kafka of three brokers for itself. tests/load/run submits and publishes as fast as it may; meanwhile
programs are killed and frozen, Postgres and brokers crash, connections are cut at COMMIT, acknowledgements are swallowed,
partitions are rewound, the consumer's tables are restored to an earlier state, and a topic is refilled behind its consumer's
back. Everything that ends is started again. At last tests/load/check must find nothing.

With --naive the twins run instead: a relay with a cursor of ids, a consumer that moves its offset first and has no inbox.
They must lose and double, or the harness proves nothing.

Exit code: 0 as it should be; 1 not; 2 wrong usage.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import kill_evidence
import kill_report
from kill_chaos import FULL_REQUESTS, Chaos
from kill_programs import bound, faults
from kill_services import ROOT, Services, free_ports
from kill_system import HERE, AckProxy, System

KILLS_OF_A_FULL_RUN = 60
SETTLE_S = 300
PATIENCE_S = 600
NAIVE_WORDS = ("lost_effect", "doubled_effect")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="tests/load/run --kill", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kill", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--naive", action="store_true", help="the naive twins instead")
    parser.add_argument("--both", action="store_true", help="first the system, then the twins, on the same services")
    parser.add_argument("--report", metavar="FILE", help="write both rows to FILE if all is as it should be (implies --both)")
    parser.add_argument("--requests", type=int, default=FULL_REQUESTS, metavar="N",
                        help="submissions, and as many events by publish() (%(default)s)")
    parser.add_argument("--pace", type=float, default=0, metavar="SECONDS", help="spread the load over so long at least")
    parser.add_argument("--clients", type=int, default=20, metavar="N", help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of what is sent, and of what is done to it (%(default)s)")
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"), metavar="DIR",
                        help="the programs (%(default)s)")
    parser.add_argument("--fast", action="store_true", help="Postgres without fsync")
    parser.add_argument("--keep", metavar="DIR", help="a new folder for everything that is written; else it goes if all is well")
    options = parser.parse_args()
    options.both = options.both or options.report is not None
    if not os.access(os.path.join(options.bin, "outbox-relay"), os.X_OK):
        parser.error(f"there are no programs in {options.bin}: name their folder with --bin")
    if options.both and options.naive:
        parser.error("--both and --naive exclude each other")
    if options.requests < 1:
        parser.error("--requests is out of range")
    return options


class Progress:
    """How much of the load is done, read from its manifest as it grows."""

    def __init__(self, path, total):
        self._path = path
        self._total = total
        self._file = None
        self._rest = ""
        self._lock = threading.Lock()
        self._done = set()

    def __call__(self):
        with self._lock:
            if self._file is None and os.path.exists(self._path):
                self._file = open(self._path, encoding="utf-8")
            for line in self._file or ():
                self._rest += line
                if self._rest.endswith("\n"):  # Else the rest of it is still to be written.
                    self._take(self._rest)
                    self._rest = ""
            return len(self._done) / self._total

    def _take(self, line):
        call, number = (line.split(name, 1)[1].split(",", 1)[0] for name in ('"call":', '"number":'))
        if call in ('"publish"', '"submit"', '"whole"'):
            self._done.add((call == '"publish"', number))


def figures_of(text):
    """`name: value` lines."""
    return dict(line.split(": ", 1) for line in text.split("\n") if ": " in line)


def start_load(options, system, manifest):
    command = [os.path.join(HERE, "run"), "--insist", "--requests", str(options.requests), "--events", str(options.requests),
               "--clients", str(options.clients), "--pace", str(options.pace), "--seed", str(options.seed),
               "--patience", str(PATIENCE_S), "--database", system.writer, "--topic", system.topic, "--out", manifest]
    for url in system.urls:
        command += ["--url", url]
    with open(os.path.join(system.folder, "load.log"), "wb") as log:
        return subprocess.Popen(bound(command), stdout=log, stderr=log)


def run_check(system, manifest):
    command = [os.path.join(HERE, "check"), "--manifest", manifest, "--database", system.owner, "--kafka", system.services.bootstrap,
               "--settle", str(SETTLE_S), "--show", "5"]
    command += ["--naive"] if system.is_naive else ["--consumer", system.consumer]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    with open(os.path.join(system.folder, "check.log"), "w", encoding="utf-8") as log:
        log.write(done.stdout + done.stderr)
    return done.returncode, done.stdout + done.stderr


class Row:
    """One run of one system: counts of faults, and what the checker found."""

    def __init__(self, is_naive):
        self.name = "naive" if is_naive else "onceward"
        self.is_naive = is_naive
        self.counts = {}
        self.load = {}
        self.check = {}
        self.seconds = {}  # Of each part.
        self.complaints = []

    def anomalies(self, word):
        return int(self.check.get(f"anomalies_{word}", 0))

    def judge(self, options, check_code, check_text):
        may_be_zero = kill_evidence.NEED_NOT_BE | (kill_evidence.NEED_NOT_BE_OF_TWINS if self.is_naive else set())
        missing = [name for name, count in self.counts.items() if count == 0 and name not in may_be_zero]
        self.complaints += [f"{name} is 0: it did not happen, so nothing is proven" for name in missing]
        kills = sum(count for name, count in self.counts.items() if name.startswith("kills_"))
        if options.requests >= FULL_REQUESTS and kills < KILLS_OF_A_FULL_RUN:
            self.complaints.append(f"{kills} kills are fewer than {KILLS_OF_A_FULL_RUN}")
        if self.load.get("answers_replayed", "0") == "0":
            self.complaints.append("no answer was replayed under its key, so nothing is proven of keys")
        if check_code not in (0, 1):
            self.complaints.append(f"the checker ended with {check_code}: {check_text.strip()[-500:]}")
        elif self.is_naive:
            self.complaints += [f"the twins have no {word}" for word in NAIVE_WORDS if self.anomalies(word) == 0]
        elif check_code != 0:
            self.complaints += ["the checker: " + line for line in check_text.split("\n") if line.startswith("anomal")]

    def print(self):
        for name, value in self.counts.items():
            print(f"{self.name}_{name}: {value}")
        for name in ("accepted", "published", "calls_tried_again", "answers_lost", "answers_unknown", "calls_with_key",
                     "answers_replayed", "published_looked_up"):
            print(f"{self.name}_{name}: {self.load.get(name, 'not told')}")
        for word in (*NAIVE_WORDS, "order_inverted"):
            print(f"{self.name}_{word}: {self.anomalies(word)}")
        print(f"{self.name}_compared_events: {self.check.get('compared_events', 0)}")
        print(f"{self.name}_anomalies: {self.check.get('anomalies', 'not told')}")
        print(f"{self.name}_settle_seconds: {self.check.get('settle_seconds', 'not told')}")
        for name, seconds in self.seconds.items():
            print(f"{self.name}_seconds_{name}: {seconds:.0f}", flush=True)
        for text in self.complaints:
            print(f"tests/load/run: {self.name}: {text}", file=sys.stderr, flush=True)


def run_row(options, services, ack_proxy, is_naive):
    row = Row(is_naive)
    began = time.monotonic()

    def mark(name):
        nonlocal began
        row.seconds[name], began = time.monotonic() - began, time.monotonic()

    system = System(services, options.bin, os.path.join(services.state, row.name), is_naive)
    services.broker_kills = services.broker_stops = 0
    swallowed_before = ack_proxy.send("status")["swallowed"]
    try:
        system.prepare()
        system.start()
        mark("start")
        manifest = os.path.join(system.folder, "manifest")
        load = start_load(options, system, manifest)
        progress = Progress(os.path.join(manifest, "calls.jsonl"), 2 * options.requests)
        chaos = Chaos(system, ack_proxy, options.seed, options.requests, progress)
        chaos.run(lambda: load.poll() is not None)
        chaos.finish()
        mark("faults")
        if load.wait() != 0:
            row.complaints.append(f"the load ended with {load.returncode}; see {system.folder}/load.log")
        mark("rest_of_load")
        code, text = run_check(system, manifest)
        mark("check")
        system.stop()
        mark("stop")
        with open(os.path.join(system.folder, "load.log"), encoding="utf-8") as log:
            row.load = figures_of(log.read())
        row.check = figures_of(text)
        swallowed = ack_proxy.send("status")["swallowed"] - swallowed_before
        row.counts = kill_evidence.gather(system, chaos, swallowed, row.load, row.check)
        row.complaints += chaos.errors + faults(system.programs)
        row.judge(options, code, text)
    finally:
        system.close()
    row.print()
    return row


def main():
    options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = options.keep or tempfile.mkdtemp(prefix="onceward-kill.")
    os.makedirs(folder, exist_ok=True)
    services = Services(folder, not options.fast)
    ack_proxy = None
    rows = []
    try:
        services.start()
        ack_proxy = AckProxy(services)
        versions = services.versions()
        for is_naive in (False, True) if options.both else (options.naive,):
            rows.append(run_row(options, services, ack_proxy, is_naive))
    finally:
        if ack_proxy is not None:
            ack_proxy.stop()
        services.stop()
        is_well = bool(rows) and not any(row.complaints for row in rows)
        if is_well and not options.keep:
            shutil.rmtree(folder)
        else:
            print(f"tests/load/run: everything that was written is in {folder}", file=sys.stderr)
    if options.report is not None and is_well:
        kill_report.write(options.report, options, versions, rows)
    return 0 if is_well else 1
