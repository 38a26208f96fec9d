# SPDX-License-Identifier: Apache-2.0
"""A small piece of work for each program, done under a fault and again without one; and what must be so afterwards."""

import functools
import http.client
import json
import os
import time
import uuid

import faults
from faults import POLL_S, Finding, Process, check_end, wait_until
from world import KAFKA, Sql, SqlError, conninfo, free_port, header


class Run:
    """What one run came to: the counts of its calls, whether the fault was met, where, and how the program took it."""

    def __init__(self, process):
        self.counts = process.counts
        self.has_failed = process.has_failed
        self.place = process.place if process.has_failed else ""
        self.end = ""
        self.finding = None
        self.log = process.log


class Scenario:
    """A program's work on a new subject (ids, a database, a name) for every run."""

    name = ""

    def __init__(self, world):
        self.world = world

    def run(self, fault):
        """fault None: only counts, and the work must come out without any trace of trouble."""
        subject = self.new_subject(fault)
        process = self.start(subject, self.world.library, fault)
        again = None
        try:
            end, finding = "", None
            try:
                end = self.first(process, subject)
            except Finding as found:
                finding = found
            if finding is None:
                try:
                    self.between(subject)
                    again = self.start(subject, None, None)
                    self.second(again, subject)
                    self.check(subject, process.has_failed)
                except (Finding, SqlError) as found:
                    finding = Finding(f"after a start without faults: {found}")
            run = Run(process)
            run.end, run.finding = end, finding
            if again is not None and finding is not None:
                run.log += "-- started again --\n" + again.log
            return run
        finally:
            for one in (process, again):
                if one is not None:
                    one.close()
            self.forget(subject)

    def start_with(self, program, library, fault, *arguments, **settings):
        """The settings come from a file, so that its reading is part of the work."""
        path = os.path.join(self.world.folder, f"{program}.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())
        return Process([self.world.program(program), *arguments, "--config", path], library, fault)

    def new_subject(self, fault):
        raise NotImplementedError

    def start(self, subject, library, fault):
        raise NotImplementedError

    def first(self, process, subject):
        """The run with the fault; says how the program took it."""
        raise NotImplementedError

    def between(self, subject):
        """More work before the second start."""

    def second(self, process, subject):
        raise NotImplementedError

    def check(self, subject, has_failed):
        raise NotImplementedError

    def forget(self, subject):
        """What need not stay until the world ends."""


class Service(Scenario):
    """A program that runs until it is asked to stop."""

    def work(self, process, subject):
        """True when the work is done, False when the process ended first."""
        raise NotImplementedError

    def first(self, process, subject):
        begun = time.monotonic()
        if not self.work(process, subject):
            if process.code == 0:
                raise Finding("ended with 0 and was not asked to")
            return check_end(process)
        healed = "went on" if time.monotonic() - begun < 5 else f"healed after {time.monotonic() - begun:.0f} s"
        process.ask_to_stop()
        process.await_end("asked to stop, it goes on")
        end = check_end(process)
        return healed if process.code == 0 else f"{healed}, {end}"

    def second(self, process, subject):
        if not self.work(process, subject):
            raise Finding(f"ended with {process.code}")
        process.ask_to_stop()
        process.await_end("asked to stop, it goes on")
        check_end(process)
        if process.code != 0:
            raise Finding(f"ended with {process.code}")


class Command(Scenario):
    """A program that does one thing and ends."""

    success = (0,)

    def first(self, process, subject):
        process.await_end("the command goes on")
        end = check_end(process, self.success)
        if process.code in self.success:
            self.check_output(process, subject)
        return end

    def second(self, process, subject):
        process.await_end("the command goes on")
        check_end(process, self.success)
        if process.code not in self.success:
            raise Finding(f"ended with {process.code}: {process.log.strip()}")
        self.check_output(process, subject)

    def check_output(self, process, subject):
        raise NotImplementedError


class Caller:
    """Calls a producer as a caller should: the same call again when there was no answer, or 503, while the process lives."""

    def __init__(self, process, port):
        self._process = process
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=faults.patience_s)

    def call(self, method, path, body=None, expected=(200,), media_type="application/json", key=None):
        """The answer's bytes; None when the process ended."""
        until = time.monotonic() + faults.patience_s
        said = "nothing"
        headers = ({"Content-Type": media_type} if body else {}) | ({"Idempotency-Key": key} if key else {})
        while time.monotonic() < until:
            try:
                self._connection.request(method, path, body, headers)
                answer = self._connection.getresponse()
                content = answer.read()
                if answer.status in expected:
                    return content
                if answer.status != 503:
                    raise Finding(f"wrong answer to {method} {path}: {answer.status} {content[:300]!r}")
                said = content[:300]
            except TimeoutError:
                raise Finding(f"hangs: no answer to {method} {path} within {faults.patience_s} s") from None
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                said = repr(error)
            if self._process.code is not None:
                return None
            time.sleep(POLL_S)
        raise Finding(f"hangs: {method} {path} not answered well within {faults.patience_s} s, but {said}")

    def close(self):
        self._connection.close()


