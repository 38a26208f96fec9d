# SPDX-License-Identifier: Apache-2.0
"""Idempotency keys as callers meet them: the situations F of docs/api.md."""
import base64
import datetime
import http.client
import json
import socket
import time

from producer_fixture import Database, Producer, Session, case, expect, in_parallel, main, new_id

JSON_TYPE = {"Content-Type": "application/json"}
KEPT = ("Content-Type", "Location", "Content-Length", "Idempotency-Expires")


class World:
    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        self.db = Database(bin_dir)
        self.producer = Producer(bin_dir, self.db.role())

    def start(self, **settings):
        return Producer(self.bin_dir, self.db.role(), **settings)


def unmake(world):
    world.producer.stop()
    world.db.drop()


def keyed(key, **more):
    return {"Idempotency-Key": key, **more}


def was_replayed(answer):
    text = answer.headers["Idempotent-Replayed"]
    assert text in ("true", "false"), answer
    return text == "true"


def check_same(first, again):
    """again is the replay of first: the same status, bytes and kept headers."""
    assert again.status == first.status and again.body == first.body, (first, again)
    assert [again.headers[name] for name in KEPT] == [first.headers[name] for name in KEPT], (first, again)
    assert was_replayed(again), again


def wait_for(condition, seconds=10):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.02)


def calls_of(producer):
    """Each route that writes, once: (method, path, body, headers, the same call written differently)."""
    request_id, other_id = producer.create(), producer.create()
    document = {"name": "a", "media_type": "text/plain", "content": base64.b64encode(b"abc").decode()}
    return [
        ("POST", "/requests", '{"type":"demo","data":{"a":1,"b":[]}}', JSON_TYPE, '{"data":{"b":[],"a":1.0},"type":"d\\u0065mo"}'),
        ("PUT", f"/requests/{new_id()}", '{"type":"demo","data":{"x":1e2}}', JSON_TYPE, ' {"type":"demo", "data":{"x":100}}'),
        ("POST", f"/requests/{request_id}/documents", json.dumps(document), JSON_TYPE,
         json.dumps(dict(reversed(document.items())))),
        ("POST", f"/requests/{request_id}/documents?name=raw&document_id=d", b"\0\1", {"Content-Type": "image/png"}, b"\0\1"),
        ("POST", f"/requests/{request_id}/submit", None, {}, None),
        ("POST", f"/requests/{other_id}/submit", "{}", JSON_TYPE, " { } "),
        ("POST", "/submissions", '{"type":"demo","data":{"n":0}}', JSON_TYPE, '{"type":"demo","data":{"n":-0}}'),
    ]


@case("F1 F2", "on every route that writes, the first answer says so and the second is its bytes")
def _(world):
    before = world.db.count("idempotency_keys")
    for number, (method, path, body, headers, again) in enumerate(calls_of(world.producer)):
        key = f"every-{number}"
        first = world.producer.call(method, path, body, {**headers, **keyed(key)})
        assert first.status in (200, 201) and not was_replayed(first), first
        expires = datetime.datetime.fromisoformat(first.headers["Idempotency-Expires"].replace("Z", "+00:00"))
        left = expires - datetime.datetime.now(datetime.timezone.utc)
        assert abs(left - datetime.timedelta(hours=24)) < datetime.timedelta(minutes=1), left
        check_same(first, world.producer.call(method, path, body, {**headers, **keyed(key)}))
        check_same(first, world.producer.call(method, path, again, {**headers, **keyed(key)}))
    assert world.db.count("idempotency_keys") == before + 7
    assert world.db.count("submissions") == world.db.count("outbox") == 3


@case("F2", "what changed since does not change the answer under a key")
def _(world):
    path = f"/requests/{new_id()}"
    body = {"type": "demo", "data": {"a": 1}}
    first = expect(world.producer.put(path, body, keyed("old")), 201)
    document = expect(world.producer.post(path + "/documents?name=a", b"x", keyed("old-document")), 200)
    expect(world.producer.post(path + "/submit"), 200)
    check_same(first, world.producer.put(path, body, keyed("old")))
    check_same(document, world.producer.post(path + "/documents?name=a", b"x", keyed("old-document")))
    assert expect(world.producer.put(path, body), 200).json["status"] == "submitted"


