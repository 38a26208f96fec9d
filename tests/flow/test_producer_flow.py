# SPDX-License-Identifier: Apache-2.0
"""The producer as its callers meet it."""
import base64
import hashlib
import http.client
import json
import os
import socket
import subprocess
import time

from producer_fixture import (ADMIN, Database, Producer, Proxy, Session, case, check_raw, expect, in_parallel, main, new_id, receive)


class World:
    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        self.db = Database(bin_dir)
        self.producer = Producer(bin_dir, self.db.role())


def unmake(world):
    world.producer.stop()
    world.db.drop()


def b64(data):
    return base64.b64encode(data).decode()


# ---- requests ------------------------------------------------------------------------------------------------------

@case("A1", "POST /requests makes an open request")
def _(world):
    answer = expect(world.producer.post("/requests", {"type": "demo", "data": {"a": 1}}), 201)
    assert answer.headers["Location"] == f"/requests/{answer.json['id']}", answer
    assert answer.json["status"] == "open" and answer.json["documents"] == [], answer
    assert expect(world.producer.get(answer.headers["Location"]), 200).json == answer.json


@case("A1", "data travels as it was written, byte for byte")
def _(world):
    data = '{"b" : 1.0, "a":[1e2,  -0,12345678901234567], "\\u00e4": "\\ud83d\\ude00" }'
    answer = expect(world.producer.post("/submissions", f'{{"type":"demo","data":{data}}}',
                                        {"Content-Type": "application/json; charset=UTF-8"}), 201)
    assert data.encode() in world.producer.get(f"/requests/{answer.json['id']}").body
    value = world.db.value("SELECT encode(value, 'hex') FROM onceward.outbox WHERE event_id = "
                           f"'{answer.json['event_id']}'")
    assert f'"data":{data},'.encode() in bytes.fromhex(value), value


@case("A2", "PUT makes a request once and shows it as it is afterwards")
def _(world):
    path = f"/requests/{new_id()}"
    body = {"type": "demo", "data": {"x": 1.0, "y": "ä"}}
    first = expect(world.producer.put(path, body), 201)
    assert first.headers["Location"] == path
    again = expect(world.producer.put(path, '{ "data": {"y":"\\u00e4", "x": 10e-1}, "type":"demo"}',
                                      {"Content-Type": "application/json"}), 200)
    assert again.json == first.json
    expect(world.producer.post(path + "/submit"), 200)
    assert expect(world.producer.put(path, body), 200).json["status"] == "submitted"


@case("A3", "PUT with another type or other data is a conflict")
def _(world):
    path = f"/requests/{new_id()}"
    world.db.sql("INSERT INTO onceward.routes VALUES ('other', 'demo') ON CONFLICT DO NOTHING")
    expect(world.producer.put(path, {"type": "demo", "data": {"x": 1}}), 201)
    for body in ({"type": "other", "data": {"x": 1}}, {"type": "demo", "data": {"x": "1"}}, {"type": "demo"},
                 {"type": "demo", "data": {}}, {"type": "demo", "data": {"x": 1, "z": None}}):
        expect(world.producer.put(path, body), 409, "request_conflict")


@case("A4", "PUT with a name that is no UUID is refused")
def _(world):
    for name in ("abc", new_id().upper(), new_id() + "0", "%7B" + new_id()[3:]):
        expect(world.producer.put(f"/requests/{name}", {"type": "demo"}), 400, "request_id_invalid")


@case("A5", "POST /submissions creates, fills and submits in one call")
def _(world):
    content = os.urandom(1000)
    answer = expect(world.producer.post("/submissions", {
        "type": "demo", "data": {"n": 1},
        "documents": [{"name": "ä.bin", "media_type": "image/png", "content": b64(content)},
                      {"document_id": "two", "name": "two", "content": ""}]}), 201)
    receipt = answer.json
    assert set(receipt) == {"id", "event_id", "submitted_at", "queued", "status"}, receipt
    assert receipt["queued"] is True and receipt["status"] == "queued"
    assert answer.headers["Location"] == f"/requests/{receipt['id']}"
    request = world.producer.get(f"/requests/{receipt['id']}").json
    assert request["status"] == "submitted" and request["event_id"] == receipt["event_id"]
    assert [d["name"] for d in request["documents"]] == ["ä.bin", "two"]
    assert request["documents"][0]["sha256"] == hashlib.sha256(content).hexdigest()
    got = world.producer.get(f"/requests/{receipt['id']}/documents/{request['documents'][0]['id']}")
    assert got.body == content and got.headers["Content-Type"] == "image/png"
    event = json.loads(bytes.fromhex(world.db.value(
        f"SELECT encode(value, 'hex') FROM onceward.outbox WHERE event_id = '{receipt['event_id']}'")))
    assert event["documents"] == request["documents"] and event["data"] == {"n": 1}, event
    assert event["submitted_at"] == receipt["submitted_at"] and event["request_id"] == receipt["id"]


@case("A6", "POST /submissions again with the same id is a duplicate, without an id a new request")
def _(world):
    body = {"id": new_id(), "type": "demo", "data": {"n": 2}, "documents": [{"name": "a", "content": b64(b"a")}]}
    first = expect(world.producer.post("/submissions", body), 201).json
    again = expect(world.producer.post("/submissions", body), 200).json
    assert again == {**first, "queued": False, "status": "duplicate"}
    expect(world.producer.post("/submissions", {**body, "data": {"n": 3}}), 409, "request_conflict")
    expect(world.producer.post("/submissions", {**body, "documents": [{"name": "b", "content": ""}]}), 409,
           "request_conflict")
    assert world.db.count("outbox", f"event_id = '{first['event_id']}'") == 1
    del body["id"]
    ids = {expect(world.producer.post("/submissions", body), 201).json["id"] for _ in range(3)}
    assert len(ids) == 3


@case("A6", "POST /submissions submits an open request that has the same content")
def _(world):
    name = new_id()
    expect(world.producer.put(f"/requests/{name}", {"type": "demo", "data": {"n": 4}}), 201)
    answer = expect(world.producer.post("/submissions", {"id": name, "type": "demo", "data": {"n": 4}}), 201)
    assert answer.json["queued"] is True


@case("A4", "POST /submissions with an id that is no UUID is refused")
def _(world):
    for name in ("", "x", new_id().upper()):
        expect(world.producer.post("/submissions", {"id": name, "type": "demo"}), 400, "request_id_invalid")