class Producer(Service):
    """A request with a document, submitted; a submission in one call; a large one; one under a key, twice; what can be read
    of them."""

    name = "producer"
    DOCUMENT = b"the document's bytes"
    LARGE = {"text": "x" * 70000}

    def new_subject(self, fault):
        return {"request": str(uuid.uuid4()), "small": str(uuid.uuid4()), "large": str(uuid.uuid4()), "key": str(uuid.uuid4()),
                "keyed": None, "answer": None, "events": {}}

    def start(self, subject, library, fault):
        subject["port"] = free_port()
        return self.start_with("onceward-producer", library, fault, database=conninfo(self.world.name, "onceward_producer"),
                               listen=f"127.0.0.1:{subject['port']}", development="on", relay_hints="127.0.0.1:9")

    def work(self, process, subject):
        caller = Caller(process, subject["port"])
        try:
            return (self.build_and_submit(caller, subject) and self.submit_at_once(caller, subject) and
                    self.submit_under_key(caller, subject) and self.read(caller, subject))
        finally:
            caller.close()

    def build_and_submit(self, caller, subject):
        path = f"/requests/{subject['request']}"
        body = json.dumps({"type": "torture", "data": {"a": 1}})
        request = caller.call("PUT", path, body, expected=(200, 201))
        if request is None:
            return False
        if json.loads(request)["status"] == "open" and caller.call("POST", f"{path}/documents?name=one", self.DOCUMENT,
                                                                   media_type="text/plain") is None:
            return False
        receipt = caller.call("POST", f"{path}/submit")
        return receipt is not None and self.keep(subject, "request", json.loads(receipt))

    def submit_at_once(self, caller, subject):
        for name, data in (("small", {"b": [1, 2]}), ("large", self.LARGE)):
            body = json.dumps({"id": subject[name], "type": "torture", "data": data})
            receipt = caller.call("POST", "/submissions", body, expected=(200, 201))
            if receipt is None or not self.keep(subject, name, json.loads(receipt)):
                return False
        return True

    def submit_under_key(self, caller, subject):
        """Without an id of the caller's: only the key says that the second call is the first. The answer never changes."""
        body = json.dumps({"type": "torture", "data": {"key": subject["key"]}})
        for _ in range(2):
            answer = caller.call("POST", "/submissions", body, expected=(201,), key=subject["key"])
            if answer is None:
                return False
            if subject["answer"] not in (None, answer):
                raise Finding(f"wrong answer under a key: it was {subject['answer']!r} and is {answer!r}")
            subject["answer"] = answer
        receipt = json.loads(answer)
        subject["keyed"] = receipt["id"]
        subject["events"]["keyed"] = receipt
        return True

    @staticmethod
    def keep(subject, name, receipt):
        """A submission has one event, whoever asks and how often; and it was queued once."""
        known = subject["events"].setdefault(name, {"event_id": receipt["event_id"], "queued": 0})
        known["queued"] += receipt["queued"]
        if receipt["event_id"] != known["event_id"]:
            raise Finding(f"wrong answer: the event of {name} was {known['event_id']} and is {receipt['event_id']}")
        if known["queued"] > 1:
            raise Finding(f"wrong answer: {name} was queued twice")
        return True

    def read(self, caller, subject):
        path = f"/requests/{subject['request']}"
        content = caller.call("GET", path)
        if content is None:
            return False
        request = json.loads(content)
        if request["status"] != "submitted" or len(request["documents"]) != 1 or request["data"] != {"a": 1}:
            raise Finding(f"wrong answer to GET {path}: {request}")
        event_id = subject["events"]["small"]["event_id"]
        for wanted, where in ((self.DOCUMENT, f"{path}/documents/{request['documents'][0]['id']}"),
                              (event_id.encode(), f"/events/{event_id}"), (b'"events"', "/events?limit=2"),
                              (b'"requests"', "/requests?limit=2"), (b'"deliveries"', "/deliveries?limit=2"),
                              (b"onceward_", "/metrics"), (b'"ready"', "/readyz"), (b'"limits"', "/")):
            content = caller.call("GET", where)
            if content is None:
                return False
            if wanted not in content or (where != "/metrics" and not where.startswith(path) and not is_json(content)):
                raise Finding(f"wrong answer to GET {where}: {content[:300]!r}")
        return True

    def check(self, subject, has_failed):
        for name, data in (("request", {"a": 1}), ("small", {"b": [1, 2]}), ("large", self.LARGE),
                           ("keyed", {"key": subject["key"]})):
            rows = self.world.sql.rows(
                "SELECT o.event_id, s.event_id, convert_from(o.value, 'UTF8')::json -> 'data', "
                "json_array_length(convert_from(o.value, 'UTF8')::json -> 'documents') "
                f"FROM onceward.outbox o FULL JOIN onceward.submissions s ON s.request_id::text = o.key "
                f"WHERE '{subject[name]}' IN (o.key, s.request_id::text)")
            if len(rows) != 1:
                raise Finding(f"{'lost' if not rows else 'doubled'}: {len(rows)} events of {name}")
            event_id, submitted, found, document_count = rows[0]
            if not event_id == submitted == subject["events"][name]["event_id"]:
                raise Finding(f"wrong event of {name}: {rows[0][:2]}")
            if json.loads(found) != data or int(document_count) != (name == "request"):
                raise Finding(f"wrong value of {name}: {found[:200]}, {document_count} documents")
        made = self.world.sql.value("SELECT count(*) FROM onceward.outbox WHERE type = 'torture' AND "
                                    f"convert_from(value, 'UTF8')::json -> 'data' ->> 'key' = '{subject['key']}'")
        if made != "1":
            raise Finding(f"doubled: {made} events were made under one key")


