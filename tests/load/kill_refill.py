# SPDX-License-Identifier: Apache-2.0
"""A topic that is deleted and filled again past the cursor of a live consumer, which must see it at its next checkpoint,
stop, and name the offset up to where what it applied is known to be of the old topic.
"""

import re
import subprocess
import tempfile
import time
import uuid

import psql
from kill_services import delete_topic
from kill_system import SCHEMA, retry

FIRST_COUNT = 6
SECOND_COUNT = 12
WAIT_S = 240
CHECKPOINTS_S = 3
STOPPED = re.compile(r"consumer\.partition_stopped.* code=(?:record_differs|log_shorter) .*last (?:verified|applied) offset: (\d+)")


class Refill:
    def __init__(self, system):
        self._system = system
        self._end = 0  # The cursor when the topic was deleted.

    def run(self):
        system = self._system
        system.add_refilled()
        self._feed("first", FIRST_COUNT)
        self._await("its first records are not applied", lambda: self._applied() == FIRST_COUNT)
        time.sleep(CHECKPOINTS_S)  # So that a verified offset is there to be named.
        self._end = int(retry(lambda: psql.value(system.owner, "SELECT next_offset FROM onceward.consumer_state "
                                                 f"WHERE topic = {psql.literal(system.refill_topic)}"), psql.PsqlError))
        self._make_anew()
        self._feed("second", SECOND_COUNT)
        self._await("its consumer does not stop", lambda: self.found())

    def found(self):
        """1 if the consumer stopped and named an offset that it can know of the old topic. (It says so at each taking.)"""
        if self._system.refilled is None:
            return 0
        return int(any(int(offset) < self._end for offset in STOPPED.findall(self._system.refilled.log())))

    def _make_anew(self):
        """Asked for again and again while it is being deleted, so that it is away for as short a time as can be."""
        topic = self._system.refill_topic
        deleting = delete_topic(self._system.services.bootstrap, topic)
        while deleting.poll() is None:
            try:
                self._system.add_topic(topic, 1)
            except RuntimeError:
                pass
        if deleting.returncode != 0:
            raise RuntimeError(f"topic {topic} cannot be deleted: {deleting.stderr.read()}")
        retry(lambda: self._system.add_topic(topic, 1), RuntimeError)

    def _applied(self):
        return int(retry(lambda: psql.value(self._system.owner, f"SELECT count(*) FROM {SCHEMA}.refilled"), psql.PsqlError))

    def _feed(self, series, count):
        for number in range(count):
            retry(lambda: self._put(series, number), subprocess.CalledProcessError)

    def _put(self, series, number):
        event_id = uuid.uuid5(uuid.NAMESPACE_URL, f"{self._system.refill_topic}/{series}/{number}")
        command = ["kcat", "-P", "-b", self._system.services.bootstrap, "-t", self._system.refill_topic, "-p", "0", "-k", "refilled",
                   "-X", "acks=all", "-X", "message.timeout.ms=20000", "-H", "ce_specversion=1.0", "-H", f"ce_id={event_id}",
                   "-H", "ce_source=/refilled", "-H", "ce_type=example.refilled", "-H", "content-type=application/json"]
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(f'{{"{series}": {number}}}')
            file.flush()
            subprocess.run([*command, file.name], check=True, capture_output=True)

    @staticmethod
    def _await(complaint, is_done):
        deadline = time.monotonic() + WAIT_S
        while not is_done():
            if time.monotonic() >= deadline:
                raise RuntimeError(complaint)
            time.sleep(0.2)
