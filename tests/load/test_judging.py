# SPDX-License-Identifier: Apache-2.0
"""The checker names each anomaly: rows are dropped, doubled, swapped and flipped at every source of a sound world.

A fault must be named by its word at its subject, and nothing else may be said that is not listed with it.
"""

import copy
import unittest

import snapshot as snapshots
from judging import WORDS, sha256
from world import KEYS, World, event_id

OTHER = sha256(b"other bytes")
EVENT = event_id(102)  # Of the third request, which has two documents.
PUBLISHED = event_id(106)  # The first of the first key; its second is three later.
LATER = event_id(109)


def find(rows, **wanted):
    return next(row for row in rows if all(row[name] == value for name, value in wanted.items()))


def request_of(world, identity=EVENT):
    return find(world.snapshot.submissions, event_id=identity)["request_id"]


def _ce_id(record):
    return dict(map(tuple, record["headers"]))["ce_id"].decode()


def drop(name, **wanted):
    def spoil(world):
        rows = getattr(world.snapshot, name)
        rows.remove(find(rows, **wanted))
    return spoil


def double(name, **wanted):
    def spoil(world):
        rows = getattr(world.snapshot, name)
        rows.append(copy.deepcopy(find(rows, **wanted)))
    return spoil


def change(name, column, value, **wanted):
    def spoil(world):
        find(getattr(world.snapshot, name), **wanted)[column] = value
    return spoil


def of_request(fault, name, *arguments):
    """The fault at the row of EVENT's request."""
    return lambda world: fault(name, *arguments, request_id=request_of(world))(world)


def of_record(identity, act):
    def spoil(world):
        record = next(record for record in world.snapshot.records if _ce_id(record) == identity)
        act(world, record)
    return spoil


def set_header(name, value):
    def act(_world, record):
        record["headers"] = [[found, value if found == name else old] for found, old in record["headers"]]
    return act


def set_member(name, value):
    return lambda _world, record: record.__setitem__(name, value)


def swap_places(first, second, columns):
    def spoil(world):
        one, two = (next(r for r in world.snapshot.records if _ce_id(r) == identity) for identity in (first, second))
        for column in columns:
            one[column], two[column] = two[column], one[column]
        for effect in world.snapshot.effects:
            for identity, record in ((first, one), (second, two)):
                if effect["event_id"] == identity:
                    effect["kafka_offset"] = record["offset"]
    return spoil


def swap_effects(world):
    effects = world.snapshot.effects
    at = [next(i for i, row in enumerate(effects) if row["event_id"] == identity) for identity in (PUBLISHED, LATER)]
    effects[at[0]], effects[at[1]] = effects[at[1]], effects[at[0]]


def swap_versions(world):
    one, two = (find(world.calls("publish"), event_id=identity) for identity in (PUBLISHED, LATER))
    one["version"], two["version"] = two["version"], one["version"]


def change_call(name, **changes):
    """The first call of that name about EVENT's request."""
    def spoil(world):
        line = next(line for line in world.calls(name) if line["request_id"] == request_of(world))
        for path, value in changes.items():
            target = line
            *parents, last = path.split("__")
            for parent in parents:
                target = target[parent]
            target[last] = value
    return spoil


def change_replay(**changes):
    """The second call under the key."""
    return lambda world: [line for line in world.lines if "key" in line][1].update(changes)


def drop_calls(world):
    wanted = request_of(world)
    world.lines = [line for line in world.lines if line.get("request_id") != wanted]
    world.snapshot.fetched = [row for row in world.snapshot.fetched if row["request_id"] != wanted]


def add_stranger(world):
    record = copy.deepcopy(world.snapshot.records[0])
    record["headers"] = [[name, b"stranger" if name == "ce_id" else value] for name, value in record["headers"]]
    world.snapshot.records.append(record | {"offset": 99})


def double_outbox(world):
    row = find(world.snapshot.outbox, event_id=EVENT)
    second = row | {"id": 200}
    world.snapshot.outbox.append(second)


def second_event(world):
    """The same request queued twice, all the way."""
    row = copy.deepcopy(find(world.snapshot.outbox, event_id=EVENT)) | {"event_id": event_id(300)}
    world.snapshot.outbox.append(row)


def roll_back(world):
    find(world.calls("publish"), event_id=PUBLISHED)["outcome"] = "rolled_back"


def sink_of_older(world):
    newest = find(world.snapshot.sink, request_id=KEYS[0])
    newest["event_id"] = LATER


def drop_document(world):
    row = find(world.snapshot.documents, request_id=request_of(world), document_id="given")
    world.snapshot.documents.remove(row)


def document(column, value):
    return lambda world: find(world.snapshot.documents, request_id=request_of(world), document_id="given").__setitem__(column, value)