@case("F2", "an answer in the format of another version comes back byte for byte")
def _(world):
    body = {"type": "demo", "data": {"a": 1}}
    first = expect(world.producer.post("/submissions", body, keyed("format")), 201)
    old = b'<receipt version="0">\xff\x00 of ' + first.json["event_id"].encode() + b"</receipt>"
    world.db.sql(f"UPDATE onceward.idempotency_keys SET status = 202, body = '\\x{old.hex()}', headers = "
                 "E'Content-Type: application/vnd.old+xml\\r\\nLocation: /v0/here\\r\\nETag: \"0\"\\r\\n"
                 "Set-Cookie: never=sent\\r\\nX: \\x01\\r\\nnonsense\\r\\n' WHERE key = 'format'")
    for _ in range(2):
        again = expect(world.producer.post("/submissions", body, keyed("format")), 202)
        assert again.body == old and was_replayed(again), again
        assert again.headers["Content-Type"] == "application/vnd.old+xml"
        assert again.headers["Location"] == "/v0/here" and again.headers["ETag"] == '"0"'
        assert again.headers["Set-Cookie"] is None and again.headers["X"] is None, again
        assert again.headers["Idempotency-Expires"] == first.headers["Idempotency-Expires"]
    assert world.db.count("outbox", f"event_id = '{first.json['event_id']}'") == 1


@case("F2", "a large answer is replayed too, beside small ones")
def _(world):
    path = f"/requests/{new_id()}"
    body = {"type": "demo", "data": {"text": "x" * 200000}}
    first = expect(world.producer.put(path, body, keyed("large")), 201)
    small = expect(world.producer.post("/requests", {"type": "demo"}, keyed("small")), 201)
    calls = [lambda: world.producer.put(path, body, keyed("large"))] * 8
    calls += [lambda: world.producer.post("/requests", {"type": "demo"}, keyed("small"))] * 8
    answers = in_parallel(calls)
    for answer in answers[:8]:
        check_same(first, answer)
    for answer in answers[8:]:
        check_same(small, answer)
    # A small call whose answer is large: the document is small, the request it shows is not.
    big = expect(world.producer.post(path + "/documents?name=a", b"x", keyed("large-2")), 200)
    assert len(big.body) > 200000
    others = [lambda: world.producer.post(path + "/documents?name=a", b"x", keyed("large-2"))] * 4
    others += [lambda: world.producer.post("/requests", {"type": "demo"}, keyed("small"))] * 12
    for answer in in_parallel(others)[:4]:
        check_same(big, answer)


@case("F3", "another method, path, query, media type or body under a key is 422 and says what differs")
def _(world):
    request_id = world.producer.create()
    body = {"type": "demo", "data": {"a": 1}}
    first = expect(world.producer.post("/submissions", body, keyed("reused")), 201)
    calls = [
        ("POST", "/submissions", {"type": "demo", "data": {"a": 2}}, {}, ["body"], ["/data"]),
        ("POST", "/submissions", {"type": "other", "data": {"a": 2}}, {}, ["body"], ["/data", "/type"]),
        ("POST", "/submissions", {**body, "id": new_id()}, {}, ["body"], ["/id"]),
        ("POST", "/submissions", {"type": "demo"}, {}, ["body"], ["/data"]),
        ("POST", "/requests", body, {}, ["path"], []),
        ("PUT", f"/requests/{new_id()}", body, {}, ["method", "path"], []),
        ("POST", f"/requests/{request_id}/submit", None, {}, ["path", "body"], ["/data", "/type"]),
        ("POST", f"/requests/{request_id}/documents?name=a", b"x", {"Content-Type": "text/plain"},
         ["path", "query", "media_type", "body"], ["/data", "/type"]),
    ]
    for method, path, other, headers, differs, members in calls:
        answer = expect(world.producer.call(method, path, other, {**headers, **keyed("reused")}), 422,
                        "idempotency_key_reused")
        assert answer.json["differs"] == differs, (path, answer)
        assert sorted(answer.json["members"]) == members, (path, answer)
        assert answer.json["resource"] == f"/requests/{first.json['id']}", answer
        assert answer.json["retry"] == {"same_key": False, "new_key": True, "after_seconds": None}, answer
    check_same(first, world.producer.post("/submissions", body, keyed("reused")))
    assert world.producer.get(f"/requests/{request_id}").json["status"] == "open"


