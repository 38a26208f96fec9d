# SPDX-License-Identifier: Apache-2.0
"""What is done to a system while it works: in an order and at moments that follow from a seed and from how far the load is,
so that a machine that is slow or busy sees the same. What it came to is told by kill_evidence, not here.
"""

import os
import random
import threading
import time

import psql
from kill_refill import Refill
from kill_system import SCHEMA, PARTITIONS, ROLES, retry

GAP_S = 0.1  # Between two faults at least.
SPAN = 0.96  # Part of the load in which faults begin; of those that last, the first half of it.
LASTING = ("freeze_relay", "freeze_consumer", "kill_broker", "stop_broker", "restore_live", "restore_stopped", "refill")
STANDSTILL_S = 240
RELAY_FREEZE_S = (12, 14)  # Past the lease of 10 s, so that another relay takes the lanes.
CONSUMER_FREEZE_S = (12, 14)  # Past the group's session of 10 s.
PRODUCER_FREEZE_S = (1, 4)
AWAKE_S = 8  # So that a zombie finds out by itself before it is killed: a relay that waits to connect again waits up to 5 s.
BROKER_AWAY_S = (5, 8)

# What a run of 20 000 submissions suffers, and what a short one suffers at least.
FULL_REQUESTS = 20000
PLAN = {
    "kill_producer": (24, 3), "kill_relay": (24, 3), "kill_consumer": (24, 3),
    "freeze_relay": (4, 1), "freeze_consumer": (3, 1), "freeze_producer": (3, 1),
    "restart_postgres": (5, 1), "kill_broker": (5, 1), "stop_broker": (1, 1),
    "cut_producer": (30, 6), "cut_writer": (20, 4), "cut_consumer": (20, 4), "cut_relay": (12, 2),
    "swallow": (20, 4), "rewind": (8, 5), "restore_live": (2, 1), "restore_stopped": (1, 0), "refill": (1, 1),
}


class Standstill(Exception):
    """The load does not go on any more."""


def counts_for(requests):
    share = min(1, requests / FULL_REQUESTS)
    return {name: max(least, round(full * share)) for name, (full, least) in PLAN.items()}