@case("A7 A8", "the first submit queues, every later one is a duplicate of it")
def _(world):
    name = world.producer.create()
    first = expect(world.producer.post(f"/requests/{name}/submit"), 200).json
    assert first["queued"] is True and first["status"] == "queued"
    for body in (None, {}):
        again = expect(world.producer.post(f"/requests/{name}/submit", body), 200).json
        assert again == {**first, "queued": False, "status": "duplicate"}, again
    assert world.db.count("outbox", f"key = '{name}'") == 1


@case("A7", "the submitter's traceparent travels, a broken one does not")
def _(world):
    good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    for given, stored in ((good, good), ("nonsense", ""), (good.upper(), "")):
        answer = expect(world.producer.post("/submissions", {"type": "demo"}, {"traceparent": given}), 201)
        assert world.db.value("SELECT coalesce(traceparent, '') FROM onceward.outbox WHERE event_id = "
                              f"'{answer.json['event_id']}'") == stored


@case("A7", "a submit with something in its body is refused")
def _(world):
    name = world.producer.create()
    expect(world.producer.post(f"/requests/{name}/submit", {"a": 1}), 400, "body_invalid")
    expect(world.producer.post(f"/requests/{name}/submit", "x" * 300, {"Content-Type": "application/json"}), 413)
    assert world.producer.get(f"/requests/{name}").json["status"] == "open"


# ---- documents -----------------------------------------------------------------------------------------------------

@case("A9", "documents come as JSON or as raw bytes")
def _(world):
    name = world.producer.create()
    path = f"/requests/{name}/documents"
    content = bytes(range(256))
    answer = expect(world.producer.post(path + "?name=raw%20one.bin&document_id=one", content,
                                        {"Content-Type": "text/csv; header=present"}), 200)
    assert answer.json["id"] == name and answer.json["documents"][0]["media_type"] == "text/csv; header=present"
    assert answer.json["documents"][0]["name"] == "raw one.bin"
    answer = expect(world.producer.post(path, {"name": "two", "media_type": "text/plain", "content": b64(content)}), 200)
    assert [d["size"] for d in answer.json["documents"]] == [256, 256]
    expect(world.producer.post(path + "?name=json", {"a": 1}), 200)  # With a name it is raw, whatever its type.
    request = world.producer.get(f"/requests/{name}").json
    assert len(request["documents"]) == 3
    for document in request["documents"][:2]:
        assert document["uri"].endswith(f"{path}/{document['id']}")
        assert world.producer.get(f"{path}/{document['id']}").body == content


@case("A10", "the same document again changes nothing")
def _(world):
    name = world.producer.create()
    path = f"/requests/{name}/documents"
    document = {"name": "a", "media_type": "text/plain", "content": b64(b"hello")}
    first = expect(world.producer.post(path, document), 200)
    assert expect(world.producer.post(path, document), 200).body == first.body
    assert expect(world.producer.post(path + "?name=a", b"hello", {"Content-Type": "text/plain"}), 200).body == first.body
    expect(world.producer.post(path, {**document, "document_id": "own"}), 200)
    assert len(expect(world.producer.post(path, {**document, "document_id": "own"}), 200).json["documents"]) == 2


@case("A11", "another content under the same document id is a conflict")
def _(world):
    name = world.producer.create()
    path = f"/requests/{name}/documents"
    expect(world.producer.post(path, {"document_id": "x", "name": "a", "content": b64(b"one")}), 200)
    for other in ({"name": "a", "content": b64(b"two")}, {"name": "b", "content": b64(b"one")},
                  {"name": "a", "content": b64(b"one"), "media_type": "text/plain"}):
        expect(world.producer.post(path, {"document_id": "x", **other}), 409, "document_conflict")
    expect(world.producer.post("/submissions", {"type": "demo", "documents": [
        {"document_id": "x", "name": "a", "content": ""}, {"document_id": "x", "name": "b", "content": ""}]}), 409,
        "document_conflict")


@case("A12", "a document after the submit is refused")
def _(world):
    name = world.producer.create()
    document = {"name": "a", "content": b64(b"one")}
    expect(world.producer.post(f"/requests/{name}/documents", document), 200)
    expect(world.producer.post(f"/requests/{name}/submit"), 200)
    expect(world.producer.post(f"/requests/{name}/documents", {"name": "b", "content": ""}), 409,
           "request_already_submitted")
    expect(world.producer.post(f"/requests/{name}/documents", document), 409, "request_already_submitted")


@case("A13", "what does not exist, or is another tenant's, is 404")
def _(world):
    mine = world.producer.create()
    theirs = new_id()
    world.db.sql(f"INSERT INTO onceward.requests (tenant, request_id, type, fingerprint) "
                 f"VALUES ('other', '{theirs}', 'demo', '\\x00');"
                 f"INSERT INTO onceward.documents VALUES ('other', '{theirs}', 'd', 1, 'd', 'text/plain', 1, "
                 f"sha256('a'), 'a');"
                 f"INSERT INTO onceward.outbox (tenant, event_id, topic, key, type, source, time, value) "
                 f"VALUES ('other', '{theirs}', 'demo', 'k', 'demo', '/x', now(), 'x')")
    for name in (new_id(), theirs, mine.upper(), "x"):
        expect(world.producer.get(f"/requests/{name}"), 404, "request_not_found")
        expect(world.producer.post(f"/requests/{name}/submit"), 404, "request_not_found")
        expect(world.producer.post(f"/requests/{name}/documents", {"name": "a", "content": ""}), 404,
               "request_not_found")
        expect(world.producer.get(f"/requests/{name}/documents/d"), 404)
        expect(world.producer.get(f"/events/{name}"), 404, "event_not_found")
    expect(world.producer.get(f"/requests/{mine}/documents/d"), 404, "document_not_found")
    for path in (f"/requests/{mine}/", "/requests/", "/nothing", f"/requests/{mine}/documents", "//requests",
                 "/Requests", "/requests/%2e%2e"):
        expect(world.producer.get(path), 405 if path.endswith("/documents") else 404)
    everything = world.producer.get("/requests?limit=1000").body + world.producer.get("/events?limit=1000").body
    assert theirs.encode() not in everything
    assert world.producer.put(f"/requests/{theirs}", {"type": "demo"}).status == 201  # Their id says nothing to us.