@case("F4", "another tenant's key is another key")
def _(world):
    other = world.start(tenant="other")
    try:
        body = {"type": "demo", "data": {"a": 1}}
        mine = expect(world.producer.post("/submissions", body, keyed("tenants")), 201)
        expect(other.get("/idempotency-keys/tenants"), 404, "idempotency_key_not_found")
        theirs = expect(other.post("/submissions", {"type": "demo"}, keyed("tenants")), 201)
        assert not was_replayed(theirs) and theirs.json["id"] != mine.json["id"]
        check_same(mine, world.producer.post("/submissions", body, keyed("tenants")))
        check_same(theirs, other.post("/submissions", {"type": "demo"}, keyed("tenants")))
        assert other.get("/idempotency-keys/tenants").json["event_id"] == theirs.json["event_id"]
    finally:
        other.stop()


def hold_request(world, name):
    return Session(world.db.admin, f"SELECT 1 FROM onceward.requests WHERE request_id = '{name}' FOR UPDATE")


def hold_key(world, key, tenant="default"):
    """As a rival process does that works under the key."""
    return Session(world.db.admin, f"SELECT pg_advisory_xact_lock(hashtextextended('{tenant} {key}', 2))")


def waiting(producer):
    return producer.get("/metrics").body.decode()


@case("F5", "an equal call waits for the running one and gets its answer")
def _(world):
    name = world.producer.create()
    rival = hold_request(world, name)
    calls = [lambda: world.producer.post(f"/requests/{name}/submit", None, keyed("running"))] * 6
    answers = in_parallel(calls + [lambda: (time.sleep(1), rival.end())])[:6]
    for answer in answers:
        assert expect(answer, 200).body == answers[0].body and answer.json["queued"] is True, answer
    assert sorted(was_replayed(answer) for answer in answers) == [False] + [True] * 5


@case("F5", "after 5 s of waiting for a running call it is 409, and the running one goes on")
def _(world):
    name = world.producer.create()
    rival = hold_request(world, name)
    results = []

    def wait():
        time.sleep(0.2)
        begun = time.monotonic()
        answer = world.producer.post(f"/requests/{name}/submit", None, keyed("slow"))
        return answer, time.monotonic() - begun
    results = in_parallel([lambda: world.producer.post(f"/requests/{name}/submit", None, keyed("slow")), wait, wait,
                           lambda: (time.sleep(6.5), rival.end())])
    first = expect(results[0], 200)
    for answer, seconds in results[1:3]:
        expect(answer, 409, "idempotency_in_progress")
        assert answer.headers["Retry-After"] == "1" and answer.json["retry"]["same_key"], answer
        assert 4.9 < seconds < 6, seconds
    check_same(first, world.producer.post(f"/requests/{name}/submit", None, keyed("slow")))


@case("F5", "a key that another process works under: 409 when the time is over; no neighbour waits")
def _(world):
    rival = hold_key(world, "elsewhere")
    producer = world.start(key_wait_ms="1500")

    def wait():
        begun = time.monotonic()
        return producer.post("/submissions", {"type": "demo"}, keyed("elsewhere")), time.monotonic() - begun

    def others():
        begun = time.monotonic()
        for number in range(30):
            expect(producer.post("/submissions", {"type": "demo"}, keyed(f"beside-{number}")), 201)
        return time.monotonic() - begun
    results = in_parallel([wait] * 20 + [others])
    rival.end()
    producer.stop()
    assert results[20] < 1.4, results[20]
    for answer, seconds in results[:20]:
        expect(answer, 409, "idempotency_in_progress")
        assert 1.3 < seconds < 2.5, seconds
    assert world.db.count("idempotency_keys", "key = 'elsewhere'") == 0
    expect(world.producer.post("/submissions", {"type": "demo"}, keyed("elsewhere")), 201)