class Chaos:
    """progress() is the share of the load that is done."""

    def __init__(self, system, ack_proxy, seed, requests, progress):
        self._system = system
        self._services = system.services
        self._ack_proxy = ack_proxy
        self._rng = random.Random(f"chaos {seed}")
        self._progress = progress
        self._postgres = threading.Lock()
        self._kafka = threading.Lock()
        self._tables = threading.Lock()
        self._threads = []
        self._log = os.path.join(system.folder, "faults.log")
        self._saves = 0
        self.refill = None if system.is_naive else Refill(system)
        self.restores = []  # Effects that each took away.
        self.errors = []
        counts = counts_for(requests)
        names = [name for name, count in counts.items() for _ in range(count) if name != "refill" or self.refill]
        self._plan = sorted(((self._rng.random() * SPAN * (0.5 if name in LASTING else 1), name, self._rng.random()) for name in names))

    def run(self, is_over):
        """Begins each fault when its moment has come; returns when all have, or the load is over."""
        for moment, name, seed in self._plan:
            self._await(moment, is_over)
            self._begin(name, random.Random(seed))
            time.sleep(GAP_S)

    def finish(self):
        """Waits until everything that began has ended: all is thawed, started and served again."""
        for thread in self._threads:
            thread.join()

    def _await(self, moment, is_over):
        last, since = self._progress(), time.monotonic()
        while last < moment and not is_over():
            time.sleep(0.05)
            now = self._progress()
            if now > last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > STANDSTILL_S:
                raise Standstill(f"the load has stood at {100 * now:.1f} % for {STANDSTILL_S} s")

    def _begin(self, name, rng):
        word, _, rest = name.partition("_")
        action = getattr(self, f"_{word}")

        def act():
            self._note(f"{name} begins")
            try:
                action(rest, rng)
                self._note(f"{name} has ended")
            except Exception as error:  # Told at the end: a fault that was not done makes the run mean less.
                self._note(f"{name} failed: {error!r}")
                self.errors.append(f"{name}: {error!r}")

        thread = threading.Thread(target=act, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _note(self, text):
        with open(self._log, "a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%H:%M:%S', time.gmtime())} {100 * self._progress():5.1f} % {text}\n")

    # Programs.

    def _choose(self, kind, rng):
        """A program of that kind on which nothing else acts, with its lock taken."""
        while True:
            programs = self._system.of_kind(kind)
            rng.shuffle(programs)
            for program in programs:
                if program.lock.acquire(blocking=False):
                    if program.is_running():
                        return program
                    program.lock.release()
            time.sleep(0.05)

    def _kill(self, kind, rng):
        if kind == "broker":
            with self._kafka:
                self._services.kill_broker(rng.randint(1, 3), rng.uniform(0, 3))
            return
        self._insist(kind, rng, lambda program: program.kill())

    def _insist(self, kind, rng, act):
        """A program may end by itself a moment before."""
        is_done = False
        while not is_done:
            program = self._choose(kind, rng)
            try:
                is_done = act(program)
            finally:
                program.lock.release()

    def _freeze(self, kind, rng):
        span = {"relay": RELAY_FREEZE_S, "consumer": CONSUMER_FREEZE_S, "producer": PRODUCER_FREEZE_S}[kind]

        def freeze(program):
            is_frozen = program.freeze(rng.uniform(*span))
            time.sleep(AWAKE_S)
            return is_frozen

        self._insist(kind, rng, freeze)

    # Services and connections.

    def _restart(self, _service, _rng):
        with self._postgres:
            self._services.restart_postgres()

    def _stop(self, _service, rng):
        with self._kafka:
            self._services.stop_broker(rng.randint(1, 3), rng.uniform(*BROKER_AWAY_S))

    def _cut(self, kind, rng):
        way = rng.choice(("before", "after", "after"))
        statement = "COMMIT"
        if kind == "relay":
            statement, way = ("UPDATE naive.relay_cursor" if self._system.is_naive else "INSERT INTO onceward.lane_progress"), "after"
        self._system.cut(ROLES.get(kind, "onceward_load"), statement, way)

    def _swallow(self, _rest, _rng):
        self._ack_proxy.send("swallow 1")

    # The consumer's tables.

    def _rewind(self, _rest, rng):
        partition, share = rng.randrange(PARTITIONS), rng.random()
        system = self._system
        state = (f"onceward.consumer_state WHERE (consumer, scope, topic, partition) = "
                 f"('{system.consumer}', 'live', '{system.topic}', {partition}) AND next_offset > 0")
        query = ("INSERT INTO onceward.consumer_progress (consumer, scope, topic, partition, seq, owner, incarnation, attempt, kind, "
                 "next_offset, cluster_id) SELECT consumer, scope, topic, partition, seq + 1, 'operator', gen_random_uuid(), "
                 f"gen_random_uuid(), 'rewound', floor(next_offset * {share:.6f}), cluster_id FROM {state} RETURNING next_offset")
        if system.is_naive:
            query = (f"UPDATE naive.consumer_offsets SET next_offset = floor(next_offset * {share:.6f}) WHERE topic = '{system.topic}' "
                     f"AND partition = {partition} AND next_offset > 0 RETURNING next_offset")
        role = system.owner if system.is_naive else self._services.conninfo(system.name, "onceward_operator")
        with self._tables:
            retry(lambda: self._one_row(role, query), psql.PsqlError)

    @staticmethod
    def _one_row(conninfo, query):
        """A cursor that moved meanwhile, or has not begun, is tried again."""
        if psql.value(conninfo, query) == "":
            raise psql.PsqlError("no row")

    def _restore(self, way, rng):
        """The consumer's tables as they were a while ago, all of them together, under its feet or while it is stopped."""
        with self._tables:
            self._saves += 1
            retry(lambda: psql.run(self._system.owner, self._save_sql(self._saves)), psql.PsqlError)
            time.sleep(rng.uniform(2, 6))
            retry(lambda: self._one_row(self._system.owner, self._grown_sql(self._saves)), psql.PsqlError)
            if way == "stopped":
                self._restore_stopped()
            else:
                self._restore_now()

    def _restore_stopped(self):
        consumers = self._system.of_kind("consumer")
        for consumer in consumers:
            consumer.lock.acquire()
        try:
            for consumer in consumers:
                consumer.stop()
            self._restore_now()
            for consumer in consumers:
                consumer.start()
        finally:
            for consumer in consumers:
                consumer.lock.release()

    def _restore_now(self):
        lost = retry(lambda: psql.run(self._system.owner, self._restore_sql(self._saves)), psql.PsqlError)
        self.restores.append(int(lost.strip()))

    def _saved_tables(self):
        """(table, which of its rows)"""
        consumer = psql.literal(self._system.consumer)
        own = [("naive.consumer_offsets", f"consumer = {consumer}")] if self._system.is_naive else [
            ("onceward.consumer_progress", f"consumer = {consumer}"),
            ("onceward.inbox", f"scope_id IN (SELECT scope_id FROM onceward.inbox_scopes WHERE consumer = {consumer})")]
        return own + [("example.effects", "true"), ("example.submissions", "true")]

    def _save_sql(self, number):
        return "BEGIN ISOLATION LEVEL REPEATABLE READ;" + "".join(
            f"DROP TABLE IF EXISTS {SCHEMA}.saved_{number}_{index};"
            f"CREATE TABLE {SCHEMA}.saved_{number}_{index} AS SELECT * FROM {table} WHERE {rows};"
            for index, (table, rows) in enumerate(self._saved_tables())) + "COMMIT;"

    def _saved_effects(self, number):
        return f"{SCHEMA}.saved_{number}_{[table for table, _ in self._saved_tables()].index('example.effects')}"

    def _grown_sql(self, number):
        """A row if there are effects that a restore would take away."""
        return f"SELECT 1 WHERE (SELECT count(*) FROM example.effects) > (SELECT count(*) FROM {self._saved_effects(number)})"

    def _restore_sql(self, number):
        tables = self._saved_tables()
        back = "".join(f"DELETE FROM {table} WHERE {rows};"
                       f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM {SCHEMA}.saved_{number}_{index};"
                       for index, (table, rows) in enumerate(tables))
        return (f"BEGIN; LOCK TABLE {', '.join(table for table, _ in tables)} IN ACCESS EXCLUSIVE MODE;"
                f"SELECT (SELECT count(*) FROM example.effects) - (SELECT count(*) FROM {self._saved_effects(number)}); {back} COMMIT;")

    def _refill(self, _rest, _rng):
        """While all brokers are there: a topic cannot be made without one of them."""
        with self._kafka:
            self.refill.run()
