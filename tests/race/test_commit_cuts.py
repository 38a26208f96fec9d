# SPDX-License-Identifier: Apache-2.0
"""A proxy before Postgres cuts connections at COMMIT, before and after it arrives, while callers repeat what got no final
answer. With keys, with ids of their own, and with both: what was accepted is there once, and each answer is true.

COMMIT_CUTS says how many (50)."""
import os
import random
import sys
import threading
import time

from producer_fixture import ADMIN, Database, Producer, Proxy, case, main, new_id

CUTS = int(os.environ.get("COMMIT_CUTS") or "50")
CALLERS = 8
PATIENCE = 60


class World:
    def __init__(self, bin_dir):
        words = dict(word.split("=", 1) for word in ADMIN.split())
        self.db = Database(bin_dir)
        self.proxy = Proxy(words.get("host", "127.0.0.1"), int(words.get("port", "5432")))
        self.producer = Producer(bin_dir, self.db.role(host="127.0.0.1", port=self.proxy.port), database_is_pooled="on")


def unmake(world):
    world.producer.stop()
    world.db.drop()


class Call:
    """One operation, which is repeated until it is answered for good."""

    def __init__(self, number):
        self.key = new_id() if number % 3 != 0 else None
        self.request_id = new_id() if number % 3 != 1 else None
        self.body = {"type": "demo", "data": {"number": number}}
        if self.request_id is not None:
            self.body["id"] = self.request_id
        self.answers = []
        self.open_count = 0

    def send(self, producer):
        return producer.post("/submissions", self.body, {} if self.key is None else {"Idempotency-Key": self.key})

    def run(self, producer):
        until = time.monotonic() + PATIENCE
        while (answer := self.send(producer)).status not in (200, 201):
            assert answer.status in (409, 503) and answer.json["retry"]["same_key"], answer
            assert time.monotonic() < until, answer
            self.open_count += answer.code == "outcome_unknown"
            time.sleep(0.02)
        self.answers = [answer, self.send(producer)]


def check(world, call, events):
    first, again = call.answers
    while again.status not in (200, 201):
        again = call.send(world.producer)
    receipt = first.json
    assert events.get(receipt["id"]) == receipt["event_id"], (receipt, events.get(receipt["id"]))
    if call.key is None:
        # An answer before this one may have left it open whether that one had queued it; otherwise this one did.
        assert receipt["queued"] or call.open_count > 0, (first, call.open_count)
        assert again.json == {**receipt, "queued": False, "status": "duplicate"}, (first, again)
    else:
        # The first that was committed: told truly, whoever told it.
        assert first.status == 201 and receipt["queued"] is True, first
        assert first.headers["Idempotent-Replayed"] == "false" or call.open_count > 0, (first, call.open_count)
        assert again.status == 201 and again.body == first.body, (first, again)
        assert again.headers["Idempotent-Replayed"] == "true", again


@case("F21 D2", f"{CUTS} commits are cut: nothing that was accepted is lost or there twice, each answer is true")
def _(world):
    calls = []
    errors = []
    lock = threading.Lock()
    stop = threading.Event()

    def work():
        try:
            while not stop.is_set():
                with lock:
                    call = Call(len(calls))
                    calls.append(call)
                call.run(world.producer)
        except Exception as error:
            errors.append(error)
    threads = [threading.Thread(target=work) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    cuts = {"cut_after": 0, "cut_before": 0}
    choices = random.Random(7)
    while world.proxy.cut_count < CUTS and not errors:
        before = world.proxy.cut_count
        mode = choices.choice(list(cuts))
        world.proxy.mode = mode
        until = time.monotonic() + PATIENCE
        while world.proxy.cut_count == before and not errors:
            assert time.monotonic() < until, "nothing was committed"
            time.sleep(0.002)
        cuts[mode] += 1
        time.sleep(choices.random() * 0.05)
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors, errors
    events = dict(world.db.sql("SELECT key, string_agg(event_id::text, ' ') FROM onceward.outbox GROUP BY key"))
    for call in calls:
        check(world, call, events)
    assert world.db.count("outbox") == world.db.count("submissions") == world.db.count("requests") == len(calls)
    assert world.db.count("idempotency_keys") == sum(call.key is not None for call in calls)
    assert min(cuts.values()) > 0, cuts
    print(f"      {len(calls)} calls, cut {cuts}, left open and asked again {sum(call.open_count for call in calls)}",
          file=sys.stdout)


main(World, unmake)
