# SPDX-License-Identifier: Apache-2.0
"""Retention and erasure: the content goes, and a repetition is still a duplicate."""
import json
import subprocess
import time

from producer_fixture import Database, Producer, Session, case, expect, main, new_id

SECRET = "Jane-Roe-4711"
RAW = {"Content-Type": "text/plain"}


class World:
    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        self.db = Database(bin_dir)
        self.producer = Producer(bin_dir, self.db.role())

    def erase(self, name, *flags, tenant="default", code=0):
        """The command's JSON."""
        done = subprocess.run([f"{self.bin_dir}/onceward", "erase", name, "--tenant", tenant, "--json", *flags, "--database",
                               self.db.role(user="onceward_operator")], capture_output=True, text=True, check=False, env={})
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def fill(self, key):
        """A submitted request with content everywhere: its calls, each with its answer."""
        name = new_id()
        calls = [("PUT", f"/requests/{name}", {"type": "demo", "data": {"who": SECRET}}, f"{key}-put"),
                 ("POST", f"/requests/{name}/documents", {"document_id": "d", "name": SECRET, "content": "AAAA"}, f"{key}-document"),
                 ("POST", f"/requests/{name}/submit", None, f"{key}-submit")]
        return name, [(call, self.call(*call)) for call in calls]

    def call(self, method, path, body, key):
        answer = self.producer.call(method, path, body, {"Idempotency-Key": key})
        assert answer.status in (200, 201), answer
        return answer

    def publish_all(self):
        """As a relay leaves it: everything is settled."""
        self.db.sql("""
            INSERT INTO onceward.lane_progress (lane, seq, owner, incarnation, attempt, kind, snapshot_from, from_floor, position,
                                                claimed_to, system_identifier)
            SELECT lane, seq + 1, 'fake', gen_random_uuid(), gen_random_uuid(), 'moved', pg_current_snapshot(),
                   (SELECT last_value FROM onceward.outbox_id_seq), 0, (SELECT last_value FROM onceward.outbox_id_seq),
                   (SELECT system_identifier FROM pg_control_system()) FROM onceward.lane_state""")

    def where(self, secret=SECRET):
        """The tables in which the text stands."""
        places = {"requests": "data", "documents": "content || convert_to(name, 'UTF8')", "idempotency_keys": "body",
                  "outbox": "value", "deferred": "value", "audit": "convert_to(detail::text, 'UTF8')"}
        return [table for table, column in places.items()
                if self.db.count(table, f"position(convert_to('{secret}', 'UTF8') in {column}) > 0")]

    def age(self, days):
        """Everything is so much older."""
        for table, column in (("requests", "created_at"), ("documents", "created_at"), ("submissions", "submitted_at")):
            self.db.sql(f"UPDATE onceward.{table} SET {column} = {column} - interval '{days} days'")

    def reap(self, **settings):
        """A producer whose reaper runs once, and its counters."""
        other = Producer(self.bin_dir, self.db.role(), reap_interval_s=1, **settings)
        time.sleep(1.6)
        text = other.get("/metrics").body.decode()
        other.stop()
        return {line.split('"')[1]: int(float(line.split()[-1])) for line in text.splitlines()
                if line.startswith("onceward_producer_retention_removed_total{")}


def unmake(world):
    world.producer.stop()
    world.db.drop()