@case("A14", "an unknown type is refused at create and again at submit")
def _(world):
    expect(world.producer.post("/requests", {"type": "unheard"}), 422, "type_unknown")
    expect(world.producer.put(f"/requests/{new_id()}", {"type": "unheard"}), 422, "type_unknown")
    expect(world.producer.post("/submissions", {"type": "unheard"}), 422, "type_unknown")
    world.db.sql("INSERT INTO onceward.routes VALUES ('brief', 'demo')")
    name = world.producer.create(type_name="brief")
    world.db.sql("DELETE FROM onceward.routes WHERE type = 'brief'")
    expect(world.producer.post(f"/requests/{name}/submit"), 422, "type_unknown")
    assert world.producer.get(f"/requests/{name}").json["status"] == "open"


@case("A15", "an event over its topic's limit is refused and nothing is kept")
def _(world):
    world.db.sql("INSERT INTO onceward.topics (topic, event_bytes_max) VALUES ('narrow', 2000);"
                 "INSERT INTO onceward.routes VALUES ('narrow', 'narrow')")
    name = new_id()
    expect(world.producer.post("/submissions", {"id": name, "type": "narrow", "data": {"x": "y" * 2000}}), 413,
           "event_too_large")
    expect(world.producer.get(f"/requests/{name}"), 404)
    expect(world.producer.put(f"/requests/{name}", {"type": "narrow", "data": {"x": "y" * 2000}}), 201)
    expect(world.producer.post(f"/requests/{name}/submit"), 413, "event_too_large")
    assert world.db.count("submissions", f"request_id = '{name}'") == 0
    expect(world.producer.post("/submissions", {"type": "narrow", "data": {"x": "y"}}), 201)


@case("A16", "limits on data, documents and requests")
def _(world):
    small = Producer(world.bin_dir, world.db.role(), data_bytes_max="100", document_bytes_max="1000",
                     document_count_max="3", request_bytes_max="2500", submission_bytes_max="8KiB")
    try:
        expect(small.post("/requests", {"type": "demo", "data": {"x": "y" * 100}}), 413, "data_too_large")
        name = small.create()
        path = f"/requests/{name}/documents"
        expect(small.post(path + "?name=a", b"x" * 1001), 413, "document_too_large")
        expect(small.post(path, {"name": "a", "content": b64(b"x" * 1001)}), 413, "document_too_large")
        expect(small.post(path + "?name=a", b"x" * 1000), 200)
        expect(small.post(path + "?name=b", b"y" * 1000), 200)
        expect(small.post(path + "?name=c", b"z" * 1000), 413, "request_too_large")
        expect(small.post(path + "?name=c", b"z"), 200)
        expect(small.post(path + "?name=d", b"z"), 413, "documents_too_many")
        four = [{"name": str(n), "content": ""} for n in range(4)]
        expect(small.post("/submissions", {"type": "demo", "documents": four}), 413, "documents_too_many")
        expect(small.post("/submissions", {"type": "demo", "data": {"x": "y" * 9000}}), 413, "body_too_large")
        limits = small.get("/").json["limits"]
        assert limits["document_bytes_max"] == 1000 and limits["document_count_max"] == 3, limits
    finally:
        small.stop()


@case("A17", "a document is served as it came, and nothing runs in our name")
def _(world):
    name = world.producer.create()
    for content, media_type in ((b"", "text/plain"), (b"<script>", "text/html"), (os.urandom(300000), "image/png")):
        answer = expect(world.producer.post(f"/requests/{name}/documents?name=x", content,
                                            {"Content-Type": media_type}), 200)
        document = answer.json["documents"][-1]
        got = expect(world.producer.get(f"/requests/{name}/documents/{document['id']}"), 200)
        assert got.body == content and got.headers["Content-Type"] == media_type
        assert got.headers["X-Content-Type-Options"] == "nosniff" and got.headers["Content-Disposition"] == "attachment"
        assert got.headers["ETag"] == f'"{hashlib.sha256(content).hexdigest()}"'


@case("A17", "a document of 8 MiB passes, in both forms")
def _(world):
    name = world.producer.create()
    content = os.urandom(8 * 1024 * 1024)
    expect(world.producer.post(f"/requests/{name}/documents?name=big", content), 200)
    answer = expect(world.producer.post(f"/requests/{name}/documents", {"name": "big2", "content": b64(content)}), 200)
    for document in answer.json["documents"]:
        assert world.producer.get(f"/requests/{name}/documents/{document['id']}").body == content
    expect(world.producer.post(f"/requests/{name}/documents?name=over", content + b"x"), 413, "document_too_large")


@case("D5", "large answers that nobody takes are 503 beyond the budget, and the memory comes back")
def _(world):
    small = Producer(world.bin_dir, world.db.role(), bodies_bytes_max="12MiB")
    held = []
    try:
        name = small.create()
        answer = expect(small.post(f"/requests/{name}/documents?name=a", os.urandom(8 * 1024 * 1024)), 200)
        path = f"/requests/{name}/documents/{answer.json['documents'][0]['id']}"
        for _ in range(2):
            held.append(socket.socket())
            held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            held[-1].connect(("127.0.0.1", small.port))
            held[-1].sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            time.sleep(0.5)
        expect(small.get(path), 503, "busy")
        for connection in held:
            connection.close()
        until = time.monotonic() + 5
        while small.get(path).status != 200:
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        small.stop()


@case("D5", "a large body that is being read into pieces holds up nobody")
def _(world):
    name = world.producer.create()
    body = {"name": "big", "content": b64(os.urandom(8 * 1024 * 1024))}

    def others():
        slowest = 0
        for _ in range(100):
            begun = time.monotonic()
            expect(world.producer.get("/livez"), 200)
            slowest = max(slowest, time.monotonic() - begun)
        return slowest
    results = in_parallel([lambda: world.producer.post(f"/requests/{name}/documents", body), others])
    expect(results[0], 200)
    print(f"      slowest answer meanwhile {results[1] * 1000:.0f} ms")


@case("A18", "requests are listed in pages, newest first, each once")
def _(world):
    made = [world.producer.create() for _ in range(7)]
    expect(world.producer.post(f"/requests/{made[3]}/submit"), 200)
    seen, path = [], "/requests?limit=3"
    while path:
        page = expect(world.producer.get(path), 200).json
        seen += [row["id"] for row in page["requests"]]
        path = page["next_cursor"] and f"/requests?limit=3&cursor={page['next_cursor']}"
    assert seen[:7] == made[::-1] and len(seen) == len(set(seen)), (seen[:7], made)
    listed = [row["id"] for row in world.producer.get("/requests?status=submitted&limit=1").json["requests"]]
    assert listed == [made[3]]
    assert made[3] not in [row["id"] for row in world.producer.get("/requests?status=open").json["requests"]]


# ---- bad input -----------------------------------------------------------------------------------------------------

