# SPDX-License-Identifier: Apache-2.0
"""Erasure while requests are being submitted and published: whatever reaches the topic has its payload, once, and afterwards
nothing is left in the database. The twin erases without looking whether the event is published, and must be caught."""
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

from producer_fixture import Database, Producer, case, conninfo, free_port, in_parallel, main, new_id

KAFKA = os.environ.get("ONCEWARD_TEST_KAFKA") or sys.exit("ONCEWARD_TEST_KAFKA is not set; tests/run sets it")
REQUESTS = 16
RUNS = 10
CAUGHT_MIN = 9


class World:
    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        self.db = Database(bin_dir)
        self.topic = f"erase-{self.db.name}"
        operator = [f"{bin_dir}/onceward", "--database", self.db.admin, "--kafka", KAFKA]
        subprocess.run([*operator, "topic", "add", self.topic, "--partitions", "1"], check=True, stdout=subprocess.DEVNULL, env={})
        subprocess.run([*operator, "route", "add", "erase", self.topic], check=True, stdout=subprocess.DEVNULL, env={})
        self.producer = Producer(bin_dir, self.db.role())
        self.relay = subprocess.Popen(
            [f"{bin_dir}/outbox-relay", "--database", conninfo(dbname=self.db.name, user="onceward_relay"), "--kafka", KAFKA,
             f"--listen=127.0.0.1:{free_port()}", f"--hint-listen=127.0.0.1:{free_port()}"], env={}, stderr=subprocess.DEVNULL)

    def erase(self, name):
        done = subprocess.run([f"{self.bin_dir}/onceward", "erase", name, "--tenant", "default", "--yes", "--json", "--database",
                               self.db.role(user="onceward_operator")], capture_output=True, text=True, check=False, env={})
        return done.returncode

    def held_up(self, call):
        """Makes the call while the relay stands still for its first half second."""
        self.relay.send_signal(signal.SIGSTOP)
        timer = threading.Timer(0.5, lambda: self.relay.send_signal(signal.SIGCONT))
        timer.start()
        result = call()
        timer.join()
        return result

    def records(self):
        """By key, the values on the topic."""
        done = subprocess.run(["kcat", "-C", "-q", "-b", KAFKA, "-t", self.topic, "-o", "beginning", "-e", "-J"],
                              capture_output=True, text=True, check=True)
        found = {}
        for line in done.stdout.splitlines():
            record = json.loads(line)
            found.setdefault(record["key"], []).append(record["payload"])
        return found

    def settled(self, names):
        until = time.monotonic() + 60
        listed = ",".join(f"'{name}'" for name in names)
        while self.db.value(f"SELECT count(*) FROM onceward.events WHERE key IN ({listed}) AND status <> 'completed'") != "0":
            assert time.monotonic() < until and self.relay.poll() is None, "the relay does not publish"
            time.sleep(0.05)


def unmake(world):
    world.relay.terminate()
    world.relay.wait(timeout=30)
    world.producer.stop()
    world.db.drop()


@case("H8", "erasure races submits and the relay: a whole payload on the topic, one event, nothing left behind")
def _(world):
    names = [new_id() for _ in range(REQUESTS)]
    for name in names:
        assert world.producer.put(f"/requests/{name}", {"type": "erase", "data": {"who": name}}).status == 201
    waits = random.Random(1)
    counts = {"refused": 0, "gone": 0}
    seen = {name: set() for name in names}

    def submit(name):
        time.sleep(waits.random())  # About as long as the command takes.
        for _ in range(3):
            answer = world.producer.post(f"/requests/{name}/submit")
            assert answer.status in (200, 404), answer
            seen[name].add(answer.json.get("event_id"))

    def erase(name):
        while (code := world.erase(name)) == 6:
            counts["refused"] += 1
        counts["gone"] += code == 0 and not world.db.count("submissions", f"request_id = '{name}'")
        return code
    for first in range(0, REQUESTS, 8):
        some = names[first:first + 8]
        calls = [call for name in some for call in (lambda n=name: submit(n), lambda n=name: erase(n))]
        results = world.held_up(lambda wanted=calls: in_parallel(wanted))
        assert all(result in (None, 0) for result in results), results
    submitted = {row[0]: row[1] for row in world.db.sql("SELECT request_id, event_id FROM onceward.submissions")}
    world.settled(submitted)
    records = world.records()
    assert set(records) == set(submitted), (len(records), len(submitted))
    for name, event_id in submitted.items():
        assert set(records[name]) == {records[name][0]} and f'"who":"{name}"' in records[name][0].replace(" ", ""), records[name]
        assert seen[name] <= {event_id, None}, (name, seen[name])
        assert world.db.count("outbox", f"key = '{name}'") == 1
    assert world.db.count("requests", "data IS NOT NULL") == 0
    assert world.db.count("outbox", "position(convert_to('who', 'UTF8') in value) > 0") == 0
    assert counts["refused"] > 0 and submitted, counts
    print(f"      {len(submitted)} submitted and erased, {counts['gone']} gone before their submit, "
          f"{counts['refused']} times not yet published", flush=True)


@case("H8", "the twin, which does not look whether the event is published, is caught")
def _(world):
    caught = 0
    for _ in range(RUNS):
        names = [new_id() for _ in range(8)]
        listed = ",".join(f"'{name}'" for name in names)
        eraser = threading.Thread(target=lambda wanted=listed: world.db.sql(f"""
            DO $$ BEGIN FOR i IN 1..400 LOOP
                UPDATE onceward.outbox SET value = convert_to('{{"erased":true}}', 'UTF8')
                 WHERE key IN ({wanted}) AND value <> convert_to('{{"erased":true}}', 'UTF8');
                COMMIT; PERFORM pg_sleep(0.001);
            END LOOP; END $$"""))
        eraser.start()
        calls = [lambda n=name: world.producer.post("/submissions", {"id": n, "type": "erase", "data": {"who": n}})
                 for name in names]
        world.held_up(lambda wanted=calls: in_parallel(wanted))
        world.settled(names)
        eraser.join()
        records = world.records()
        caught += any("who" not in records[name][0] for name in names)
    assert caught >= CAUGHT_MIN, f"only {caught} of {RUNS}"
    print(f"      caught in {caught} of {RUNS}", flush=True)


main(World, unmake)