@case("H1", "erasing leaves no content in the database, and every repetition is what it was")
def _(world):
    name, made = world.fill("h1")
    receipt = made[-1][1].json
    assert world.where() == ["requests", "documents", "idempotency_keys", "outbox"], world.where()
    world.publish_all()
    tried = world.erase(name, "--dry-run")["erased"]
    assert tried["dry_run"] and world.where() == ["requests", "documents", "idempotency_keys", "outbox"], tried
    done = world.erase(name, "--yes")
    assert {key: value for key, value in done["erased"].items() if key != "dry_run"} == {
        key: value for key, value in tried.items() if key != "dry_run"}, (done, tried)
    assert done["erased"]["event_id"] == receipt["event_id"] and done["erased"]["documents"] == 1, done
    assert done["erased"]["answers"] == 2 and done["erased"]["outbox_payloads"] == 1 and done["left"]["submission"], done
    assert world.where() == [], world.where()
    shown = expect(world.producer.get(f"/requests/{name}"), 200).json
    assert shown["data"] is None and shown["erased_at"] and shown["event_id"] == receipt["event_id"], shown
    assert shown["documents"][0]["name"] == "" and len(shown["documents"][0]["sha256"]) == 64, shown
    expect(world.producer.get(f"/requests/{name}/documents/d"), 410, "content_erased")
    # Repetitions: under their keys, and without.
    for (method, path, body, key), first in made:
        again = world.call(method, path, body, key)
        assert again.status == first.status and again.headers["Idempotent-Replayed"] == "true", again
        assert again.json["id"] == name and SECRET not in again.body.decode(), again
    assert world.call(*made[-1][0]).body == made[-1][1].body  # A receipt shows no content: byte for byte.
    again = expect(world.producer.post(f"/requests/{name}/submit"), 200).json
    assert again["status"] == "duplicate" and again["event_id"] == receipt["event_id"], again
    again = expect(world.producer.post("/submissions", {"id": name, "type": "demo", "data": {"who": SECRET}, "documents": [
        {"document_id": "d", "name": SECRET, "content": "AAAA"}]}), 200).json
    assert again["status"] == "duplicate" and again["event_id"] == receipt["event_id"], again
    expect(world.producer.put(f"/requests/{name}", {"type": "demo", "data": {"who": SECRET}}), 200)
    expect(world.producer.put(f"/requests/{name}", {"type": "demo", "data": {"who": "else"}}), 409, "request_conflict")
    assert world.db.count("outbox", f"event_id = '{receipt['event_id']}'") == 1 and world.where() == []
    assert world.db.count("audit", f"action = 'erase' AND object = '{name}' AND detail ->> 'tenant' = 'default'") == 1
    twice = world.erase(name, "--yes")["erased"]
    assert twice["was"] == "erased" and (twice["documents"], twice["answers"], twice["outbox_payloads"]) == (0, 0, 0), twice


@case("H2", "what is not published, not there, another tenant's or not meant is refused")
def _(world):
    name, _ = world.fill("h2")
    assert world.erase(name, "--yes", code=6)["error"]["code"] == "event_not_published"
    assert world.erase(name, "--dry-run", code=6)["error"]["code"] == "event_not_published"
    world.db.sql("INSERT INTO onceward.deferred SELECT id, lane, tenant, event_id, topic, key, type, source, subject, time, "
                 "content_type, dataschema, traceparent, header_names, header_values, value, 'parked', 'c', 'r' "
                 f"FROM onceward.outbox WHERE key = '{name}'")
    world.publish_all()
    assert world.erase(name, "--yes", code=6)["error"]["code"] == "event_not_published"  # A person may still retry it.
    assert world.erase(name, "--yes", tenant="other", code=1)["error"]["code"] == "request_unknown"
    assert world.erase(new_id(), "--yes", code=1)["error"]["code"] == "request_unknown"
    assert world.erase(name, code=6)["error"]["code"] == "not_confirmed"
    world.erase("x", "--yes", code=2)
    assert "requests" in world.where() and world.db.count("audit", f"object = '{name}'") == 0
    world.db.sql("UPDATE onceward.deferred SET state = 'discarded'")
    assert world.erase(name, "--yes")["erased"]["deferred_payloads"] == 1
    assert world.where() == []


@case("H3", "an open request is removed as a whole, and its id can be used again")
def _(world):
    name = new_id()
    world.call("PUT", f"/requests/{name}", {"type": "demo", "data": {"who": SECRET}}, "h3")
    expect(world.producer.post(f"/requests/{name}/documents?name={SECRET}", "text", RAW), 200)
    done = world.erase(name, "--yes")
    assert done["erased"]["was"] == "open" and done["erased"]["event_id"] is None and not done["left"]["submission"], done
    assert world.where() == []
    expect(world.producer.post(f"/requests/{name}/submit"), 404, "request_not_found")
    expect(world.producer.put(f"/requests/{name}", {"type": "demo", "data": {"who": "else"}}), 201)
    expect(world.producer.post(f"/requests/{name}/submit"), 200)


