# SPDX-License-Identifier: Apache-2.0
"""Who may call the producer, and for whom: tokens, scopes, tenants, each route."""
import http.client
import json
import os
import subprocess
import time

from producer_fixture import Answer, Database, Producer, Proxy, case, in_parallel, main, new_id

CACHE_MS = 400
# Each route with a call that succeeds for its owner, in an order in which each can follow the one before.
# {id}, {other}, {document}, {event} and {key} are those of the tenant that calls, or, in the trials, of another one.
CALLS = [
    ("GET", "/", None, {}),
    ("GET", "/livez", None, {}),
    ("GET", "/readyz", None, {}),
    ("GET", "/metrics", None, {}),
    ("GET", "/openapi.yaml", None, {}),
    ("POST", "/requests", {"type": "demo"}, {"submit"}),
    ("PUT", "/requests/{id}", {"type": "demo"}, {"submit"}),
    ("GET", "/requests/{id}", None, {"read"}),
    ("GET", "/requests", None, {"read"}),
    ("POST", "/requests/{id}/documents", {"document_id": "d", "name": "n", "content": "AAAA"}, {"submit"}),
    ("GET", "/requests/{id}/documents/{document_id}", None, {"read"}),
    ("POST", "/requests/{id}/submit", None, {"submit"}),
    ("POST", "/submissions", {"type": "demo"}, {"submit"}),
    ("GET", "/idempotency-keys/{key}", None, {"submit", "read"}),
    ("GET", "/events", None, {"read", "operate"}),
    ("GET", "/events/{event_id}", None, {"read", "operate"}),
    ("GET", "/deliveries", None, {"read", "operate"}),
    ("POST", "/events/run", None, {"read", "operate"}),
]
SCOPES = ("submit", "read", "operate", "admin")


class World:
    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        self.db = Database(bin_dir)
        self.producer = Producer(bin_dir, self.db.role(), development="off", token_cache_ms=CACHE_MS)
        self.routes = self.producer.get("/").json["routes"]

    def onceward(self, *arguments):
        operator = self.db.role(user="onceward_operator")
        done = subprocess.run([f"{self.bin_dir}/onceward", *arguments, "--database", operator, "--json"], check=True,
                              capture_output=True, text=True, env={})
        return json.loads(done.stdout)

    def token(self, tenant, *scopes, name=None):
        """A new token: its text and its id."""
        made = self.onceward("token", "create", name or f"n{time.monotonic_ns()}", "--tenant", tenant,
                             f"--scopes={','.join(scopes)}")["token"]
        return made["token"], made["token_id"]

    def has(self, route):
        return route in self.routes


def unmake(world):
    world.producer.stop()
    world.db.drop()


def bearer(token, **more):
    return {"Authorization": f"Bearer {token}", **more}


def expect(answer, status, code=None):
    assert answer.status == status, (f"expected {status}", answer)
    if code is not None:
        assert answer.code == code, (f"expected {code}", answer)
    return answer


def call(world, token, method, path, body=None, **headers):
    return world.producer.call(method, path, body, bearer(token, **headers) if token else headers)


def fill(pattern, owner):
    for name, value in owner.items():
        pattern = pattern.replace("{" + name + "}", value)
    return pattern


def state(world, tenant):
    """Everything that stands there of a tenant."""
    tables = ("requests", "documents", "submissions", "outbox", "idempotency_keys")
    return [world.db.sql(f"SELECT t::text FROM onceward.{table} t WHERE tenant = '{tenant}' ORDER BY 1") for table in tables]


def make_owner(world, tenant):
    """A tenant with a row of each kind."""
    token, _ = world.token(tenant, "submit", "read")
    owner = {"id": new_id(), "document_id": "d", "key": new_id()}
    expect(call(world, token, "PUT", f"/requests/{owner['id']}", {"type": "demo", "data": {"of": tenant}}), 201)
    expect(call(world, token, "POST", f"/requests/{owner['id']}/documents", {"document_id": "d", "name": tenant,
                                                                          "content": "AAAA"}), 200)
    headers = {"Idempotency-Key": owner["key"]} if world.has("GET /idempotency-keys/{key}") else {}
    answer = expect(call(world, token, "POST", f"/requests/{owner['id']}/submit", None, **headers), 200)
    owner["event_id"] = answer.json["event_id"]
    return token, owner


