# SPDX-License-Identifier: Apache-2.0
"""GET /events/{event_id}?wait=: until an event is applied, or failed, or the time is up."""
import re
import socket
import threading
import time

from producer_fixture import Database, Producer, Proxy, case, conninfo, expect, in_parallel, main, new_id, receive

WAITERS = 500


class World:
    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        self.db = Database(bin_dir)
        self.producer = Producer(bin_dir, self.db.role())
        for name in ("alpha", "beta"):
            self.register(name)

    def register(self, name, topic="demo"):
        """As a consumer does at its first start."""
        self.db.sql(f"INSERT INTO onceward.inbox_scopes (consumer) VALUES ('{name}') ON CONFLICT DO NOTHING;"
                    "INSERT INTO onceward.consumer_progress (consumer, scope, topic, partition, seq, owner, incarnation, attempt, "
                    f"kind, next_offset, cluster_id) VALUES ('{name}', 'live', '{topic}', 0, 0, 'o', gen_random_uuid(), "
                    "gen_random_uuid(), 'registered', 0, 'x')")

    def submit(self):
        return expect(self.producer.post("/submissions", {"type": "demo"}), 201).json["event_id"]

    def deliver(self, consumer, *events, status="completed"):
        names = ",".join(f"'{event}'::uuid" for event in events)
        self.db.sql("INSERT INTO onceward.inbox (scope_id, status, payload_hash, event_id) "
                    f"SELECT scope_id, '{status}', 1, e FROM onceward.inbox_scopes, unnest(ARRAY[{names}]) e "
                    f"WHERE consumer = '{consumer}' AND scope = 'live'")

    def metric(self, name):
        return float(re.search(rf"^{name} (\S+)$", self.producer.get("/metrics").body.decode(), re.MULTILINE)[1])

    def await_waiters(self, count):
        until = time.monotonic() + 20
        while self.metric("onceward_producer_event_waiters") != count:
            assert time.monotonic() < until, self.metric("onceward_producer_event_waiters")
            time.sleep(0.05)


def unmake(world):
    world.producer.stop()
    world.db.drop()


def waited(answer):
    return expect(answer, 200).json["wait"]["outcome"]


def later(seconds, call):
    timer = threading.Timer(seconds, call)
    timer.start()
    return timer


@case("C6", "a wait ends when every consumer of the topic has applied the event")
def _(world):
    event = world.submit()
    begun = time.monotonic()
    first = later(0.5, lambda: world.deliver("alpha", event))
    second = later(1.0, lambda: world.deliver("beta", event))
    answer = world.producer.get(f"/events/{event}?wait=20")
    seconds = time.monotonic() - begun
    first.join()
    second.join()
    assert waited(answer) == "applied" and 1.0 <= seconds < 5, (seconds, answer)
    assert [row["consumer"] for row in answer.json["deliveries"]] == ["alpha", "beta"], answer
    assert answer.json["event"]["event_id"] == event, answer
    assert waited(world.producer.get(f"/events/{event}?wait=20")) == "applied"


@case("C7", "consumer= chooses one: its deliveries alone are shown and waited for")
def _(world):
    event = world.submit()
    world.deliver("alpha", event)
    answer = world.producer.get(f"/events/{event}?wait=20&consumer=alpha")
    assert waited(answer) == "applied" and [row["consumer"] for row in answer.json["deliveries"]] == ["alpha"], answer
    assert waited(world.producer.get(f"/events/{event}?wait=1")) == "time_is_up"
    assert waited(world.producer.get(f"/events/{event}?wait=0&consumer=beta")) == "time_is_up"
    assert waited(world.producer.get(f"/events/{event}?wait=0&consumer=nobody")) == "time_is_up"
    assert world.producer.get(f"/events/{event}?consumer=beta").json["deliveries"] == []
    world.deliver("beta", event, status="claimed")  # Begun is not applied.
    assert waited(world.producer.get(f"/events/{event}?wait=0&consumer=beta")) == "time_is_up"