def fetched(column, value):
    return lambda world: find(world.snapshot.fetched, request_id=request_of(world), document_id="given").__setitem__(column, value)


def add_document(world):
    world.snapshot.documents.append(find(world.snapshot.documents, request_id=request_of(world), document_id="given") |
                                    {"document_id": "stranger", "position": 9})


def fail_event(world):
    world.snapshot.failures.append({"event_id": EVENT, "place": "dead letter", "reason": "too odd"})


def stranger(name):
    return lambda world: getattr(world.snapshot, name).append(
        {"event_id": event_id(999), "request_id": "x", "ce_sequence": 1, "value_sha256": OTHER, "kafka_partition": 0, "kafka_offset": 0})


def forget(name):
    return lambda world: setattr(world.snapshot, name, [])


def flip_value(world, record):
    record["value"] = record["value"].replace(b"null", b"nulL", 1)


# name, fault, what must be said: word -> a part of the subject. What follows from the same fault is listed too.
FAULTS = [
    ("manifest: an answer of 500", change_call("submit", status=500), {"unexpected_answer": "", "answer_unstable": ""}),
    ("manifest: a receipt with another event", change_call("submit", answer__event_id=event_id(1)), {"answer_unstable": ""}),
    ("manifest: a receipt of another time", change_call("submit", answer__submitted_at="2027-01-15T08:00:59Z"), {"answer_unstable": ""}),
    ("manifest: two answers say queued", lambda world: world.calls("submit")[1]["answer"].__setitem__("queued", True), {"answer_unstable": ""}),
    ("manifest: no answer says queued", change_call("submit", answer__queued=False), {"answer_unstable": ""}),
    ("manifest: made twice", lambda world: world.lines.append(dict(world.calls("put")[0])), {"answer_unstable": ""}),
    ("manifest: a replay of other bytes", change_replay(answer_sha256=OTHER), {"answer_unstable": "under key k"}),
    ("manifest: two first answers under a key", change_replay(is_replay=False), {"answer_unstable": "under key k"}),
    ("manifest: an answer under a key does not say which it is", change_replay(is_replay=None), {"unexpected_answer": "under key k"}),
    ("manifest: an upload's answer lacks the document", change_call("document", answer__documents=[]), {"unexpected_answer": ""}),
    ("manifest: a request's calls dropped", drop_calls, {"orphan_submission": ""}),
    ("manifest: other data was sent", change_call("put", data_sha256=OTHER), {"bytes_differ": ""}),
    ("manifest: an event that was rolled back", roll_back, {"unexpected_event": PUBLISHED}),
    ("manifest: versions swapped", swap_versions, {"order_inverted": LATER}),
    ("manifest: an event nobody published", lambda world: world.lines.remove(find(world.calls("publish"), event_id=PUBLISHED)),
     {"unexpected_event": PUBLISHED}),
    ("database: submission dropped", drop("submissions", event_id=EVENT), {"lost_submission": ""}),
    ("database: submission with another event", change("submissions", "event_id", event_id(500), event_id=EVENT),
     {"answer_unstable": "", "lost_event": event_id(500)}),
    ("database: request dropped", of_request(drop, "requests"), {"lost_submission": ""}),
    ("database: data flipped", of_request(change, "requests", "data_sha256", OTHER), {"bytes_differ": ""}),
    ("database: another type", of_request(change, "requests", "type", "other"), {"attribute_differs": ""}),
    ("database: document dropped", drop_document, {"lost_document": "given", "attribute_differs": EVENT}),
    ("database: document flipped", document("content_sha256", OTHER), {"bytes_differ": "given"}),
    ("database: document's hash flipped", document("sha256", OTHER), {"bytes_differ": "given"}),
    ("database: document renamed", document("name", "other"), {"attribute_differs": "given"}),
    ("database: document nobody sent", add_document, {"unexpected_document": "stranger", "attribute_differs": EVENT}),
    ("http: document gone", fetched("status", 404), {"lost_document": "given"}),
    ("http: document flipped", fetched("sha256", OTHER), {"bytes_differ": "given"}),
    ("http: another media type", fetched("media_type", "text/html"), {"attribute_differs": "given"}),
    ("outbox: row dropped", drop("outbox", event_id=EVENT), {"lost_event": EVENT, "unexpected_event": EVENT}),
    ("outbox: published row dropped", drop("outbox", event_id=PUBLISHED), {"lost_event": PUBLISHED, "unexpected_event": PUBLISHED}),
    ("outbox: row doubled", double_outbox, {"doubled_event": EVENT, "attribute_differs": EVENT}),
    ("outbox: a second event of a request", second_event, {"doubled_event": "", "lost_event": "", "lost_effect": ""}),
    ("outbox: value flipped", change("outbox", "value_sha256", OTHER, event_id=PUBLISHED), {"bytes_differ": PUBLISHED}),
    ("outbox: never settled", change("outbox", "status", "claimed", event_id=EVENT), {"unsettled_event": EVENT}),
    ("outbox: failed", change("outbox", "status", "failed", event_id=EVENT), {"failed_event": EVENT}),
    ("outbox: another time", change("outbox", "time", "2027-01-15T09:00:00.000000Z", event_id=EVENT), {"attribute_differs": EVENT}),
    ("topic: record dropped", of_record(EVENT, lambda world, record: world.snapshot.records.remove(record)),
     {"lost_event": EVENT, "attribute_differs": EVENT}),
    ("topic: value flipped", of_record(EVENT, flip_value), {"bytes_differ": EVENT}),
    ("topic: value null", of_record(PUBLISHED, set_member("value", None)), {"bytes_differ": PUBLISHED}),
    ("topic: another key", of_record(PUBLISHED, set_member("key", b"other")), {"attribute_differs": PUBLISHED}),
    ("topic: another sequence", of_record(EVENT, set_header("ce_sequence", b"1")), {"attribute_differs": EVENT}),
    ("topic: a header flipped", of_record(EVENT, set_header("x-load", b"\xff\x01")), {"attribute_differs": EVENT}),
    ("topic: a header doubled", of_record(EVENT, lambda _world, record: record["headers"].append(record["headers"][0])),
     {"attribute_differs": EVENT}),
    ("topic: records swapped", swap_places(PUBLISHED, LATER, ("offset",)), {"order_inverted": PUBLISHED}),
    ("topic: on another partition", of_record(PUBLISHED, set_member("partition", 1)), {"key_scattered": KEYS[0], "attribute_differs": PUBLISHED}),
    ("topic: a record nobody wrote", add_stranger, {"unexpected_event": "stranger"}),
    ("inbox: row dropped", drop("inbox", event_id=EVENT), {"lost_event": EVENT}),
    ("inbox: hash flipped", change("inbox", "payload_hash", 1, event_id=EVENT), {"bytes_differ": EVENT}),
    ("inbox: failed", change("inbox", "status", "failed", event_id=EVENT), {"failed_event": EVENT}),
    ("inbox: a row of no event", stranger("inbox_strangers"), {"unexpected_event": event_id(999)}),
    ("inbox: dead letter", fail_event, {"failed_event": EVENT}),
    ("effects: row dropped", drop("effects", event_id=EVENT), {"lost_effect": EVENT}),
    ("effects: row doubled", double("effects", event_id=EVENT), {"doubled_effect": EVENT}),
    ("effects: rows swapped", swap_effects, {"order_inverted": PUBLISHED}),
    ("effects: value flipped", change("effects", "value_sha256", OTHER, event_id=EVENT), {"bytes_differ": EVENT}),
    ("effects: another place", change("effects", "kafka_offset", 77, event_id=EVENT), {"attribute_differs": EVENT}),
    ("effects: a row of no event", stranger("effects"), {"unexpected_event": event_id(999)}),
    ("sink: row dropped", drop("sink", event_id=EVENT), {"lost_event": EVENT}),
    ("sink: an older event stands", sink_of_older, {"sink_stale": KEYS[0]}),
    ("sink: value flipped", change("sink", "value_sha256", OTHER, event_id=EVENT), {"bytes_differ": EVENT}),
    ("sink: data flipped", change("sink", "data_sha256", OTHER, event_id=EVENT), {"bytes_differ": EVENT}),
    ("sink: documents flipped", change("sink", "documents_sha256", OTHER, event_id=EVENT), {"bytes_differ": EVENT}),
    ("sink: another tenant", change("sink", "tenant", "other", event_id=EVENT), {"attribute_differs": EVENT}),
    ("sink: a row of no event", stranger("sink"), {"unexpected_event": event_id(999)}),
    ("nothing: no effects read", forget("effects"), {"lost_effect": "", "nothing_compared": "effects"}),
    ("nothing: no submissions read", forget("submissions"), {"lost_submission": "", "nothing_compared": "event_data"}),
]