@case("G1", "without a token a tenant's routes are 401, and the others are not")
def _(world):
    before = world.db.count("requests")
    for method, path, body, scopes in CALLS:
        if not world.has(f"{method} {path}"):
            continue
        answer = call(world, None, method, fill(path, {name: new_id() for name in ("id", "document_id", "event_id", "key")}), body)
        if scopes:
            expect(answer, 401, "token_missing")
            assert answer.headers["WWW-Authenticate"] == 'Bearer realm="onceward"', answer
            assert answer.json["retry"] == {"same_key": False, "new_key": False, "after_seconds": None}, answer
        else:
            expect(answer, 200)
    assert world.db.count("requests") == before


@case("G1", "every route that the producer has is tried here")
def _(world):
    known = {f"{method} {path}" for method, path, _, _ in CALLS}
    assert set(world.routes) <= known, set(world.routes) - known


@case("G1 G2 G3", "who may not call is told so before the body is taken")
def _(world):
    reader, _ = world.token("reader", "read")
    expect(call(world, reader, "GET", "/requests"), 200)  # So that it is known by now.
    expect(call(world, "owt_known_to_be_wrong", "GET", "/requests"), 401)
    for header, code in (("", b"token_missing"), ("Authorization: Basic x\r\n", b"token_invalid"),
                         ("Authorization: Bearer owt_known_to_be_wrong\r\n", b"token_invalid"),
                         (f"Authorization: Bearer {reader}\r\n", b"scope_missing")):
        head = ("POST /submissions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
                f"Content-Length: 1000000\r\n{header}\r\n").encode()
        answer, is_closed = world.producer.raw(head, wait=5)
        assert b"100 Continue" not in answer and answer.count(b"HTTP/1.1") == 1 and code in answer and is_closed, answer
    writer, _ = world.token("writer", "submit")
    expect(call(world, writer, "POST", "/submissions", {"type": "demo", "data": {"x": "y" * 100000}}), 201)


@case("G2", "a token that is none is 401")
def _(world):
    good, _ = world.token("acme", "admin")
    wrong = ("Bearer", "Bearer ", "Bearer owt_nothing", f"Basic {good}", good, f"Bearer {good}0", f"Bearer {good[:-1]}",
             f"Bearer {good} {good}", "Bearer " + "x" * 600, f"Bearer {good.upper()}")
    for value in wrong:
        answer = expect(world.producer.get("/requests", headers={"Authorization": value}), 401, "token_invalid")
        assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"], answer
        if not value.startswith("Bearer"):
            assert "a bearer token is asked for" in answer.json["detail"], answer
    for value in (f"Bearer {good}", f"bearer {good}", f"BEARER   {good}"):
        expect(world.producer.get("/requests", headers={"Authorization": value}), 200)
    connection = http.client.HTTPConnection("127.0.0.1", world.producer.port, timeout=20)
    connection.putrequest("GET", "/requests")
    for _ in range(2):
        connection.putheader("Authorization", f"Bearer {good}")
    connection.endheaders()
    assert connection.getresponse().status == 401
    connection.close()


@case("G3", "each route takes the scopes that it needs, and no other")
def _(world):
    for scope in SCOPES:
        tenant = f"scope-{scope}"
        owner_token, owner = make_owner(world, tenant)
        token, _ = world.token(tenant, scope)
        for method, path, body, scopes in CALLS:
            if not world.has(f"{method} {path}"):
                continue
            answer = call(world, token, method, fill(path, owner), body)
            if not scopes or scope == "admin" or scope in scopes:
                assert answer.status < 400 or answer.code in ("no_relay", "request_already_submitted", "request_conflict"), \
                    (scope, path, answer)
            else:
                expect(answer, 403, "scope_missing")
                assert 'error="insufficient_scope"' in answer.headers["WWW-Authenticate"], answer
                assert set(scopes) <= set(answer.headers["WWW-Authenticate"].split('scope="')[1].rstrip('"').split()), answer
        assert owner_token