class Relay(Service):
    """Three events of two keys, published and settled; one more before the second start."""

    name = "outbox-relay"

    def __init__(self, world):
        super().__init__(world)
        self.offset = 0

    def publish(self, subject, key):
        event_id = self.world.sql.value(f"SELECT onceward.publish('{self.world.topic}', '{key}', 'torture', "
                                        f"""'{{"n": {len(subject["events"])}}}')""")
        subject["events"].append((event_id, key))

    def new_subject(self, fault):
        subject = {"events": [], "key": str(uuid.uuid4())}
        for key in ("a", "b", "a"):
            self.publish(subject, f"{key}-{subject['key']}")
        return subject

    def start(self, subject, library, fault):
        subject["port"] = free_port()
        return self.start_with("outbox-relay", library, fault, database=conninfo(self.world.name, "onceward_relay"),
                               kafka=KAFKA, name="torture", listen=f"127.0.0.1:{subject['port']}",
                               hint_listen=f"127.0.0.1:{free_port()}", settle_interval_ms=20, poll_max_ms=50)

    def work(self, process, subject):
        ids = ",".join(f"'{event_id}'" for event_id, _ in subject["events"])
        count = f"SELECT count(*) FROM onceward.events WHERE event_id IN ({ids}) AND status = 'completed'"
        if not wait_until(lambda: self.world.sql.number(count) == len(subject["events"]), process, "not all events are settled"):
            return False
        return ask_health(process, subject["port"])

    def between(self, subject):
        self.publish(subject, f"a-{subject['key']}")

    def check(self, subject, has_failed):
        records = [record for record in self.world.records(self.offset) if subject["key"] in record["key"]]
        self.offset = records[-1]["offset"] + 1 if records else self.offset
        mine = {event_id: key for event_id, key in subject["events"]}
        first = {}
        for record in records:
            event_id = header(record, "ce_id")
            if event_id not in mine or record["key"] != mine[event_id]:
                raise Finding(f"a stranger on the topic: {record}")
            if json.loads(record["payload"])["n"] != list(mine).index(event_id):
                raise Finding(f"wrong value on the topic: {record}")
            first.setdefault(event_id, record["offset"])
        if len(first) != len(mine):
            raise Finding(f"lost: {len(mine) - len(first)} events settled and not on the topic")
        order = [first[event_id] for event_id, key in mine.items() if key.startswith("a-")]
        if order != sorted(order):
            raise Finding(f"out of order: the events of one key are at {order}")
        if len(records) > len(mine) and not has_failed:
            raise Finding(f"doubled: {len(records)} records of {len(mine)} events and no fault")


