# SPDX-License-Identifier: Apache-2.0
"""The producer dies, or fails, at each step around its commit; its caller does the only thing it can: the same again.

A failpoint's passages are counted in transactions that write: "@1" is the first one after the start.
"""
import http.client
import signal

from producer_fixture import Database, Producer, case, main, new_id

BODY = {"type": "demo", "data": {"a": 1}}


class World:
    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        self.db = Database(bin_dir)

    def start(self, failpoints=""):
        return Producer(self.bin_dir, self.db.role(), failpoints=failpoints)

    def events_of(self, request_id):
        return [row[0] for row in self.db.sql(f"SELECT event_id FROM onceward.outbox WHERE key = '{request_id}'")]


def unmake(world):
    world.db.drop()


def dies(producer, path, body=None, headers=None):
    """Makes a call that the producer does not survive."""
    try:
        answer = producer.post(path, body, headers)
        raise AssertionError(f"answered: {answer}")
    except (ConnectionError, http.client.HTTPException):
        pass
    assert producer.process.wait(timeout=30) == -signal.SIGKILL


def open_request(world):
    producer = world.start()
    request_id = producer.create({"a": 1})
    producer.stop()
    return request_id


def submit_again(world, request_id):
    """What a later producer answers to the same call, twice."""
    producer = world.start()
    first = producer.post(f"/requests/{request_id}/submit")
    second = producer.post(f"/requests/{request_id}/submit")
    producer.stop()
    assert first.status == 200 and second.status == 200, (first, second)
    assert second.json["status"] == "duplicate" and second.json["event_id"] == first.json["event_id"]
    assert world.events_of(request_id) == [first.json["event_id"]]
    return first.json


@case("", "killed before the commit of a submit: nothing is there, and the retry queues it")
def _(world):
    request_id = open_request(world)
    dies(world.start("producer.before_commit=kill@1"), f"/requests/{request_id}/submit")
    assert world.events_of(request_id) == []
    assert world.db.count("submissions", f"request_id = '{request_id}'") == 0
    answer = submit_again(world, request_id)
    assert answer["queued"] and answer["status"] == "queued", answer


@case("", "killed after the commit of a submit: the retry is told so, with the event that is there")
def _(world):
    request_id = open_request(world)
    dies(world.start("producer.after_commit=kill@1"), f"/requests/{request_id}/submit")
    events = world.events_of(request_id)
    assert len(events) == 1, events
    answer = submit_again(world, request_id)
    assert not answer["queued"] and answer["event_id"] == events[0], answer


@case("", "killed around the commit of a submission with an id of its own: the retry makes no second one")
def _(world):
    for failpoint, is_queued in (("producer.before_commit=kill@1", True), ("producer.after_commit=kill@1", False)):
        request_id = new_id()
        dies(world.start(failpoint), "/submissions", {"id": request_id, **BODY})
        producer = world.start()
        answer = producer.post("/submissions", {"id": request_id, **BODY})
        producer.stop()
        assert answer.status == (201 if is_queued else 200) and answer.json["queued"] == is_queued, answer
        assert world.events_of(request_id) == [answer.json["event_id"]]
        assert world.db.count("requests", f"request_id = '{request_id}'") == 1


@case("", "a transaction that fails at its commit is run again, unseen by the caller")
def _(world):
    producer = world.start("producer.before_commit=error@2")
    request_id = producer.create({"a": 1})
    answer = producer.post(f"/requests/{request_id}/submit")
    producer.stop()
    assert answer.status == 200 and answer.json["queued"], answer
    assert world.events_of(request_id) == [answer.json["event_id"]]


@case("", "a commit whose outcome is not known is run again, and the constraint says that it was this call's")
def _(world):
    producer = world.start("producer.after_commit=error@2")
    request_id = producer.create({"a": 1})
    answer = producer.post(f"/requests/{request_id}/submit")
    again = producer.post(f"/requests/{request_id}/submit")
    producer.stop()
    assert answer.status == 200 and answer.json["queued"], answer
    assert not again.json["queued"] and again.json["event_id"] == answer.json["event_id"], again
    assert world.events_of(request_id) == [answer.json["event_id"]]


def keyed(key):
    return {"Idempotency-Key": key}


def again_under_key(world, path, body, key):
    """What a later producer answers to the same call, twice; the second must be the bytes of the first."""
    producer = world.start()
    first = producer.post(path, body, keyed(key))
    second = producer.post(path, body, keyed(key))
    producer.stop()
    assert first.status in (200, 201) and second.status == first.status and second.body == first.body, (first, second)
    assert second.headers["Location"] == first.headers["Location"]
    assert second.headers["Idempotent-Replayed"] == "true", second
    return first


@case("F21", "killed around the commit under a key: after a retry one effect and the original answer")
def _(world):
    for failpoint, was_committed in (("producer.before_commit=kill@1", False), ("producer.after_commit=kill@1", True)):
        for path, body in ((f"/requests/{open_request(world)}/submit", None), ("/submissions", BODY), ("/requests", BODY)):
            key = new_id()
            before = world.db.count("outbox"), world.db.count("requests")
            dies(world.start(failpoint), path, body, keyed(key))
            kept = world.db.sql(f"SELECT encode(body, 'hex') FROM onceward.idempotency_keys WHERE key = '{key}'")
            assert (len(kept) == 1) == was_committed, (failpoint, path, kept)
            answer = again_under_key(world, path, body, key)
            assert answer.headers["Idempotent-Replayed"] == ("true" if was_committed else "false"), (failpoint, answer)
            if was_committed:
                assert answer.body == bytes.fromhex(kept[0][0]), (answer, kept)
            assert path == "/requests" or answer.json["queued"] is True, answer
            made = (0 if path == "/requests" else 1), (0 if path.endswith("/submit") else 1)
            assert (world.db.count("outbox") - before[0], world.db.count("requests") - before[1]) == made, (failpoint, path)


@case("F21", "a commit under a key that fails, or whose outcome is not known, is run again and its answer is this call's")
def _(world):
    for failpoint in ("producer.before_commit=error@1", "producer.after_commit=error@1"):
        producer = world.start(failpoint)
        key = new_id()
        first = producer.post("/submissions", BODY, keyed(key))
        again = producer.post("/submissions", BODY, keyed(key))
        producer.stop()
        assert first.status == 201 and first.json["queued"] is True, (failpoint, first)
        assert first.headers["Idempotent-Replayed"] == "false", (failpoint, first)
        assert again.status == 201 and again.body == first.body and again.headers["Idempotent-Replayed"] == "true"
        assert world.events_of(first.json["id"]) == [first.json["event_id"]]


main(World, unmake)