@case("G4", "no route reaches another tenant's row, and the same ids are other rows")
def _(world):
    _, theirs = make_owner(world, "theirs")
    mine, _ = world.token("mine", *SCOPES)
    before = state(world, "theirs")
    for method, path, body, scopes in CALLS:
        if not scopes or not world.has(f"{method} {path}") or path in ("/requests", "/submissions", "/events/run"):
            continue
        answer = call(world, mine, method, fill(path, theirs), body)
        if method == "PUT":
            expect(answer, 201)  # It is a new request of mine, under the same id.
            assert "data" not in answer.json or answer.json["data"] != {"of": "theirs"}, answer
            assert answer.json["documents"] == [] and answer.json["status"] == "open", answer
        elif path in ("/events", "/deliveries"):
            expect(answer, 200)  # With my own events.
        elif path == "/requests/{id}":
            assert expect(answer, 200).json["documents"] == [], answer  # Mine, of the PUT before.
        elif path == "/requests/{id}/documents/{document_id}":
            expect(answer, 200)
            assert answer.body == b"\x00\x00\x00"
        elif path in ("/requests/{id}/documents", "/requests/{id}/submit"):
            expect(answer, 200)  # The same.
        else:
            expect(answer, 404)
        assert theirs["event_id"].encode() not in answer.body and b'"theirs"' not in answer.body, answer
    listed = expect(call(world, mine, "GET", "/requests?limit=1000"), 200).json["requests"]
    assert [row["id"] for row in listed] == [theirs["id"]], listed
    assert state(world, "theirs") == before


@case("G4", "what is another tenant's alone is 404 for every call that names it")
def _(world):
    _, theirs = make_owner(world, "alone")
    mine, _ = world.token("stranger", *SCOPES)
    for method, path, body, _ in CALLS:
        if "{" in path and method != "PUT" and world.has(f"{method} {path}"):
            expect(call(world, mine, method, fill(path, theirs), body), 404)
    for path in ("/requests", "/events", "/deliveries"):
        assert list(expect(call(world, mine, "GET", path), 200).json.values())[0] == [], path
    assert state(world, "stranger") == [[], [], [], [], []]


@case("G4", "many tenants in one batch keep apart")
def _(world):
    name = new_id()
    tokens = [world.token(f"batch-{number}", "submit", "read")[0] for number in range(12)]
    body = {"id": name, "type": "demo"}
    answers = in_parallel([lambda t=token, n=number: call(world, t, "POST", "/submissions", {**body, "data": {"n": n}})
                           for number, token in enumerate(tokens) for _ in range(4)])
    assert all(answer.status in (200, 201) for answer in answers), answers
    for number, token in enumerate(tokens):
        request = expect(call(world, token, "GET", f"/requests/{name}"), 200).json
        assert request["data"] == {"n": number}, request
        events = expect(call(world, token, "GET", "/events"), 200).json["events"]
        assert [event["event_id"] for event in events] == [request["event_id"]], events
    assert world.db.count("outbox", f"key = '{name}'") == len(tokens)


@case("G5", "two tokens live at once, and a revoked one ends within the cache's age")
def _(world):
    old, old_id = world.token("rotating", "read", name="svc")
    new, _ = world.token("rotating", "read", name="svc")
    for token in (old, new):
        expect(call(world, token, "GET", "/requests"), 200)
    world.onceward("token", "revoke", old_id)
    until = time.monotonic() + CACHE_MS / 1000 + 5  # What a busy machine adds.
    began = time.monotonic()
    while call(world, old, "GET", "/requests").status == 200:
        assert time.monotonic() < until, "the revoked token still opens"
        time.sleep(0.02)
    print(f"      a revoked token ended after {time.monotonic() - began:.2f} s", flush=True)
    expect(call(world, old, "GET", "/requests"), 401, "token_invalid")
    expect(call(world, new, "GET", "/requests"), 200)