@case("C6", "a replay's scope, a consumer of other topics and a retired one do not count")
def _(world):
    world.register("given-up")
    world.db.sql("INSERT INTO onceward.consumer_retirements (consumer) VALUES ('given-up')")
    event = world.submit()
    world.register("elsewhere", "other")
    world.db.sql("INSERT INTO onceward.inbox_scopes (consumer, scope) VALUES ('alpha', 'again')")
    world.deliver("alpha", event)
    world.deliver("beta", event)
    assert waited(world.producer.get(f"/events/{event}?wait=20")) == "applied"


@case("C8", "a wait ends when the event has failed: at a consumer, at the broker, by a person")
def _(world):
    event, dead, parked = world.submit(), world.submit(), world.submit()
    world.deliver("alpha", event, status="failed")
    world.db.sql("INSERT INTO onceward.dead_letters (consumer, scope, topic, partition, record_offset, record_hash, event_id, "
                 "header_names, header_values, reason_code, reason) "
                 f"VALUES ('beta', 'live', 'demo', 0, 1, '\\x00', '{dead}', '{{}}', '{{}}', '22001', 'too long')")
    world.db.sql("INSERT INTO onceward.deferred SELECT id, lane, tenant, event_id, topic, key, type, source, subject, time, "
                 "content_type, dataschema, traceparent, header_names, header_values, value, 'parked', 'MSG_SIZE_TOO_LARGE', "
                 f"'the broker says no' FROM onceward.outbox WHERE event_id = '{parked}'")
    for name in (event, dead, parked):
        assert waited(world.producer.get(f"/events/{name}?wait=20")) == "failed"
    world.db.sql("DELETE FROM onceward.deferred")


@case("C9", "what the wait is may not be: words, signs, fractions, too long, twice; an empty consumer")
def _(world):
    event = world.submit()
    for query in ("wait=", "wait=soon", "wait=-1", "wait=1.5", "wait=31", "wait=99999999999999999999", "wait=1&wait=1",
                  "wait=+1", "consumer=", "wait=1&consumer=", f"consumer={'x' * 400}", "until=1"):
        expect(world.producer.get(f"/events/{event}?{query}"), 400, "query_invalid")
    assert "30" in world.producer.get(f"/events/{event}?wait=31").json["detail"]
    assert world.producer.get("/").json["limits"]["event_wait_max_s"] == 30
    expect(world.producer.get(f"/events/{new_id()}?wait=20"), 404, "event_not_found")
    expect(world.producer.get("/events/none?wait=20"), 404, "event_not_found")