class Consumer(Service):
    """A few events and one record that is none, applied under a new consumer's name."""

    name = "consumer"
    EVENT_COUNT = 5

    def __init__(self, world):
        super().__init__(world)
        self.number = 0
        world.sql.rows("CREATE TABLE effects (consumer text, event_id text, n int); GRANT INSERT ON effects TO onceward_consumer")
        self.events = [world.sql.value(f"SELECT onceward.publish('{world.topic}', 'key-{n % 2}', 'torture', '{{\"n\": {n}}}')")
                       for n in range(self.EVENT_COUNT)]
        feeder = Process([world.program("outbox-relay"), f"--database={conninfo(world.name, 'onceward_relay')}",
                          f"--kafka={KAFKA}", "--name=feeder", "--once"])
        feeder.await_end("outbox-relay --once goes on")
        check_end(feeder)
        feeder.close()
        world.feed("key-0", "no event")
        records = world.records()
        assert len(records) == self.EVENT_COUNT + 1, f"{len(records)} records"
        self.end_offset = records[-1]["offset"] + 1

    def new_subject(self, fault):
        self.number += 1
        return {"consumer": f"{self.world.name}-{self.number}"}

    def start(self, subject, library, fault):
        subject["port"] = free_port()
        name = subject["consumer"]
        sink = f"INSERT INTO public.effects SELECT '{name}', ce_id, (value ->> 'n')::int FROM events"
        return self.start_with("onceward-consumer", library, fault, database=conninfo(self.world.name, "onceward_consumer"),
                               kafka=KAFKA, consumer=name, topics=self.world.topic, sink_sql=sink,
                               listen=f"127.0.0.1:{subject['port']}")

    def work(self, process, subject):
        """Done when this very process stands at the partition's end."""
        takers = (f"SELECT count(*) FROM onceward.consumer_progress WHERE consumer = '{subject['consumer']}' AND kind = 'taken'")
        before = subject.get("takers", 0)
        place = (f"SELECT count(*) FROM onceward.consumer_state WHERE consumer = '{subject['consumer']}' "
                 f"AND next_offset = {self.end_offset}")
        done = wait_until(lambda: self.world.sql.number(takers) > before and self.world.sql.number(place) == 1, process,
                          "not all records are applied")
        subject["takers"] = self.world.sql.number(takers)
        return done and ask_health(process, subject["port"])

    def check(self, subject, has_failed):
        name = subject["consumer"]
        effects = self.world.sql.rows(f"SELECT event_id, n FROM effects WHERE consumer = '{name}' ORDER BY n, event_id")
        wanted = [[event_id, str(n)] for n, event_id in enumerate(self.events)]
        if effects != wanted:
            raise Finding(f"{'lost' if len(effects) < len(wanted) else 'doubled'}: {len(effects)} effects, not {len(wanted)}: {effects}")
        inbox = self.world.sql.rows("SELECT i.status, count(*) FROM onceward.inbox i JOIN onceward.inbox_scopes s USING (scope_id) "
                                    f"WHERE s.consumer = '{name}' GROUP BY 1")
        letters = self.world.sql.number(f"SELECT count(*) FROM onceward.dead_letters WHERE consumer = '{name}'")
        if inbox != [["completed", str(len(wanted))]] or letters != 1:
            raise Finding(f"wrong inbox: {inbox}, {letters} dead letters")


def is_json(content):
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