@case("G5", "a token ends at its time")
def _(world):
    token, token_id = world.token("ending", "read")
    expect(call(world, token, "GET", "/requests"), 200)
    world.db.sql(f"UPDATE onceward.tokens SET expires_at = clock_timestamp() + interval '300 ms' WHERE token_id = '{token_id}'")
    time.sleep(0.35 + CACHE_MS / 1000)
    expect(call(world, token, "GET", "/requests"), 401, "token_invalid")


@case("G6", "the database is asked for a token now and then, not at every call")
def _(world):
    def lookups():
        lines = world.producer.get("/metrics").body.decode().splitlines()
        return int(next(line for line in lines if line.startswith("onceward_producer_token_lookups_total")).split()[1])
    producer = Producer(world.bin_dir, world.db.role(), development="off", token_cache_ms=60000)
    usual, world.producer = world.producer, producer
    try:
        token, _ = world.token("often", "submit", "read")
        for _ in range(50):
            expect(call(world, token, "GET", "/requests"), 200)
        assert lookups() == 1, lookups()
        for _ in range(50):
            expect(call(world, "owt_wrong", "GET", "/requests"), 401)
        assert lookups() == 2, lookups()
    finally:
        world.producer = usual
        producer.stop()


def with_producer(world, run, **settings):
    """run, while the world's producer is another one."""
    usual, world.producer = world.producer, Producer(world.bin_dir, world.db.role(), development="off", **settings)
    try:
        run()
    finally:
        usual, world.producer = world.producer, usual
        usual.stop()


def at_once(world, token, count, path="/requests"):
    """So many calls over one connection: how many of each status, and the last that was refused."""
    connection = http.client.HTTPConnection("127.0.0.1", world.producer.port, timeout=20)
    seen, refused = {}, None
    for _ in range(count):
        connection.request("GET", path, headers=bearer(token))
        answer = connection.getresponse()
        body = answer.read()
        seen[answer.status] = seen.get(answer.status, 0) + 1
        refused = Answer(answer.status, answer.headers, body) if answer.status >= 400 else refused
    connection.close()
    return seen, refused


@case("G10", "a token has so many calls in a second, and a tenant so many with all its tokens")
def _(world):
    def run():
        first, _ = world.token("rated", "admin")
        second, _ = world.token("rated", "admin")
        third, _ = world.token("rated", "admin")
        other, _ = world.token("calm", "admin")
        for token in (first, second, third, other):
            expect(call(world, token, "GET", "/idempotency-keys/never"), 404)  # So that they are known by now.
        time.sleep(1.1)
        begun = time.monotonic()
        counts = [at_once(world, token, 60) for token in (first, second, third)]
        seconds = time.monotonic() - begun
        served = [seen.get(200, 0) for seen, _ in counts]
        assert 20 <= served[0] <= 20 * (1 + seconds) + 1 and 40 <= sum(served) <= 40 * (1 + seconds) + 1, (served, seconds)
        for seen, refused in counts:
            assert set(seen) <= {200, 429}, seen
            expect(refused, 429, "rate_limited")
            assert refused.headers["Retry-After"] == "1" and refused.json["retry"]["same_key"], refused
        assert "with this token" in counts[0][1].json["detail"], counts[0][1]
        expect(call(world, other, "GET", "/requests"), 200)
        for _ in range(60):
            answer = call(world, first, "POST", "/submissions", {"type": "demo"}, **{"Idempotency-Key": "rated"})
            if answer.status == 429:
                break
        expect(answer, 429, "rate_limited")
        time.sleep(1.1)
        kept = expect(call(world, first, "POST", "/submissions", {"type": "demo"}, **{"Idempotency-Key": "rated"}), 201)
        assert kept.json["queued"] is True and world.db.count("outbox", "tenant = 'rated'") == 1
        assert "onceward_producer_calls_limited_total 0" not in world.producer.get("/metrics").body.decode()
    with_producer(world, run, tenant_calls_per_s="40", token_calls_per_s="20", token_cache_ms="60000")


