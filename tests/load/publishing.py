# SPDX-License-Identifier: Apache-2.0
"""Further writers: events by onceward.publish() through psql, with few keys and many events of each.

Each event takes its key's row for update and counts its version up, so the version says, independently of the outbox,
in which order the events of that key were made. Transactions overlap; some are rolled back, some in part.

A transaction whose end nobody told is looked up: its events' keys are locked, so whatever still runs has ended, and then
each event is in the outbox or never will be. That answer is kept, and the checker holds the system to it.
"""

import hashlib
import os
import random
import tempfile
import threading
import time

import psql
import shapes

TABLE = "onceward_load.keys"
RESTART_WAIT_S = 0.5
RESTART_COUNT_MAX = 1000


def prepare(conninfo, keys):
    values = ",".join(f"({psql.literal(key)})" for key in keys)
    psql.run(conninfo, f"""
        CREATE SCHEMA IF NOT EXISTS onceward_load;
        CREATE TABLE IF NOT EXISTS {TABLE} (key text PRIMARY KEY, version bigint NOT NULL DEFAULT 0);
        INSERT INTO {TABLE} (key) VALUES {values} ON CONFLICT DO NOTHING;""")


class Writer(threading.Thread):
    """One psql with its share of the events."""

    def __init__(self, conninfo, topic, keys, numbers, seed, manifest, pace_s=0):
        super().__init__()
        self._conninfo = conninfo
        self._topic = topic
        self._keys = keys
        self._manifest = manifest
        self._rng = random.Random(seed)
        self._data = {}
        self._transactions = self._divide(list(numbers))
        self._wait_s = pace_s / max(1, len(self._transactions))  # Before each transaction.
        self._open = []  # Events of the transaction that is being read, as (number, key, version, event_id).
        self._undone = False
        self._at = 0
        self.error = None
        self.committed = 0
        self.rolled_back = 0
        self.unknown = 0
        self.looked_up = 0

    def run(self):
        """Starts psql again where it failed; error is set only if that is given up."""
        error = None
        for _ in range(RESTART_COUNT_MAX):
            if self._at == len(self._transactions):
                return
            error = self._run_script()
            if error is not None:
                time.sleep(RESTART_WAIT_S)
                self._look_up()
        self.error = error

    def _look_up(self):
        """What became of the transaction that was open when psql ended."""
        events, self._open, self._undone = self._open, [], False
        if not events:
            return
        keys = ",".join(sorted({psql.literal(key) for _, key, _, _ in events}))
        ids = ",".join(psql.literal(event_id) for _, _, _, event_id in events)
        found = self._ask(f"BEGIN; DO $$ BEGIN PERFORM FROM {TABLE} WHERE key IN ({keys}) ORDER BY key FOR UPDATE; END $$; "
                          f"SELECT event_id FROM onceward.outbox WHERE event_id IN ({ids}); COMMIT;")
        for event in events:
            outcome = "unknown" if found is None else "committed" if event[3] in found else "rolled_back"
            self.looked_up += 1
            self._keep(outcome, event, was_unknown=True)

    def _ask(self, sql):
        """The lines of the answer; None if there is none for as long as psql would be started again."""
        for _ in range(RESTART_COUNT_MAX):
            try:
                return psql.run(self._conninfo, sql).split("\n")
            except psql.PsqlError:
                time.sleep(RESTART_WAIT_S)
        return None

    def _divide(self, numbers):
        transactions = []
        while numbers:
            size = min(len(numbers), self._rng.choice((1, 1, 2, 3, 8)))
            # Sorted, so that two writers never wait for each other's rows crosswise.
            transactions.append(sorted((self._rng.choice(self._keys), number) for number in numbers[:size]))
            numbers = numbers[size:]
        return transactions

    def _statement(self, key, number):
        data = shapes.numbered_object(self._rng, number)
        self._data[number] = hashlib.sha256(data).hexdigest()
        return (f"WITH moved AS (UPDATE {TABLE} SET version = version + 1 WHERE key = {psql.literal(key)} RETURNING key, version)\n"
                f"SELECT 'event', {number}, key, version, onceward.publish({psql.literal(self._topic)}, key, 'example.published', "
                f"$ow${data.decode()}$ow$, '{{\"x-load\": \"{number}\"}}') FROM moved;\n")

    def _script(self):
        for index, events in enumerate(self._transactions[self._at :], self._at):
            yield f"SELECT pg_sleep({self._wait_s:.4f});\n" if self._wait_s else ""
            yield f"\\echo begin|{index}\nBEGIN;\n"
            for key, number in events:
                is_undone = self._rng.random() < 0.03
                yield "SAVEPOINT s;\n\\echo undo\n" if is_undone else ""
                yield self._statement(key, number)
                yield "ROLLBACK TO s;\n\\echo keep\n" if is_undone else ""
            if self._rng.random() < 0.2:
                yield f"SELECT pg_sleep({self._rng.uniform(0, 0.02):.4f});\n"
            yield "ROLLBACK;\n\\echo rolled_back\n" if self._rng.random() < 0.05 else "COMMIT;\n\\echo committed\n"

    def _run_script(self):
        """None if every transaction that was left is done, else what psql said."""
        with tempfile.NamedTemporaryFile("w", suffix=".sql", delete=False, encoding="utf-8") as file:
            file.writelines(self._script())
        try:
            with psql.start(self._conninfo, file.name) as process:
                for line in process.stdout:
                    self._read(line.rstrip("\n"))
                said = process.stderr.read().strip()
            return None if process.returncode == 0 else said or f"psql ended with {process.returncode}"
        finally:
            os.unlink(file.name)

    def _read(self, line):
        word, *fields = line.split("|")
        if word == "begin":
            self._at = int(fields[0]) + 1
        elif word == "event":
            self._add_event(fields)
        elif word in ("undo", "keep"):
            self._undone = word == "undo"
        elif word in ("committed", "rolled_back"):
            self._settle(word)

    def _add_event(self, fields):
        number, key, version, event_id = fields
        if self._undone:
            self._keep("rolled_back", (number, key, version, event_id))
        else:
            self._open.append((number, key, version, event_id))

    def _settle(self, outcome):
        for event in self._open:
            self._keep(outcome, event)
        self._open = []
        self._undone = False

    def _keep(self, outcome, event, **more):
        number, key, version, event_id = event
        setattr(self, outcome, getattr(self, outcome) + 1)
        self._manifest.add({"call": "publish", "number": int(number), "outcome": outcome, "key": key, "version": int(version),
                            "event_id": event_id, "data_sha256": self._data[int(number)], "topic": self._topic} | more)