def copy_of_record(world, **place):
    of_record(LATER, lambda _world, record: world.snapshot.records.append(copy.deepcopy(record) | {"offset": 99, "ts": 999} | place))(world)


def lost_answer(world):
    """The first submit's answer was lost, so no answer says queued."""
    submit = next(line for line in world.calls("submit") if line["request_id"] == request_of(world))
    submit |= {"status": 0, "answer": None, "lost": 1}


def lost_first_answer(world):
    """Of both calls under a key only the second had an answer: a replay."""
    first = next(line for line in world.lines if "key" in line)
    first |= {"status": 0, "answer": None, "lost": 1}
    change_replay(lost=1)(world)


def never_happened(world):
    """Given up without an answer, and nothing was stored."""
    world.lines.append(world.calls("submit")[0] | {"request_id": "none", "status": 0, "answer": None, "lost": 3})


def loose_submission(world):
    """A submission without an id whose answer was lost, and which took place."""
    data = find(world.snapshot.requests, request_id=request_of(world))["data_sha256"]
    drop_calls(world)
    world.lines.append(world.calls("submit")[0] | {"call": "whole", "request_id": None, "status": 0, "answer": None, "lost": 1,
                                                   "data_sha256": data, "type": "example.submitted", "documents": []})


def stranger_submission(world):
    """Somebody else submits on the same topic meanwhile."""
    drop_calls(world)
    find(world.snapshot.outbox, event_id=EVENT)["traceparent"] = None
    record = next(record for record in world.snapshot.records if _ce_id(record) == EVENT)
    record["headers"] = [pair for pair in record["headers"] if not pair[0].endswith("traceparent")]


