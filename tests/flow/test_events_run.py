# SPDX-License-Identifier: Apache-2.0
"""POST /events/run against a real relay and a real broker."""
import os
import subprocess
import sys
import time

from producer_fixture import Database, Producer, case, conninfo, free_port, main

KAFKA = os.environ.get("ONCEWARD_TEST_KAFKA") or sys.exit("ONCEWARD_TEST_KAFKA is not set; tests/run sets it")


class World:
    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        self.db = Database(bin_dir)
        self.topic = f"run-{self.db.name}"
        operator = [f"{bin_dir}/onceward", "--database", self.db.admin, "--kafka", KAFKA]
        subprocess.run([*operator, "topic", "add", self.topic], check=True, stdout=subprocess.DEVNULL, env={})
        subprocess.run([*operator, "route", "add", "run", self.topic], check=True, stdout=subprocess.DEVNULL, env={})
        self.producer = Producer(bin_dir, self.db.role())  # Its hints go nowhere: only the relay's own poll is left.
        self.relay = None

    def start_relay(self):
        self.relay = subprocess.Popen(
            [f"{self.bin_dir}/outbox-relay", "--database", conninfo(dbname=self.db.name, user="onceward_relay"),
             "--kafka", KAFKA, f"--listen=127.0.0.1:{free_port()}", f"--hint-listen=127.0.0.1:{free_port()}"],
            env={}, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while self.db.count("relays") == 0:
            assert time.monotonic() < until and self.relay.poll() is None, "the relay did not start"
            time.sleep(0.05)

    def stop_relay(self):
        self.relay.terminate()
        assert self.relay.wait(timeout=30) == 0
        self.relay = None


def unmake(world):
    if world.relay is not None:
        world.relay.kill()
    world.producer.stop()
    world.db.drop()


def submit(world):
    answer = world.producer.post("/submissions", {"type": "run", "data": {}})
    assert answer.status == 201, answer
    return answer.json["event_id"]


@case("C5", "without a relay nothing is claimed")
def _(world):
    submit(world)
    assert world.producer.post("/events/run").code == "no_relay"


@case("C4", "what was pending is claimed when the call answers")
def _(world):
    made = [submit(world) for _ in range(20)]
    world.start_relay()
    answer = world.producer.post("/events/run")
    assert answer.status == 200 and answer.json["claimed"] <= 21, answer
    for event_id in made:
        assert world.producer.get(f"/events/{event_id}").json["event"]["status"] in ("claimed", "completed")
    for _ in range(10):
        event_id = submit(world)
        answer = world.producer.post("/events/run")
        status = world.producer.get(f"/events/{event_id}").json["event"]["status"]
        assert answer.json["claimed"] in (0, 1) and status in ("claimed", "completed"), (answer, status)


@case("C2 C1", "an event is shown where it was published")
def _(world):
    event_id = submit(world)
    until = time.monotonic() + 20
    while world.producer.get(f"/events/{event_id}").json["event"]["status"] != "completed":
        assert time.monotonic() < until
        time.sleep(0.1)
    published = world.producer.get(f"/events/{event_id}").json["event"]["published"]
    assert published["topic"] == world.topic and published["offset"] >= 0 and published["partition"] >= 0, published
    assert world.producer.get("/events?status=pending").json["events"] == []
    listed = world.producer.get("/events?status=completed&limit=5").json["events"]
    assert listed[0]["event_id"] == event_id, listed


@case("C5", "after the relay has stopped there is none")
def _(world):
    world.stop_relay()
    submit(world)
    assert world.producer.post("/events/run").code == "no_relay"


main(World, unmake)