def ask_health(process, port):
    """True once the program says that it is ready; its metrics are asked for, too."""
    caller = Caller(process, port)
    try:
        ready = caller.call("GET", "/readyz")
        metrics = ready and caller.call("GET", "/metrics")
    finally:
        caller.close()
    if metrics is not None and metrics.count(b"onceward_") < 5:
        raise Finding(f"wrong metrics: {metrics[:300]!r}")
    return metrics is not None


class Migrate(Command):
    """onceward migrate on an empty database."""

    name = "migrate"
    STATE = ("SELECT 'class ' || relname || ' ' || relkind::text || ' ' || coalesce(relacl::text, '') AS line FROM pg_class "
             "WHERE relnamespace = 'onceward'::regnamespace UNION ALL "
             "SELECT 'function ' || proname || ' ' || md5(prosrc) || ' ' || coalesce(proacl::text, '') FROM pg_proc "
             "WHERE pronamespace = 'onceward'::regnamespace UNION ALL "
             "SELECT 'constraint ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint "
             "WHERE connamespace = 'onceward'::regnamespace UNION ALL "
             "SELECT 'migration ' || version FROM onceward.schema_migrations")

    def new_subject(self, fault):
        name = f"{self.world.name}_empty"
        self.world.create_database(name)
        return {"database": name}

    def start(self, subject, library, fault):
        return self.start_with("onceward", library, fault, "migrate", "--json", database=conninfo(subject["database"]))

    def check_output(self, process, subject):
        try:
            states = {migration["state"] for migration in json.loads(process.output)["migrations"]}
        except (ValueError, KeyError):
            states = None
        if states != {"applied"}:
            raise Finding(f"wrong answer: {process.output[-300:]!r}")

    def check(self, subject, has_failed):
        sql = Sql(subject["database"])
        found = {line for line, in sql.rows(self.STATE)}
        sql.close()
        wanted = {line for line, in self.world.sql.rows(self.STATE)}
        if found != wanted:
            raise Finding(f"wrong schema: lacks {sorted(wanted - found)[:3]}, has {sorted(found - wanted)[:3]} besides")

    def forget(self, subject):
        self.world.drop_database(subject["database"])


class Status(Command):
    """onceward status."""

    name = "status"
    success = (0, 3)

    def new_subject(self, fault):
        return {}

    def start(self, subject, library, fault):
        return self.start_with("onceward", library, fault, "status", "--json", database=conninfo(self.world.name), kafka=KAFKA)

    def check_output(self, process, subject):
        try:
            answer = json.loads(process.output)
        except ValueError:
            raise Finding(f"wrong answer: {process.output[-300:]!r}") from None
        shape = {name: len(value) if isinstance(value, (list, dict)) else value for name, value in answer.items()}
        if subject.setdefault("shape", shape) != shape:
            raise Finding(f"wrong answer: {subject['shape']}, and without faults {shape}")

    def check(self, subject, has_failed):
        """It changes nothing; both answers were looked at."""


class Sample(Command):
    """The little program beside this file, which makes one mistake, or none."""

    TEXT = "".join(f"line {n}\n" for n in range(40))

    def __init__(self, world, mode):
        super().__init__(world)
        self.mode = mode

    def path(self, name):
        return os.path.join(self.world.folder, name)

    def new_subject(self, fault):
        with open(self.path("input"), "w", encoding="utf-8") as file:
            file.write(self.TEXT)
        return {}

    def start(self, subject, library, fault):
        arguments = [self.mode, self.path("input"), self.path("output")]
        return Process([self.world.program("torture_sample"), *arguments], library, fault)

    def check_output(self, process, subject):
        try:
            with open(self.path("output"), encoding="utf-8") as file:
                found = file.read()
            os.remove(self.path("output"))
        except FileNotFoundError:
            found = ""
        if found != self.TEXT:
            raise Finding(f"{'lost' if len(found) < len(self.TEXT) else 'doubled'}: {len(found)} bytes, not {len(self.TEXT)}")

    def check(self, subject, has_failed):
        """The output of both runs was looked at."""


PROGRAMS = (Producer, Relay, Consumer, Migrate, Status)
SAMPLE_MODES = ("sound", "unchecked", "stubborn", "careless", "doubling", "silent", "boasting")
SCENARIOS = {scenario.name: scenario for scenario in PROGRAMS}
SAMPLES = {f"sample-{mode}": functools.partial(Sample, mode=mode) for mode in SAMPLE_MODES}