@case("B1", "bodies that are no good are refused with the place of the mistake")
def _(world):
    deep = "[" * 70 + "]" * 70
    bodies = ["", "{", "[]", "null", '"x"', "{}", '{"type":1}', '{"type":""}', '{"type":"de mo"}', '{"type":"ä"}',
              '{"type":"demo","type":"demo"}', '{"type":"demo","data":[]}', '{"type":"demo","data":"x"}',
              '{"type":"demo","more":1}', '{"type":"demo"} x', '{"type":"demo",}', "{'type':'demo'}",
              '{"type":"demo","data":{"a":1,"a":2}}', '{"type":"demo","data":{"a":"\\u0000"}}',
              '{"type":"demo","data":{"a":"\\ud800"}}', '{"type":"demo","data":{"a":"\x01"}}',
              '{"type":"demo","data":{"a":9223372036854775808}}', '{"type":"demo","data":{"a":1e400}}',
              '{"type":"demo","data":{"a":01}}', '{"type":"demo","data":{"a":NaN}}', '{"type":"demo","data":{"a":+1}}',
              '{"type":"demo","data":{"a":%s}}' % deep, "\ufeff" + '{"type":"demo"}', '{"type":"' + "x" * 300 + '"}']
    encoded = [body.encode() for body in bodies] + [b'{"type":"demo","data":{"a":"\xff"}}', b'{"type":"demo"}\0',
                                                    b'{"type":"demo","data":{"a":"\xed\xa0\x80"}}']
    for body in encoded:
        answer = world.producer.post("/requests", body, {"Content-Type": "application/json"})
        assert answer.status == 400 and answer.code == "body_invalid", (body, answer)
    for body in ({"name": "a"}, {"content": ""}, {"name": "", "content": ""}, {"name": "a\n", "content": ""},
                 {"name": "a", "content": "a"}, {"name": "a", "content": "aGVsbG8"}, {"name": "a", "content": "aGVs bG8="},
                 {"name": "a", "content": "", "document_id": "a/b"}, {"name": "a", "content": "", "document_id": ".."},
                 {"name": "a", "content": "", "media_type": "nonsense"}, {"name": "a" * 300, "content": ""},
                 {"name": "a", "content": "", "media_type": "text/plain\r\nX: y"}, {"name": "a", "content": 1}):
        name = world.producer.create()
        expect(world.producer.post(f"/requests/{name}/documents", body), 400, "body_invalid")
    for documents in ({}, [1], [{"name": "a"}], [{"name": "a", "content": "", "x": 1}]):
        expect(world.producer.post("/submissions", {"type": "demo", "documents": documents}), 400, "body_invalid")


@case("B1", "the deepest data that is allowed passes")
def _(world):
    data = '{"a":' * 60 + "1" + "}" * 60
    expect(world.producer.post("/submissions", f'{{"type":"demo","data":{data}}}', {"Content-Type": "application/json"}),
           201)


@case("B2", "another media type, charset or encoding is 415 and says what is taken")
def _(world):
    name = world.producer.create()
    for path in ("/requests", "/submissions", f"/requests/{name}/documents", f"/requests/{name}/submit"):
        for headers in ({"Content-Type": "text/plain"}, {"Content-Type": "application/json; charset=latin1"},
                        {"Content-Type": "application/x-www-form-urlencoded"}, {"Content-Type": "application/jsonx"},
                        {"Content-Type": "application/json", "Content-Encoding": "gzip"}):
            answer = expect(world.producer.post(path, '{"type":"demo"}', headers), 415, "media_type_unsupported")
            assert "application/json" in answer.headers["Accept-Post"], answer
    expect(world.producer.post(f"/requests/{name}/documents?name=a", b"x", {"Content-Type": "nonsense"}), 415)
    expect(world.producer.post(f"/requests/{name}/documents?name=a", b"x", {"Content-Encoding": "gzip"}), 415)