@case("C10", "500 who wait share one connection and one query per look, nobody else is held up, all are told")
def _(world):
    events = [world.submit() for _ in range(5)]
    connections = []
    for index in range(WAITERS):
        one = socket.create_connection(("127.0.0.1", world.producer.port))
        one.sendall(f"GET /events/{events[index % 5]}?wait=30 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        connections.append(one)
    world.await_waiters(WAITERS)
    sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = "
    looks = world.metric("onceward_producer_event_looks_total")
    begun = time.monotonic()
    held = []
    while time.monotonic() - begun < 2:
        held.append((int(world.db.value(sessions + "'onceward-producer waiter'")),
                     int(world.db.value(sessions + "'onceward-producer reader' AND state <> 'idle'"))))
        world.submit()
    looks = world.metric("onceward_producer_event_looks_total") - looks
    assert max(waiter for waiter, _ in held) == 1 and max(busy for _, busy in held) == 0, held
    assert 1 <= looks <= 250, looks  # 500 that ask for themselves would be 500 in each round.
    with open(f"/proc/{world.producer.process.pid}/status", encoding="ascii") as status:
        threads = int(re.search(r"^Threads:\s+(\d+)", status.read(), re.MULTILINE)[1])
    assert threads < 30, threads
    for one in connections[:100]:
        one.close()
    world.await_waiters(WAITERS - 100)
    begun = time.monotonic()
    world.deliver("alpha", *events)
    world.deliver("beta", *events)
    for one in connections[100:]:
        answer, _ = receive_one(one)
        assert b'"outcome":"applied"' in answer.replace(b" ", b""), answer
        one.close()
    seconds = time.monotonic() - begun
    assert seconds < 10, seconds
    print(f"      {WAITERS} waiters: {held[0][0]} connection, {threads} threads in all, {looks:.0f} looks in 2 s; "
          f"{WAITERS - 100} answered within {seconds:.2f} s of the effect", flush=True)


def receive_one(connection):
    """One answer of a connection that stays open."""
    connection.settimeout(15)
    text = b""
    while b"\r\n\r\n" not in text:
        text += connection.recv(65536)
    head, _, body = text.partition(b"\r\n\r\n")
    size = int(re.search(rb"Content-Length: (\d+)", head)[1])
    while len(body) < size:
        body += connection.recv(65536)
    return body[:size], head


@case("C10", "what comes behind a call that waits is answered after it, in order")
def _(world):
    event = world.submit()
    with socket.create_connection(("127.0.0.1", world.producer.port)) as one:
        one.sendall(f"GET /events/{event}?wait=1 HTTP/1.1\r\nHost: x\r\n\r\nGET /li".encode())
        world.await_waiters(1)
        one.sendall(b"vez HTTP/1.1\r\nHost: x\r\n\r\nGET /events/none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        text, was_closed = receive(one, 5)
    statuses = re.findall(rb"HTTP/1.1 (\d+)", text)
    assert statuses == [b"200", b"200", b"404"] and was_closed and text.index(b"time_is_up") < text.index(b"404"), text


@case("C11", "too many who wait are answered 429")
def _(world):
    event = world.submit()
    small = Producer(world.bin_dir, world.db.role(), event_waiters_max=3)
    try:
        answers = in_parallel([lambda: small.get(f"/events/{event}?wait=2") for _ in range(5)])
        assert sorted(answer.status for answer in answers) == [200, 200, 200, 429, 429], answers
        assert {answer.code for answer in answers if answer.status == 429} == {"too_many_waiting"}
    finally:
        small.stop()


@case("C12", "SIGTERM answers those who wait at once")
def _(world):
    event = world.submit()
    other = Producer(world.bin_dir, world.db.role())
    begun = time.monotonic()
    later(1, other.process.terminate)
    answer = other.get(f"/events/{event}?wait=30")
    seconds = time.monotonic() - begun
    assert waited(answer) == "stopping" and seconds < 8, (seconds, answer)
    assert other.process.wait(timeout=20) == 0


@case("C13", "the database goes away and comes back while one waits")
def _(world):
    words = dict(word.split("=", 1) for word in world.db.role().split())
    proxy = Proxy(words["host"], int(words["port"]))
    other = Producer(world.bin_dir, conninfo(dbname=world.db.name, user="onceward_producer", host="127.0.0.1", port=proxy.port))
    try:
        event, lost = world.submit(), world.submit()
        results = []
        waiting = threading.Thread(target=lambda: results.append(other.get(f"/events/{event}?wait=20")))
        waiting.start()
        time.sleep(0.5)
        proxy.cut_all("refuse")
        expect(other.get(f"/events/{lost}?wait=1"), 503, "database_unavailable")
        world.deliver("alpha", event)
        world.deliver("beta", event)
        proxy.cut_all("pass")
        waiting.join()
        assert waited(results[0]) == "applied", results
    finally:
        other.stop()


@case("C6", "where no consumer of the topic keeps its inbox here, a wait ends when the event is published")
def _(world):
    world.db.sql("INSERT INTO onceward.topics (topic) VALUES ('away');"
                 "INSERT INTO onceward.routes (type, topic) VALUES ('away', 'away')")
    event = expect(world.producer.post("/submissions", {"type": "away"}), 201).json["event_id"]
    assert waited(world.producer.get(f"/events/{event}?wait=0")) == "time_is_up"
    settle = later(0.5, lambda: world.db.sql("""
        INSERT INTO onceward.lane_progress (lane, seq, owner, incarnation, attempt, kind, snapshot_from, from_floor, position,
                                            claimed_to, system_identifier)
        SELECT lane, seq + 1, 'fake', gen_random_uuid(), gen_random_uuid(), 'moved', pg_current_snapshot(),
               (SELECT last_value FROM onceward.outbox_id_seq), 0, (SELECT last_value FROM onceward.outbox_id_seq),
               (SELECT system_identifier FROM pg_control_system()) FROM onceward.lane_state"""))
    answer = world.producer.get(f"/events/{event}?wait=20")
    settle.join()
    assert waited(answer) == "published" and answer.json["event"]["status"] == "completed", answer


main(World, unmake)
