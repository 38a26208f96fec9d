# SPDX-License-Identifier: Apache-2.0
"""A document is added while its request is submitted: what was committed before the submission is in the event. The
twin reads the documents by a sub-select of the statement that locks the request, and must be caught by the same race."""
import json
import subprocess
import threading
import time

from producer_fixture import Database, Producer, case, main

RUNS = 10
CAUGHT_MIN = 9
WAIT = 20

# The switch is is_single. Both keep what they found as an event would. The sub-select is of the snapshot from before
# the wait for the lock.
TWIN = """
    CREATE TABLE public.twin_events (request_id uuid, names text[]);
    CREATE FUNCTION public.twin_submit(name uuid, is_single boolean) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
        found_names text[];
    BEGIN
        IF is_single THEN
            SELECT ARRAY(SELECT d.name FROM onceward.documents d WHERE d.request_id = r.request_id) INTO found_names
              FROM onceward.requests r WHERE r.request_id = twin_submit.name FOR NO KEY UPDATE;
        ELSE
            PERFORM FROM onceward.requests r WHERE r.request_id = twin_submit.name FOR NO KEY UPDATE;
            found_names := ARRAY(SELECT d.name FROM onceward.documents d WHERE d.request_id = twin_submit.name);
        END IF;
        INSERT INTO public.twin_events VALUES (twin_submit.name, found_names);
    END $$"""


class World:
    def __init__(self, bin_dir):
        self.db = Database(bin_dir)
        self.db.sql(TWIN)
        self.producer = Producer(bin_dir, self.db.role())


def unmake(world):
    world.producer.stop()
    world.db.drop()


class Program:
    """Submits through the producer. What waits there is put back again and again, and counted."""

    def __init__(self, world):
        self.world = world
        self.busy_before = self.busy()

    def busy(self):
        text = self.world.producer.get("/metrics").body.decode()
        return sum(float(line.split()[-1]) for line in text.splitlines()
                   if line.startswith("onceward_producer_busy_total"))

    def submit(self, name):
        answer = self.world.producer.post(f"/requests/{name}/submit")
        assert answer.status == 200 and answer.json["status"] == "queued", answer

    def is_waiting(self):
        return self.busy() > self.busy_before

    def names(self, name):
        value = self.world.db.value(f"SELECT convert_from(value, 'UTF8') FROM onceward.outbox WHERE key = '{name}'")
        return sorted(document["name"] for document in json.loads(value)["documents"])


class Twin:
    """Submits by the SQL above."""

    def __init__(self, world, is_single):
        self.world = world
        self.is_single = is_single

    def submit(self, name):
        self.world.db.sql(f"SELECT public.twin_submit('{name}', {self.is_single})")

    def is_waiting(self):
        return self.world.db.value("SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database OR "
                                   "l.locktype = 'transactionid' JOIN pg_stat_activity a ON a.pid = l.pid "
                                   "WHERE NOT l.granted AND d.datname = current_database() "
                                   "AND a.datname = d.datname") != "0"

    def names(self, name):
        rows = self.world.db.sql(f"SELECT unnest(names) FROM public.twin_events WHERE request_id = '{name}'")
        return sorted(row[0] for row in rows)


class Adder:
    """A session that adds a document under the lock of its request, and stays open until it is told to commit."""

    def __init__(self, world, name):
        self.session = subprocess.Popen(["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", world.db.admin],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.session.stdin.write(f"""
            BEGIN;
            SELECT 'locked' FROM onceward.requests WHERE request_id = '{name}' FOR NO KEY UPDATE;
            INSERT INTO onceward.documents (tenant, request_id, document_id, position, name, media_type, size, sha256,
                                            content)
            SELECT tenant, request_id, 'late', 9, 'late', 'text/plain', 1, sha256('x'), 'x'
              FROM onceward.requests WHERE request_id = '{name}';
            SELECT 'added';\n""")
        self.session.stdin.flush()
        assert [self.session.stdout.readline().strip() for _ in range(2)] == ["locked", "added"]

    def commit(self):
        self.session.communicate("COMMIT;\n", timeout=WAIT)
        assert self.session.returncode == 0


def make_request(world):
    name = world.producer.create()
    answer = world.producer.post(f"/requests/{name}/documents?name=early", b"x")
    assert answer.status in (200, 201), answer
    return name


def check_names(names):
    """The check that the real thing and its twin are put to."""
    assert names == ["early", "late"], names


def race(world, way):
    """The submit has begun and waits for the adder, which is the barrier; then the adder commits."""
    name = make_request(world)
    adder = Adder(world, name)
    errors = []

    def submit():
        try:
            way.submit(name)
        except Exception as error:
            errors.append(error)
    thread = threading.Thread(target=submit)
    thread.start()
    until = time.monotonic() + WAIT
    while not way.is_waiting():
        assert time.monotonic() < until and not errors, ("the submit does not wait", errors)
        time.sleep(0.005)
    adder.commit()
    thread.join()
    assert not errors, errors
    check_names(way.names(name))


def alone(world, way):
    name = make_request(world)
    Adder(world, name).commit()
    way.submit(name)
    check_names(way.names(name))


def count_caught(world, make_way):
    caught = 0
    for _ in range(RUNS):
        way = make_way()
        try:
            race(world, way)
        except AssertionError as error:
            assert error.args == (["early"],), error
            caught += 1
    return caught


@case("A19 A9", "one after the other, the document is in the event, also in the twins'")
def _(world):
    for way in (Program(world), Twin(world, False), Twin(world, True)):
        alone(world, way)


@case("A19 A9", "a document that is added while submit waits is in the event")
def _(world):
    assert count_caught(world, lambda: Program(world)) == 0
    assert count_caught(world, lambda: Twin(world, False)) == 0


@case("A19 A9", "a submit of one statement with a sub-select is caught")
def _(world):
    caught = count_caught(world, lambda: Twin(world, True))
    print(f"      caught in {caught} of {RUNS} runs")
    assert caught >= CAUGHT_MIN, caught


main(World, unmake)