@case("B3", "a body over the limit is refused before 100 Continue, and the connection closed")
def _(world):
    text, closed = world.producer.raw(b"POST /requests HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                                      b"Content-Length: 99999999\r\n\r\n", 3)
    assert text.startswith(b"HTTP/1.1 413 ") and b"100 Continue" not in text and closed, text
    body = b'{"type":"demo"}'
    text, closed = world.producer.raw(b"POST /requests HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nConnection: close\r\n"
                                      b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body, 3)
    assert text.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 "), text


@case("B4", "headers that take longer than 5 s are 408")
def _(world):
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", world.producer.port)) as connection:
        text = b""
        for byte in b"GET /requests HTTP/1.1\r\nHost: a\r\nX-Slow: aaaaaaaaaaaa":
            connection.sendall(bytes([byte]))
            text, closed = receive(connection, 0.2)
            if text or closed:
                break
    check_raw(text)
    assert text.startswith(b"HTTP/1.1 408 ") and 4.5 < time.monotonic() - begun < 8, text


@case("B5", "framing that is in doubt is refused once and the connection closed")
def _(world):
    for head in (b"Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked", b"X: y", b"Host: a\r\nHost: b",
                 b"Host: a\r\nContent-Length: 1\r\nContent-Length: 1", b"Host: a\r\nX : y", b"Host: a\r\nX: y\r\n z",
                 b"Host: a\r\nX: \0", b"Host: a\nX: y"):
        text, closed = world.producer.raw(b"POST /requests HTTP/1.1\r\n" + head + b"\r\n\r\n", 3)
        assert text.startswith(b"HTTP/1.1 400 ") and closed and text.count(b"Date: ") == 1, (head, text)
        assert b'"code":"request_malformed"' in text, text


@case("B6", "no route for the method is 405 with Allow")
def _(world):
    for method, path, allow in (("DELETE", "/requests", {"POST", "GET", "HEAD"}), ("POST", "/events", {"GET", "HEAD"}),
                                ("PATCH", f"/requests/{new_id()}", {"PUT", "GET", "HEAD"}),
                                ("GET", "/submissions", {"POST"}), ("OPTIONS", "/", {"GET", "HEAD"})):
        answer = expect(world.producer.call(method, path), 405, "method_not_allowed")
        assert set(answer.headers["Allow"].split(", ")) == allow, answer


@case("B7", "unknown parameters and values are refused with the allowed ones")
def _(world):
    for path, word in (("/requests?status=closed", "open, submitted"), ("/requests?x=1", "status, cursor, limit"),
                       ("/events?status=done", "pending, claimed, completed, failed"),
                       ("/deliveries?status=pending", "claimed, completed, failed"),
                       ("/deliveries?x=", "consumer, status, cursor, limit"), ("/?x=1", "no parameters"),
                       ("/requests?limit=0", "1 to 1000"), ("/requests?limit=1001", "1 to 1000"),
                       ("/requests?limit=1&limit=1", "twice"), ("/requests?limit=x", "1 to 1000"),
                       ("/requests?cursor=zz", "cursor"), ("/events?cursor=7265", "cursor"),
                       ("/deliveries?cursor=", "cursor"), ("/requests?status=%00", "escape"),
                       ("/requests?status=%zz", "escape"), ("/requests?status=%ff", "UTF-8")):
        answer = expect(world.producer.get(path), 400, "query_invalid")
        assert word in answer.json["detail"], (path, answer)
    cursor = world.producer.get("/requests?limit=1").json["next_cursor"]
    expect(world.producer.get(f"/events?cursor={cursor}"), 400, "query_invalid")
    expect(world.producer.post(f"/requests/{new_id()}/submit?x=1"), 400, "query_invalid")
    expect(world.producer.post(f"/requests/{new_id()}/documents?name=", b"x"), 400, "query_invalid")


@case("B8", "HEAD answers as GET does, without a body")
def _(world):
    name = world.producer.create()
    whole = world.producer.get(f"/requests/{name}")
    head = world.producer.call("HEAD", f"/requests/{name}")
    assert head.status == 200 and head.body == b"" and head.headers["Content-Length"] == str(len(whole.body))
    assert world.producer.call("HEAD", f"/requests/{new_id()}").status == 404


# ---- events --------------------------------------------------------------------------------------------------------

RELAY = "'{0}', '00000000-0000-0000-0000-000000000001'"


def fake_relay(world, seconds=30):
    world.db.sql("INSERT INTO onceward.relays (relay, incarnation, until) VALUES ('fake', "
                 f"'00000000-0000-0000-0000-000000000001', clock_timestamp() + interval '{seconds} s') "
                 "ON CONFLICT (relay) DO UPDATE SET until = excluded.until")


def fake_claim(world, settles):
    """What a relay would write for all lanes: everything up to now is claimed, or settled."""
    world.db.sql(f"""
        INSERT INTO onceward.lane_progress (lane, seq, owner, incarnation, attempt, kind, snapshot_from, from_floor,
            snapshot_to, to_floor, to_ceiling, position, claimed_to, system_identifier)
        SELECT lane, seq + 1, 'fake', '00000000-0000-0000-0000-000000000001', gen_random_uuid(), 'moved',
               {'pg_current_snapshot()' if settles else 'snapshot_from'},
               {'(SELECT last_value FROM onceward.outbox_id_seq)' if settles else 'from_floor'},
               {'NULL' if settles else 'pg_current_snapshot()'}, {'NULL' if settles else '0'},
               {'NULL' if settles else '(SELECT last_value FROM onceward.outbox_id_seq)'}, position,
               (SELECT last_value FROM onceward.outbox_id_seq), (SELECT system_identifier FROM pg_control_system())
          FROM onceward.lane_state""")


@case("C1 C2", "an event is shown as pending, claimed, completed, failed")
def _(world):
    receipt = expect(world.producer.post("/submissions", {"type": "demo"}), 201).json
    path = f"/events/{receipt['event_id']}"

    def has(status):
        shown = expect(world.producer.get(path), 200).json
        listed = {name: receipt["event_id"] in [row["event_id"] for row in
                                                world.producer.get(f"/events?status={name}").json["events"]]
                  for name in ("pending", "claimed", "completed", "failed")}
        assert shown["event"]["status"] == status, (status, shown)
        assert [name for name, is_in in listed.items() if is_in] == [status], (status, listed)
        return shown
    shown = has("pending")
    assert shown["deliveries"] == [] and shown["event"]["key"] == receipt["id"]
    fake_claim(world, False)
    has("claimed")
    fake_claim(world, True)
    has("completed")
    world.db.sql("INSERT INTO onceward.deferred SELECT id, lane, tenant, event_id, topic, key, type, source, subject, time, "
                 "content_type, dataschema, traceparent, header_names, header_values, value, 'parked', "
                 "'MSG_SIZE_TOO_LARGE', 'the broker says no' FROM onceward.outbox "
                 f"WHERE event_id = '{receipt['event_id']}'")
    assert has("failed")["event"]["reason"] == {"code": "MSG_SIZE_TOO_LARGE", "text": "the broker says no"}
    world.db.sql("DELETE FROM onceward.deferred")


@case("C1 C4", "an event whose transaction was open when the relay last looked is pending, not forgotten")
def _(world):
    name = new_id()
    late = Session(world.db.admin,
                   "INSERT INTO onceward.outbox (tenant, event_id, topic, key, type, source, time, value) "
                   f"VALUES ('default', '{name}', 'demo', 'late', 'demo', '/x', now(), '{{}}')")
    for _ in range(3):
        world.producer.post("/submissions", {"type": "demo"})
    fake_claim(world, True)  # Its id is below the floor now, and its xid in the snapshot's list.
    late.end("COMMIT")
    pending = world.producer.get("/events?status=pending").json["events"]
    assert [row["event_id"] for row in pending] == [name], pending
    fake_relay(world)
    results = in_parallel([lambda: world.producer.post("/events/run"),
                           lambda: (time.sleep(0.5), fake_claim(world, False))])
    assert expect(results[0], 200).json == {"claimed": 1}, results[0]
    world.db.sql("INSERT INTO onceward.deferred SELECT id, lane, tenant, event_id, topic, key, type, source, subject, time, "
                 "content_type, dataschema, traceparent, header_names, header_values, value, 'held', 'behind', "
                 f"'behind another' FROM onceward.outbox WHERE event_id = '{name}'")
    pending = world.producer.get("/events?status=pending").json["events"]
    assert [row["deferred"] for row in pending] == ["held"], pending
    fake_claim(world, True)
    assert [row["event_id"] for row in world.producer.get("/events?status=pending").json["events"]] == [name]
    world.db.sql("DELETE FROM onceward.deferred")
    assert world.producer.get("/events?status=pending").json["events"] == []


@case("C1", "events are listed in pages, each once")
def _(world):
    made = [world.producer.post("/submissions", {"type": "demo"}).json["event_id"] for _ in range(5)]
    seen, path = [], "/events?limit=2"
    while path:
        page = expect(world.producer.get(path), 200).json
        seen += [row["event_id"] for row in page["events"]]
        path = page["next_cursor"] and f"/events?limit=2&cursor={page['next_cursor']}"
    assert seen[:5] == made[::-1] and len(seen) == len(set(seen))


@case("C3", "deliveries are listed with the reason where one failed")
def _(world):
    made = [world.producer.post("/submissions", {"type": "demo"}).json["event_id"] for _ in range(4)]
    world.db.sql("INSERT INTO onceward.inbox_scopes (consumer) VALUES ('alpha'), ('beta');" + "".join(
        f"INSERT INTO onceward.inbox (scope_id, status, payload_hash, event_id) SELECT scope_id, '{status}', 1, '{name}' "
        f"FROM onceward.inbox_scopes;" for name, status in zip(made, ("completed", "failed", "completed", "claimed"))))
    world.db.sql("INSERT INTO onceward.inbox_foreign (scope_id, payload_hash, source, id) "
                 "SELECT scope_id, 1, '/else', 'any' FROM onceward.inbox_scopes;"
                 "INSERT INTO onceward.dead_letters (consumer, scope, topic, partition, record_offset, record_hash, event_id, "
                 "header_names, header_values, reason_code, reason) "
                 f"VALUES ('alpha', 'live', 'demo', 0, 1, '\\x00', '{made[1]}', '{{}}', '{{}}', '22001', 'too long')")
    seen, path = [], "/deliveries?limit=3"
    while path:
        page = expect(world.producer.get(path), 200).json
        seen += [(row["consumer"], row["event_id"], row["status"]) for row in page["deliveries"]]
        path = page["next_cursor"] and f"/deliveries?limit=3&cursor={page['next_cursor']}"
    assert len(seen) == 10 and len(set(seen)) == 10, seen
    one = world.producer.get("/deliveries?consumer=alpha&status=failed").json["deliveries"]
    assert len(one) == 1 and one[0]["event_id"] == made[1], one
    assert one[0]["reason"] == {"code": "22001", "text": "too long"}, one
    assert len(world.producer.get("/deliveries?consumer=beta").json["deliveries"]) == 5
    assert world.producer.get("/deliveries?consumer=nobody").json["deliveries"] == []
    assert len(world.producer.get(f"/events/{made[0]}").json["deliveries"]) == 2


@case("C5", "POST /events/run without a live relay is 503")
def _(world):
    fake_relay(world, -1)
    expect(world.producer.post("/events/run"), 503, "no_relay")
    fake_relay(world, 3600)  # No lease is that long: a clock was set back.
    expect(world.producer.post("/events/run"), 503, "no_relay")


@case("C4", "POST /events/run counts what was pending and is claimed, and pins nobody meanwhile")
def _(world):
    fake_relay(world)
    fake_claim(world, True)
    assert expect(world.producer.post("/events/run"), 200).json == {"claimed": 0}
    for _ in range(3):
        world.producer.post("/submissions", {"type": "demo"})

    def claim_later():
        time.sleep(0.5)
        fake_claim(world, False)

    def others():
        begun = time.monotonic()
        for _ in range(20):
            expect(world.producer.get("/requests?limit=1"), 200)
        return time.monotonic() - begun
    runs = [lambda: world.producer.post("/events/run") for _ in range(8)]  # More than there are readers.
    results = in_parallel(runs + [claim_later, others])
    for answer in results[:8]:
        assert expect(answer, 200).json == {"claimed": 3}, answer
    assert results[9] < 2.0, results[9]


@case("C4", "POST /events/run gives up after 5 s and says what was claimed until then")
def _(world):
    fake_relay(world)
    world.producer.post("/submissions", {"type": "demo"})
    begun = time.monotonic()
    assert expect(world.producer.post("/events/run"), 200).json == {"claimed": 0}
    assert 4.5 < time.monotonic() - begun < 8


# ---- when something is broken --------------------------------------------------------------------------------------

def database_address():
    words = dict(word.split("=", 1) for word in ADMIN.split())
    return words.get("host", "127.0.0.1"), int(words.get("port", "5432"))


def through(world, **settings):
    proxy = Proxy(*database_address())
    producer = Producer(world.bin_dir, world.db.role(host="127.0.0.1", port=proxy.port), batchers="1",
                        database_is_pooled="on", **settings)
    return proxy, producer


@case("D1", "without the database calls are 503, readiness says so, and it goes on when it is back")
def _(world):
    proxy, producer = through(world)
    try:
        name = producer.create()
        proxy.cut_all("refuse")
        until = time.monotonic() + 10
        while producer.get("/readyz").status == 200 and time.monotonic() < until:
            time.sleep(0.05)
        assert "database" in producer.get("/readyz").body.decode() and producer.get("/livez").status == 200
        for answer in (producer.post("/requests", {"type": "demo"}), producer.get(f"/requests/{name}"),
                       producer.post(f"/requests/{name}/submit"), producer.get("/events")):
            expect(answer, 503, "database_unavailable")
        proxy.mode = "pass"
        until = time.monotonic() + 10
        while producer.get("/readyz").status != 200 and time.monotonic() < until:
            time.sleep(0.05)
        assert expect(producer.post(f"/requests/{name}/submit"), 200).json["queued"] is True
    finally:
        producer.stop()


@case("D1", "a restart of the database costs no call that comes after it: every stale connection is found out inside")
def _(world):
    producer = Producer(world.bin_dir, world.db.role(), readers="8", batchers="8", large_writers="8")
    try:
        name = producer.create()
        large = "x" * 70000
        for _ in range(3):
            warm = [lambda: producer.get(f"/requests/{name}")] * 12
            warm += [lambda: producer.post("/submissions", {"type": "demo"})] * 12
            warm += [lambda: producer.post("/submissions", {"type": "demo", "data": {"a": large}})] * 12
            assert {answer.status for answer in in_parallel(warm)} <= {200, 201}
            cut = int(world.db.value("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = "
                                     "current_database() AND usename = 'onceward_producer'"))
            assert cut > 20, cut
            expect(producer.get(f"/requests/{name}"), 200)
            expect(producer.post("/submissions", {"type": "demo"}), 201)
            expect(producer.post("/submissions", {"type": "demo", "data": {"a": large}}), 201)
    finally:
        producer.stop()


@case("D1", "the same for a call that looks twice: what the first look had begun is forgotten")
def _(world):
    producer = Producer(world.bin_dir, world.db.role(), readers="1")
    try:
        before = producer.post("/events/run")
        cut = world.db.value("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() "
                             "AND application_name = 'onceward-producer reader'")
        assert cut == "1", cut
        after = producer.post("/events/run")
        assert before.status in (200, 503) and after.status == before.status, (before, after)
    finally:
        producer.stop()


@case("D7", "it starts while the database is away")
def _(world):
    proxy = Proxy(*database_address())
    proxy.mode = "refuse"
    producer = Producer(world.bin_dir, world.db.role(host="127.0.0.1", port=proxy.port), wait=False)
    try:
        assert producer.get("/readyz").status == 503
        expect(producer.post("/requests", {"type": "demo"}), 503, "database_unavailable")
        proxy.mode = "pass"
        until = time.monotonic() + 10
        while producer.get("/readyz").status != 200 and time.monotonic() < until:
            time.sleep(0.05)
        producer.create()
    finally:
        producer.stop()


@case("D7", "it does not touch a schema that it does not know")
def _(world):
    producer = Producer(world.bin_dir, world.db.role(dbname="postgres"), wait=False)
    try:
        expect(producer.post("/requests", {"type": "demo"}), 503, "database_unavailable")
        until = time.monotonic() + 10
        while "schema" not in producer.get("/readyz").body.decode():  # Another connection's thread says it than answered.
            assert time.monotonic() < until, producer.get("/readyz")
            time.sleep(0.05)
    finally:
        producer.stop()


@case("D2", "a connection that is lost at COMMIT gives the true outcome")
def _(world):
    proxy, producer = through(world)
    try:
        for mode in ("cut_after", "cut_before") * 3:
            name = producer.create()
            proxy.mode = mode
            answer = expect(producer.post(f"/requests/{name}/submit"), 200).json
            assert answer["queued"] is True and proxy.mode == "pass", (mode, answer)
            assert producer.post(f"/requests/{name}/submit").json["event_id"] == answer["event_id"]
            assert world.db.count("outbox", f"key = '{name}'") == 1
        for mode in ("cut_after", "cut_before"):
            proxy.mode = mode
            answer = expect(producer.post("/requests", {"type": "demo"}), 201).json
            assert world.db.count("requests", f"request_id = '{answer['id']}'") == 1
            proxy.mode = mode
            expect(producer.put(f"/requests/{new_id()}", {"type": "demo"}), 201)
            proxy.mode = mode
            expect(producer.post(f"/requests/{answer['id']}/documents", {"name": "a", "content": ""}), 200)
            proxy.mode = mode
            expect(producer.post("/submissions", {"type": "demo"}), 201)
        assert proxy.cut_count == 14, proxy.cut_count
    finally:
        producer.stop()


@case("D6", "if the database stays away after COMMIT the outcome is unknown, and the retry tells it")
def _(world):
    proxy, producer = through(world)
    try:
        name = producer.create()
        proxy.then = "refuse"
        proxy.mode = "cut_after"
        expect(producer.post(f"/requests/{name}/submit"), 503, "outcome_unknown")
        proxy.mode = "pass"
        until = time.monotonic() + 10
        while producer.get("/readyz").status != 200 and time.monotonic() < until:
            time.sleep(0.05)
        again = expect(producer.post(f"/requests/{name}/submit"), 200).json
        assert again["status"] == "duplicate" and world.db.count("outbox", f"key = '{name}'") == 1
    finally:
        producer.stop()


def make_trap(world, sqlstate, times, condition="true"):
    """The next inserts of submissions fail: a sequence counts, since it is not rolled back."""
    world.db.sql(f"""
        DROP SEQUENCE IF EXISTS onceward.trap CASCADE; CREATE SEQUENCE onceward.trap;
        GRANT USAGE ON SEQUENCE onceward.trap TO onceward_producer;
        CREATE OR REPLACE FUNCTION onceward.trap() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF ({condition}) AND nextval('onceward.trap') <= {times} THEN
                RAISE EXCEPTION 'trapped' USING ERRCODE = '{sqlstate}';
            END IF;
            RETURN NEW;
        END $$;
        GRANT EXECUTE ON FUNCTION onceward.trap() TO onceward_producer;
        CREATE OR REPLACE TRIGGER trap BEFORE INSERT ON onceward.submissions
            FOR EACH ROW EXECUTE FUNCTION onceward.trap()""")


def drop_trap(world):
    world.db.sql("DROP TRIGGER IF EXISTS trap ON onceward.submissions")


@case("D3", "a deadlock or a serialization failure is tried again inside, at most 3 times")
def _(world):
    try:
        for sqlstate in ("40P01", "40001"):
            make_trap(world, sqlstate, 3)
            assert expect(world.producer.post("/submissions", {"type": "demo"}), 201).json["queued"] is True
            name = world.producer.create()
            make_trap(world, sqlstate, 1000)
            expect(world.producer.post(f"/requests/{name}/submit"), 503, "database_unavailable")
            assert int(world.db.value("SELECT last_value FROM onceward.trap")) == 4
            drop_trap(world)
            assert expect(world.producer.post(f"/requests/{name}/submit"), 200).json["queued"] is True
    finally:
        drop_trap(world)


@case("D3", "one that fails for good takes nobody of its batch along")
def _(world):
    names = [world.producer.create() for _ in range(40)]
    try:
        make_trap(world, "22000", 1000000, f"NEW.request_id = '{names[20]}'")
        answers = in_parallel([lambda name=name: world.producer.post(f"/requests/{name}/submit") for name in names])
    finally:
        drop_trap(world)
    for name, answer in zip(names, answers):
        if name == names[20]:
            expect(answer, 500, "internal_error")
        else:
            assert expect(answer, 200).json["queued"] is True
    assert world.producer.get(f"/requests/{names[20]}").json["status"] == "open"


@case("D4", "a client that leaves after its body changes nothing: the call is carried on")
def _(world):
    name = world.producer.create()
    with socket.create_connection(("127.0.0.1", world.producer.port)) as connection:
        connection.sendall(f"POST /requests/{name}/submit HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n".encode())
    until = time.monotonic() + 5
    while world.producer.get(f"/requests/{name}").json["status"] != "submitted":
        assert time.monotonic() < until
        time.sleep(0.02)
    assert world.producer.post(f"/requests/{name}/submit").json["status"] == "duplicate"


@case("D5", "a full queue and a full memory are 503 with Retry-After")
def _(world):
    small = Producer(world.bin_dir, world.db.role(), queue_count_max="2", batchers="1", bodies_bytes_max="1MiB")
    try:
        answers = in_parallel([lambda: small.post("/submissions", {"type": "demo"}) for _ in range(100)])
        codes = {answer.code for answer in answers if answer.status != 201}
        assert codes <= {"too_busy"} and any(answer.status == 201 for answer in answers), codes
        held = []
        for _ in range(2):
            held.append(socket.create_connection(("127.0.0.1", small.port)))
            held[-1].sendall(b"POST /requests HTTP/1.1\r\nHost: a\r\nContent-Length: 600000\r\n\r\n")
            time.sleep(0.05)
        text = receive(held[1], 2)[0]
        check_raw(text)
        assert text.startswith(b"HTTP/1.1 503 ")
        for connection in held:
            connection.close()
    finally:
        small.stop()


@case("D8", "a rival that holds a request holds up nobody else, and costs the waiter no connection")
def _(world):
    name = world.producer.create()
    rival = Session(world.db.admin, f"SELECT 1 FROM onceward.requests WHERE request_id = '{name}' FOR UPDATE")

    def others():
        begun = time.monotonic()
        for _ in range(30):
            expect(world.producer.post("/submissions", {"type": "demo"}), 201)
        return time.monotonic() - begun

    def release():
        time.sleep(2.5)
        rival.end()
        return time.monotonic()
    waiters = [lambda: world.producer.post(f"/requests/{name}/submit") for _ in range(6)]
    results = in_parallel(waiters + [others, release])
    assert results[6] < 2.4, results[6]
    assert sorted(expect(answer, 200).json["status"] for answer in results[:6]) == ["duplicate"] * 5 + ["queued"]


@case("D8", "a request that stays held is 503 in the end")
def _(world):
    name = world.producer.create()
    rival = Session(world.db.admin, f"SELECT 1 FROM onceward.requests WHERE request_id = '{name}' FOR UPDATE")
    try:
        expect(world.producer.post(f"/requests/{name}/submit"), 503, "request_busy")
    finally:
        rival.end()


@case("", "help, version and mistakes in the settings")
def _(world):
    def call(*arguments):
        done = subprocess.run([f"{world.bin_dir}/onceward-producer", *arguments], capture_output=True, text=True,
                              check=False, env={}, timeout=20)
        return done.returncode, done.stdout, done.stderr
    assert call("--help")[0] == 0 and "--public-url" in call("--help")[1]
    assert call("--version")[0] == 0 and call("--database=x", "--check")[0] == 0
    assert call("--nonsense")[0] == 2
    code, _, errors = call("--tenant=a/b", "--batchers=0", "--public-url=ftp://x/", "--relay-hints=x", "--database=x")
    assert code == 2 and all(name in errors for name in ("batchers",)), errors
    code, _, errors = call("--tenant=a/b", "--public-url=ftp://x/", "--relay-hints=x", "--database=x")
    assert code == 2 and all(name in errors for name in ("tenant", "public_url", "relay_hints")), errors
    code, _, errors = call("--database=x", f"--listen=127.0.0.1:{world.producer.port}")
    assert code == 1 and "listen" in errors, errors


@case("E1", "/livez, /readyz, /metrics and / are on the same port")
def _(world):
    assert world.producer.get("/livez").json["status"] == "alive"
    conditions = world.producer.get("/readyz").json["conditions"]
    assert {row["name"] for row in conditions} == {"database", "partitions"}, conditions
    assert all(row["ready"] for row in conditions), conditions
    answer = world.producer.get("/metrics")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    text = answer.body.decode()
    for line in ('# TYPE onceward_http_requests_total counter', 'onceward_producer_submits_total{status="queued"}',
                 'onceward_producer_batch_items_bucket{le="256"}', "onceward_ready 1"):
        assert line in text, line
    assert "POST /requests/{id}/submit" in world.producer.get("/").json["routes"]


@case("E1", "partitions of the outbox are made ahead, and readiness fails before they run out")
def _(world):
    db = Database(world.bin_dir)
    db.sql("SELECT setval('onceward.outbox_id_seq', (SELECT max(end_id) - 1000 FROM onceward.outbox_partitions))")
    before = db.count("outbox_partitions")
    producer = Producer(world.bin_dir, db.role())
    try:
        until = time.monotonic() + 10
        while db.count("outbox_partitions") == before and time.monotonic() < until:
            time.sleep(0.05)
        assert db.count("outbox_partitions") > before
        assert producer.post("/submissions", {"type": "demo"}).status == 201
    finally:
        producer.stop()
    db.sql("REVOKE EXECUTE ON FUNCTION onceward.outbox_make_partitions() FROM onceward_producer;"
           "CREATE OR REPLACE FUNCTION onceward.outbox_make_partitions() RETURNS integer LANGUAGE sql AS 'SELECT 0';"
           "GRANT EXECUTE ON FUNCTION onceward.outbox_make_partitions() TO onceward_producer;"
           "SELECT setval('onceward.outbox_id_seq', (SELECT max(end_id) - 1000 FROM onceward.outbox_partitions))")
    producer = Producer(world.bin_dir, db.role(), wait=False)
    try:
        until = time.monotonic() + 10
        while b'"partitions","ready":false' not in producer.get("/readyz").body and time.monotonic() < until:
            time.sleep(0.05)
        assert producer.get("/readyz").status == 503
    finally:
        producer.stop()
        db.drop()


@case("E2", "random bytes and cut requests do not end it")
def _(world):
    import random
    seed = random.randrange(1 << 30)
    source = random.Random(seed)
    good = b"POST /submissions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"type\":\"demo\"}"
    for _ in range(300):
        data = bytearray(good)
        for _ in range(source.randrange(1, 6)):
            place = source.randrange(len(data))
            action = source.randrange(3)
            if action == 0:
                data[place] = source.randrange(256)
            elif action == 1:
                del data[place:place + source.randrange(1, 9)]
            else:
                data[place:place] = bytes(source.randrange(256) for _ in range(source.randrange(1, 9)))
        try:
            with socket.create_connection(("127.0.0.1", world.producer.port)) as connection:
                connection.sendall(bytes(data))
                connection.shutdown(socket.SHUT_WR)
                receive(connection, 1)
        except ConnectionError:
            pass
    assert world.producer.get("/livez").status == 200, f"seed {seed}"


@case("E3", "a stop lets what has begun finish")
def _(world):
    producer = Producer(world.bin_dir, world.db.role())
    connection = http.client.HTTPConnection("127.0.0.1", producer.port)
    connection.putrequest("POST", "/submissions")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", "15")
    connection.endheaders()
    time.sleep(0.1)
    producer.process.terminate()
    time.sleep(0.2)
    connection.send(b'{"type":"demo"}')
    answer = connection.getresponse()
    assert answer.status == 201 and answer.headers["Connection"] == "close"
    answer.read()
    connection.close()
    producer.stop()


main(World, unmake)