def unknown_publish(world):
    find(world.calls("publish"), event_id=PUBLISHED)["outcome"] = "unknown"


def naive_twins(world):
    """They keep no inbox and no log of the lanes."""
    world.snapshot.inbox.clear()
    for row in world.snapshot.outbox:
        row["status"] = "pending"
    world.snapshot.has_logs = False


SOUND = [
    ("nothing is wrong", lambda world: None),
    ("a copy on the topic", copy_of_record),
    ("a copy on another partition", lambda world: copy_of_record(world, partition=2)),
    ("a copy on another partition, before all others there", lambda world: copy_of_record(world, partition=-1)),
    ("an answer was lost, the repeat says duplicate", lost_answer),
    ("a first answer was lost, only a replay came", lost_first_answer),
    ("a call without any answer that did not take place", never_happened),
    ("a call without id and answer that took place", loose_submission),
    ("a submission of somebody else", stranger_submission),
    ("a publish of unknown outcome that took place", unknown_publish),
    ("a sink that keeps no effects", lambda world: (forget("effects")(world), setattr(world.snapshot, "has_effects", False))),
    ("the naive twins, of which all went well", naive_twins),
]


class JudgingTest(unittest.TestCase):
    def test_each_fault_is_named(self):
        for name, spoil, wanted in FAULTS:
            with self.subTest(name):
                world = World()
                spoil(world)
                anomalies = world.judged().anomalies
                self.assertEqual(set(wanted), {word for word, _, _ in anomalies}, anomalies)
                for word, part in wanted.items():
                    subjects = [subject for found, subject, _ in anomalies if found == word]
                    self.assertTrue(any(part in subject for subject in subjects), (word, part, subjects))

    def test_what_is_sound_is_passed(self):
        for name, act in SOUND:
            with self.subTest(name):
                world = World()
                act(world)
                self.assertEqual([], world.judged().anomalies)

    def test_what_the_naive_twins_lose_and_double_is_named(self):
        world = World()
        naive_twins(world)
        world.snapshot.effects.append(dict(world.snapshot.effects[-1]))
        del world.snapshot.effects[0]
        self.assertEqual({"lost_effect", "doubled_effect"}, {word for word, _, _ in world.judged().anomalies})

    def test_every_word_is_seen(self):
        self.assertEqual(set(WORDS), {word for _, _, wanted in FAULTS for word in wanted})

    def test_every_count_is_above_zero(self):
        counts = World().judged().counts
        self.assertEqual(0, counts.pop("topic_copies"))
        self.assertGreater(len(counts), 15)
        self.assertEqual([], [name for name, count in counts.items() if count == 0])

    def test_copies_are_counted(self):
        world = World()
        copy_of_record(world)
        self.assertEqual(1, world.judged().counts["topic_copies"])


class RecordTest(unittest.TestCase):
    def test_bytes_that_are_no_text_survive_the_dump(self):
        line = (b'{"topic":"t","partition":1,"offset":7,"tstype":"create","ts":1,"broker":1,'
                b'"headers":["bin","x\xff\x80\\u0000","empty",null],"key":"k\xc3\xa4","payload":"{\\"a\\":\\"\xff\\u0001\\\\u0041\\"}"}')
        record = snapshots.parse_record(line)
        self.assertEqual([["bin", b"x\xff\x80\0"], ["empty", None]], record["headers"])
        self.assertEqual("kä".encode(), record["key"])
        self.assertEqual(b'{"a":"\xff\x01\\u0041"}', record["value"])

    def test_a_null_payload_is_told_from_an_empty_one(self):
        values = [snapshots.parse_record(b'{"partition":0,"offset":0,"payload":%b}' % text)["value"] for text in (b"null", b'""')]
        self.assertEqual([None, b""], values)


if __name__ == "__main__":
    unittest.main()