@case("F5", "when the other process lets go, those that wait are one call")
def _(world):
    rival = hold_key(world, "let-go")
    calls = [lambda: world.producer.post("/submissions", {"type": "demo"}, keyed("let-go"))] * 10
    answers = in_parallel(calls + [lambda: (time.sleep(1), rival.end())])[:10]
    assert len({expect(answer, 201).body for answer in answers}) == 1
    assert sorted(was_replayed(answer) for answer in answers) == [False] + [True] * 9


@case("F5", "20 calls that wait under one slow key hold at most 2 connections of the database")
def _(world):
    producer = world.start(batchers="8")
    name = producer.create()
    rival = hold_request(world, name)
    seen = []

    def look():
        time.sleep(0.5)
        until = time.monotonic() + 2
        looker = Session(world.db.admin, "COMMIT")
        while time.monotonic() < until:
            seen.append(int(looker.ask("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                                       "AND usename = 'onceward_producer' AND state <> 'idle'")))
            time.sleep(0.005)
        looker.end()
        rival.end()
    calls = [lambda: producer.post(f"/requests/{name}/submit", None, keyed("slow-20"))] * 20
    answers = in_parallel(calls + [look])[:20]
    producer.stop()
    assert len({expect(answer, 200).body for answer in answers}) == 1
    assert len(seen) >= 20 and max(seen) <= 2, seen
    print(f"      connections in use while they wait: at most {max(seen)}, on average {sum(seen) / len(seen):.2f}")


@case("F5", "a call that waits for its request is never told that somebody works under its key: that is itself")
def _(world):
    producer = world.start(batchers="8", key_wait_ms="0")
    name = producer.create()
    rival = hold_request(world, name)
    until = time.monotonic() + 2

    def others():
        while time.monotonic() < until:
            expect(producer.post("/submissions", {"type": "demo"}), 201)

    def release():
        time.sleep(2)
        rival.end()
    answers = in_parallel([lambda: producer.post(f"/requests/{name}/submit", None, keyed("itself")), release] + [others] * 3)
    producer.stop()
    assert expect(answers[0], 200).json["queued"] is True and answers[2:] == [None] * 3, answers


@case("F6", "another call under a key that is running is 422 at once, before any waiting")
def _(world):
    name = world.producer.create()
    rival = hold_request(world, name)

    def differ():
        time.sleep(0.3)
        begun = time.monotonic()
        answer = world.producer.post("/submissions", {"type": "demo"}, keyed("running-other"))
        seconds = time.monotonic() - begun
        rival.end()
        return answer, seconds
    first, (answer, seconds) = in_parallel(
        [lambda: world.producer.post(f"/requests/{name}/submit", None, keyed("running-other")), differ])
    expect(first, 200)
    expect(answer, 422, "idempotency_key_reused")
    assert answer.json["resource"] is None and answer.json["differs"] == ["path", "body"], answer
    assert seconds < 1, seconds


@case("F7", "a key that is empty, too long, of bad characters or on two lines is refused")
def _(world):
    for key in ("", '""', "x" * 256, '"' + "x" * 256 + '"', "a b", "a,b", "a;b", 'a"b', '"a', '"a"b', "\xe4", "a\\b"):
        answer = world.producer.post("/submissions", {"type": "demo"}, keyed(key))
        expect(answer, 400, "idempotency_key_invalid")
        assert answer.json["retry"]["new_key"], answer
    text, _ = world.producer.raw(b"POST /submissions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                                 b"Idempotency-Key: a\r\nIdempotency-Key: a\r\nContent-Length: 15\r\n\r\n"
                                 b'{"type":"demo"}')
    assert text.startswith(b"HTTP/1.1 400 ") and b"idempotency_key_invalid" in text, text
    expect(world.producer.post("/submissions", {"type": "demo"}, keyed("x" * 255)), 201)


@case("F8", "a key in quotation marks and the bare one are one key")
def _(world):
    first = expect(world.producer.post("/submissions", {"type": "demo"}, keyed('"quoted"')), 201)
    check_same(first, world.producer.post("/submissions", {"type": "demo"}, keyed("quoted")))
    assert world.producer.get("/idempotency-keys/quoted").json["event_id"] == first.json["event_id"]


@case("F9", "where keys are required a call without one is refused")
def _(world):
    strict = world.start(key_is_required="on")
    try:
        for method, path, body, headers, _ in calls_of(world.producer):
            answer = expect(strict.call(method, path, body, headers), 400, "idempotency_key_missing")
            assert answer.json["retry"]["new_key"], answer
        expect(strict.get("/requests"), 200)
        expect(strict.post("/submissions", {"type": "demo"}, keyed("strict")), 201)
    finally:
        strict.stop()


def expire(world, key, seconds=1):
    world.db.sql(f"UPDATE onceward.idempotency_keys SET expires_at = clock_timestamp() - interval '{seconds} s' "
                 f"WHERE key = '{key}'")


@case("F10", "an expired key is as if new, also for another call")
def _(world):
    first = expect(world.producer.post("/submissions", {"type": "demo"}, keyed("expired")), 201)
    expire(world, "expired")
    second = expect(world.producer.post("/submissions", {"type": "demo"}, keyed("expired")), 201)
    assert not was_replayed(second) and second.json["id"] != first.json["id"]
    check_same(second, world.producer.post("/submissions", {"type": "demo"}, keyed("expired")))
    expire(world, "expired")
    third = expect(world.producer.post("/requests", {"type": "demo"}, keyed("expired")), 201)
    check_same(third, world.producer.post("/requests", {"type": "demo"}, keyed("expired")))
    assert world.db.count("idempotency_keys", "key = 'expired'") == 1


@case("F10", "an answer lives as long as is set, by the database's clock")
def _(world):
    brief = world.start(key_lifetime_s="1")
    try:
        first = expect(brief.post("/submissions", {"type": "demo"}, keyed("brief")), 201)
        check_same(first, brief.post("/submissions", {"type": "demo"}, keyed("brief")))
        wait_for(lambda: brief.get("/idempotency-keys/brief").json.get("state") != "completed")
        assert not was_replayed(expect(brief.post("/submissions", {"type": "demo"}, keyed("brief")), 201))
    finally:
        brief.stop()


@case("F10", "20 calls under one expired key are one call, and one that holds its row holds up nobody")
def _(world):
    expect(world.producer.post("/submissions", {"type": "demo"}, keyed("expired-20")), 201)
    expire(world, "expired-20")
    before = world.db.count("submissions")
    other = world.start()
    try:
        answers = in_parallel([lambda producer=producer: producer.post("/submissions", {"type": "demo"},
                                                                       keyed("expired-20"))
                               for producer in (world.producer, other) * 10])
    finally:
        other.stop()
    assert len({expect(answer, 201).body for answer in answers}) == 1
    assert world.db.count("submissions") == before + 1
    expire(world, "expired-20")
    rival = Session(world.db.admin, "SELECT 1 FROM onceward.idempotency_keys WHERE key = 'expired-20' FOR UPDATE")

    def others():
        begun = time.monotonic()
        for number in range(20):
            expect(world.producer.post("/submissions", {"type": "demo"}, keyed(f"expired-beside-{number}")), 201)
        seconds = time.monotonic() - begun
        rival.end()
        return seconds
    answer, seconds = in_parallel([lambda: world.producer.post("/submissions", {"type": "demo"}, keyed("expired-20")),
                                   others])
    expect(answer, 201)
    assert seconds < 4, seconds


@case("F11", "where expired keys are refused they are remembered")
def _(world):
    strict = world.start(expired_keys="refuse", expired_keys_kept_s="3600", reap_interval_s="1")
    try:
        expect(strict.post("/submissions", {"type": "demo"}, keyed("over")), 201)
        expect(strict.post("/submissions", {"type": "demo"}, keyed("long-over")), 201)
        expire(world, "over")
        expire(world, "long-over", 4000)
        answer = expect(strict.post("/submissions", {"type": "demo"}, keyed("over")), 409, "idempotency_result_expired")
        assert answer.json["retry"] == {"same_key": False, "new_key": True, "after_seconds": None}, answer
        wait_for(lambda: strict.get("/idempotency-keys/long-over").status == 404)
        assert strict.get("/idempotency-keys/over").json["state"] == "expired"
        expect(strict.post("/submissions", {"type": "demo"}, keyed("long-over")), 201)
    finally:
        strict.stop()


@case("F12", "a submit that is retried under its key is told what it was told; any other is a duplicate")
def _(world):
    path = f"/requests/{world.producer.create()}/submit"
    first = expect(world.producer.post(path, None, keyed("submit-1")), 200)
    assert first.json["queued"] is True
    without = expect(world.producer.post(path), 200)
    assert without.json == {**first.json, "queued": False, "status": "duplicate"}
    assert without.headers["Idempotent-Replayed"] is None
    other = expect(world.producer.post(path, None, keyed("submit-2")), 200)
    assert other.json == without.json and not was_replayed(other)
    check_same(first, world.producer.post(path, None, keyed("submit-1")))
    check_same(other, world.producer.post(path, {}, keyed("submit-2")))


@case("F13", "what is refused leaves its key unused")
def _(world):
    name = new_id()
    path = f"/requests/{name}"
    for code, status, method, where, body in (
            ("request_not_found", 404, "POST", path + "/submit", None),
            ("body_invalid", 400, "PUT", path, '{"type":1}'),
            ("type_unknown", 422, "PUT", path, {"type": "unheard"}),
            ("media_type_unsupported", 415, "PUT", path, b"x")):
        expect(world.producer.call(method, where, body, keyed("refused", **(JSON_TYPE if code == "body_invalid" else {}))),
               status, code)
        # The refusal is told before the transaction that found it has ended.
        wait_for(lambda: world.producer.get("/idempotency-keys/refused").status == 404)
    first = expect(world.producer.put(path, {"type": "demo"}, keyed("refused")), 201)
    check_same(first, world.producer.put(path, {"type": "demo"}, keyed("refused")))
    expect(world.producer.put(path, {"type": "demo", "data": {"a": 1}}, keyed("refused-2")), 409, "request_conflict")
    expect(world.producer.put(path, {"type": "demo"}, keyed("refused-2")), 200)


@case("F13", "equal calls that are refused are refused together, and the key stays free")
def _(world):
    name = new_id()
    answers = in_parallel([lambda: world.producer.post(f"/requests/{name}/submit", None, keyed("together"))] * 20)
    for answer in answers:
        expect(answer, 404, "request_not_found")
    expect(world.producer.put(f"/requests/{name}", {"type": "demo"}), 201)
    assert expect(world.producer.post(f"/requests/{name}/submit", None, keyed("together")), 200).json["queued"] is True


@case("F14", "too many calls that wait, under one key or for a tenant, are 429")
def _(world):
    small = world.start(key_waiters_max="3", tenant_waiters_max="5", key_wait_ms="700")
    names = [small.create() for _ in range(3)]
    rivals = [hold_request(world, name) for name in names]
    try:
        calls = [lambda: small.post(f"/requests/{names[0]}/submit", None, keyed("crowd"))] * 8
        answers = in_parallel(calls + [lambda: (time.sleep(1.5), rivals[0].end())])[:8]
        assert sorted(answer.status for answer in answers) == [200] + [409] * 3 + [429] * 4, answers
        for answer in answers:
            if answer.status == 429:
                expect(answer, 429, "too_many_waiting")
                assert answer.headers["Retry-After"] == "1" and answer.json["retry"]["same_key"], answer
        calls = [lambda name=name: small.post(f"/requests/{name}/submit", None, keyed(f"crowd-{name}"))
                 for name in names[1:] for _ in range(4)]
        answers = in_parallel(calls + [lambda: (time.sleep(1.5), [rival.end() for rival in rivals[1:]])])[:8]
        assert sorted(answer.status for answer in answers) == [200] * 2 + [409] * 5 + [429], answers
    finally:
        small.stop()


@case("F22", "where a tenant has as many keys as it may have, new ones are refused and old ones are answered")
def _(world):
    few = world.start(tenant="few", tenant_keys_max="3", reap_interval_s="1")
    try:
        firsts = {number: expect(few.post("/submissions", {"type": "demo"}, keyed(f"few-{number}")), 201)
                  for number in range(3)}

        def is_full():
            answer = few.post(f"/requests/{new_id()}/submit", None, keyed("one-more"))
            return answer.status == 429  # Before it is counted the same call is 404, which keeps no key.
        wait_for(is_full)
        answer = expect(few.post("/submissions", {"type": "demo"}, keyed("one-more")), 429, "keys_too_many")
        assert answer.headers["Retry-After"] == "60" and answer.json["retry"]["same_key"], answer
        assert world.db.count("idempotency_keys", "tenant = 'few'") == 3
        for number, first in firsts.items():
            check_same(first, few.post("/submissions", {"type": "demo"}, keyed(f"few-{number}")))
        expect(few.post("/submissions", {"type": "demo"}), 201)
        expect(world.producer.post("/submissions", {"type": "demo"}, keyed("few-other-tenant")), 201)
        expire(world, "few-0")
        wait_for(lambda: few.post("/submissions", {"type": "demo"}, keyed("one-more")).status == 201)
    finally:
        few.stop()


@case("F15", "a key can be looked up in each of its states")
def _(world):
    expect(world.producer.get("/idempotency-keys/look"), 404, "idempotency_key_not_found")
    expect(world.producer.get("/idempotency-keys/a%00"), 400, "idempotency_key_invalid")
    expect(world.producer.get("/idempotency-keys/look?x=1"), 400, "query_invalid")
    rival = hold_key(world, "look")
    assert expect(world.producer.get("/idempotency-keys/look"), 200).json == {"key": "look", "state": "in_progress"}
    rival.end()
    first = expect(world.producer.post("/submissions", {"type": "demo"}, keyed("look")), 201)
    shown = expect(world.producer.get("/idempotency-keys/look"), 200).json
    assert set(shown) == {"key", "state", "status", "first_seen", "expires_at", "resource", "event_id"}, shown
    assert shown["state"] == "completed" and shown["status"] == 201
    assert shown["resource"] == first.headers["Location"] and shown["event_id"] == first.json["event_id"]
    assert shown["expires_at"] == first.headers["Idempotency-Expires"] and shown["first_seen"] < shown["expires_at"]
    expire(world, "look")
    assert expect(world.producer.get("/idempotency-keys/look"), 200).json["state"] == "expired"
    strange = 'a/b "c"?'
    created = expect(world.producer.post("/requests", {"type": "demo"}, keyed('"a/b \\"c\\"?"')), 201)
    shown = expect(world.producer.get("/idempotency-keys/a%2Fb%20%22c%22%3F"), 200).json
    assert shown["key"] == strange and shown["event_id"] is None and shown["resource"] == created.headers["Location"]


@case("F15", "a key says in_progress all the while that its call waits for a request which a rival holds")
def _(world):
    name = world.producer.create()
    rival = hold_request(world, name)
    seen = []

    def look():
        wait_for(lambda: world.producer.get("/idempotency-keys/waits-for-rival").status == 200)
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            answer = world.producer.get("/idempotency-keys/waits-for-rival")
            seen.append(answer.json.get("state", answer.code))
        rival.end()
    expect(in_parallel([lambda: world.producer.post(f"/requests/{name}/submit", None, keyed("waits-for-rival")),
                        look])[0], 200)
    assert len(seen) > 50 and set(seen) == {"in_progress"}, {state: seen.count(state) for state in seen}
    assert world.producer.get("/idempotency-keys/waits-for-rival").json["state"] == "completed"


@case("F16", "expired keys are deleted, in bites, and never those that are valid or held")
def _(world):
    world.db.sql("INSERT INTO onceward.idempotency_keys (tenant, key, fingerprint, components, status, headers, body, "
                 "expires_at) SELECT 'reap', 'k' || n, sha256('x'), '', 200, '', '', "
                 "clock_timestamp() + CASE WHEN n % 10 = 0 THEN interval '1 h' ELSE interval '-1 s' END "
                 "FROM generate_series(1, 5000) n")
    rival = Session(world.db.admin, "SELECT 1 FROM onceward.idempotency_keys WHERE tenant = 'reap' AND key = 'k1' FOR UPDATE")
    reapers = [world.start(reap_interval_s="1") for _ in range(2)]
    try:
        wait_for(lambda: world.db.count("idempotency_keys", "tenant = 'reap'") == 501)
        rival.end()
        wait_for(lambda: world.db.count("idempotency_keys", "tenant = 'reap'") == 500)
        assert world.db.count("idempotency_keys", "tenant = 'reap' AND expires_at <= clock_timestamp()") == 0
        counts = []
        for reaper in [*reapers, world.producer]:
            text = reaper.get("/metrics").body.decode()
            counts += [float(line.split()[-1]) for line in text.splitlines()
                       if line.startswith("onceward_producer_keys_reaped_total")]
        assert sum(counts) >= 4500, counts
    finally:
        for reaper in reapers:
            reaper.stop()


@case("F17", "a route that honours no keys refuses them")
def _(world):
    expect(world.producer.post("/events/run", None, keyed("run")), 400, "idempotency_key_unsupported")


@case("F18 D4", "a client that leaves after its body: the answer stands under its key")
def _(world):
    name = world.producer.create()
    with socket.create_connection(("127.0.0.1", world.producer.port)) as connection:
        connection.sendall(f"POST /requests/{name}/submit HTTP/1.1\r\nHost: a\r\nIdempotency-Key: gone\r\n"
                           "Content-Length: 0\r\n\r\n".encode())
    wait_for(lambda: world.producer.get("/idempotency-keys/gone").status == 200)
    answer = expect(world.producer.post(f"/requests/{name}/submit", None, keyed("gone")), 200)
    assert answer.json["queued"] is True and was_replayed(answer), answer


@case("F19", "many submits of one request under keys of their own: one is queued, each is told so for ever")
def _(world):
    path = f"/requests/{world.producer.create()}/submit"
    keys = [f"own-{number}" for number in range(20)]
    first = in_parallel([lambda key=key: world.producer.post(path, None, keyed(key)) for key in keys])
    assert sorted(expect(answer, 200).json["status"] for answer in first) == ["duplicate"] * 19 + ["queued"]
    again = in_parallel([lambda key=key: world.producer.post(path, None, keyed(key)) for key in keys])
    for one, other in zip(first, again):
        check_same(one, other)


@case("F20", "a stop finishes those that wait under a key")
def _(world):
    producer = world.start()
    name = producer.create()
    rival = hold_request(world, name)

    def call():
        try:
            return producer.post(f"/requests/{name}/submit", None, keyed("stopped"))
        except (ConnectionError, http.client.HTTPException) as error:
            return error
    results = in_parallel([call] * 4 + [lambda: (time.sleep(0.5), producer.stop()), lambda: (time.sleep(1.5), rival.end())])
    assert len({expect(answer, 200).body for answer in results[:4]}) == 1


main(World, unmake)