@case("G11", "unknown tokens are looked up so often for one peer, and known ones go on")
def _(world):
    def run():
        good, _ = world.token("known", "read")
        new, _ = world.token("known", "read")
        expect(call(world, good, "GET", "/requests"), 200)
        begun = time.monotonic()
        answers = [call(world, f"owt_guess_{number}", "GET", "/requests") for number in range(100)]
        seconds = time.monotonic() - begun
        missed = [answer for answer in answers if answer.status == 401]
        assert 10 <= len(missed) <= 10 * (1 + seconds) + 1, (len(missed), seconds)
        for answer in answers:
            if answer.status != 401:
                expect(answer, 429, "rate_limited")
                assert answer.headers["Retry-After"] == "1", answer
        for _ in range(20):
            call(world, f"owt_guess_{new_id()}", "GET", "/requests")
            expect(call(world, good, "GET", "/requests"), 200)
        time.sleep(0.3)
        expect(call(world, new, "GET", "/requests"), 200)
    with_producer(world, run, peer_unknown_tokens_per_s="10", token_cache_ms="1000")


@case("G7", "while the database is away nobody is let in and nobody is told that a token is wrong")
def _(world):
    words = dict(word.split("=", 1) for word in world.db.role().split())
    proxy = Proxy(words.get("host", "127.0.0.1"), int(words.get("port", "5432")))
    producer = Producer(world.bin_dir, world.db.role(host="127.0.0.1", port=str(proxy.port)), development="off", token_cache_ms=0)
    try:
        token, _ = world.token("away", "read")
        expect(producer.get("/requests", headers=bearer(token)), 200)
        proxy.cut_all("refuse")
        for name in (token, "owt_wrong"):
            expect(producer.get("/requests", headers=bearer(name)), 503)
        proxy.mode = "pass"
        until = time.monotonic() + 30
        while producer.get("/requests", headers=bearer(token)).status != 200:
            assert time.monotonic() < until
            time.sleep(0.1)
    finally:
        producer.stop()


@case("G8", "without tokens it starts on a loopback address only, and only where development is on")
def _(world):
    def check(*arguments):
        done = subprocess.run([f"{world.bin_dir}/onceward-producer", "--database=x", "--check", *arguments], check=False,
                              capture_output=True, text=True, env={}, timeout=20)
        return done.returncode, done.stderr
    for address in ("127.0.0.1:8480", "127.9.9.9:8480", "[::1]:8480"):
        assert check(f"--listen={address}", "--development")[0] == 0, address
    for address in ("0.0.0.0:8480", "[::]:8480", "10.0.0.1:8480", "localhost:8480", "[::ffff:127.0.0.1]:8480"):
        code, errors = check(f"--listen={address}", "--development")
        assert code == 2 and "development" in errors, (address, errors)
        assert check(f"--listen={address}")[0] == 0, address
    producer = Producer(world.bin_dir, world.db.role(), tenant="trying")  # development is on in the fixture.
    try:
        name = expect(producer.post("/requests", {"type": "demo"}), 201).json["id"]
        assert world.db.count("requests", f"tenant = 'trying' AND request_id = '{name}'") == 1
        token, _ = world.token("real", "read")
        assert expect(producer.get("/requests", headers=bearer(token)), 200).json["requests"] == []
        expect(producer.get("/requests", headers=bearer("owt_wrong")), 401, "token_invalid")
    finally:
        producer.stop()


@case("G9", "a token is nowhere but with its caller")
def _(world):
    token, _ = world.token("secret", "read")
    expect(call(world, token, "GET", "/requests"), 200)
    dump = subprocess.run(["pg_dump", "-d", world.db.admin, "--data-only", "-n", "onceward"], check=True, capture_output=True,
                          text=True, env=dict(os.environ)).stdout
    assert "01" in dump and token not in dump and token[4:] not in dump
    assert token not in "".join(world.producer.log)
    assert token.encode() not in world.producer.get("/metrics").body


if __name__ == "__main__":
    main(World, unmake)