@case("H4", "content is kept as long as it is to be, and no longer; what recognises a repetition for ever")
def _(world):
    old, made = world.fill("h4")
    waiting, _ = world.fill("h4-waiting")
    world.db.sql("INSERT INTO onceward.deferred SELECT id, lane, tenant, event_id, topic, key, type, source, subject, time, "
                 "content_type, dataschema, traceparent, header_names, header_values, value, 'held', 'c', 'r' "
                 f"FROM onceward.outbox WHERE key = '{waiting}'")
    world.publish_all()
    world.age(10)
    new, _ = world.fill("h4-new")
    world.publish_all()
    assert set(world.reap().values()) == {0}  # By default nothing.
    assert world.reap(document_kept_days=5)["document"] == 1
    expect(world.producer.get(f"/requests/{old}/documents/d"), 410, "content_erased")
    assert expect(world.producer.get(f"/requests/{old}"), 200).json["documents"][0]["name"] == SECRET
    removed = world.reap(request_kept_days=5)
    assert removed["request"] >= 1 and removed["submission"] == 0, removed
    assert expect(world.producer.get(f"/requests/{old}"), 200).json["data"] is None
    for name in (waiting, new):  # Not yet published; not yet old.
        assert expect(world.producer.get(f"/requests/{name}"), 200).json["data"] == {"who": SECRET}, name
        expect(world.producer.get(f"/requests/{name}/documents/d"), 200)
    again = expect(world.producer.post(f"/requests/{old}/submit"), 200).json
    assert again["status"] == "duplicate" and again["event_id"] == made[-1][1].json["event_id"], again
    world.db.sql("DELETE FROM onceward.deferred")


@case("H5", "a request that nobody submits goes as a whole, but one that is being submitted stays")
def _(world):
    old, held = world.producer.create({"n": 1}), world.producer.create({"n": 2})
    expect(world.producer.post(f"/requests/{old}/documents?name=x", "text", RAW), 200)
    world.age(10)
    new = world.producer.create({"n": 3})
    session = Session(world.db.admin, f"SELECT FROM onceward.requests WHERE request_id = '{held}' FOR NO KEY UPDATE;"
                                      f"INSERT INTO onceward.submissions VALUES ('default', '{held}', gen_random_uuid(), now())")
    assert world.reap(open_request_kept_days=5)["open_request"] >= 1
    session.end("COMMIT")
    expect(world.producer.get(f"/requests/{old}"), 404, "request_not_found")
    assert world.db.count("documents", f"request_id = '{old}'") == 0
    expect(world.producer.get(f"/requests/{held}"), 200)
    expect(world.producer.get(f"/requests/{new}"), 200)
    assert world.reap(open_request_kept_days=5)["open_request"] == 0


@case("H6", "with submission_kept_days a repetition is new after that time: what it costs")
def _(world):
    name, made = world.fill("h6")
    world.publish_all()
    world.db.sql("DELETE FROM onceward.idempotency_keys")
    world.age(10)
    assert world.reap(submission_kept_days=5)["submission"] >= 1
    expect(world.producer.get(f"/requests/{name}"), 404, "request_not_found")
    assert world.db.count("documents", f"request_id = '{name}'") == 0
    answer = expect(world.producer.post("/submissions", {"id": name, "type": "demo"}), 201).json
    assert answer["queued"] and answer["event_id"] != made[-1][1].json["event_id"], answer
    assert world.db.count("outbox", f"key = '{name}'") == 2


@case("H7", "settings that let answers outlive what they speak of are refused")
def _(world):
    for flag in ("--request-kept-days=1", "--submission-kept-days=1"):
        done = subprocess.run([f"{world.bin_dir}/onceward-producer", "--database=x", "--key-lifetime-s=90000", flag, "--check"],
                              capture_output=True, text=True, check=False, env={})
        assert done.returncode == 2 and "key_lifetime_s" in done.stderr, done


main(World, unmake)
