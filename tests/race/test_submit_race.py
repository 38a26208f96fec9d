# SPDX-License-Identifier: Apache-2.0
"""One request, many submits at the same moment: one is queued, all others are duplicates, one event is written; a twin
that checks and then acts must be caught by the same race. The same while connections are cut and the producer is killed."""
import contextlib
import http.client
import multiprocessing
import subprocess
import threading
import time

from producer_fixture import Database, Producer, case, in_parallel, main, new_id, run_sql

RIVALS = 8
ROUNDS = 8
RUNS = 10
CAUGHT_MIN = 9
WAIT = 60


class World:
    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        context = multiprocessing.get_context("fork")
        self.pool = context.Pool(RIVALS)
        self.manager = context.Manager()
        self.db = Database(bin_dir)
        self.db.sql(TWIN)
        self.producers = [Producer(bin_dir, self.db.role()) for _ in range(2)]


def unmake(world):
    for producer in world.producers:
        producer.stop()
    world.db.drop()
    world.pool.terminate()
    world.manager.shutdown()


def assert_once(statuses, event_count):
    """The check that both the real thing and its broken twin are put to."""
    assert sorted(statuses) == ["duplicate"] * (len(statuses) - 1) + ["queued"], statuses
    assert event_count == 1, event_count


def submit(producer, name):
    answer = producer.post(f"/requests/{name}/submit")
    assert answer.status == 200, answer
    return answer.json


def check_receipts(world, name, receipts):
    for receipt in receipts:
        assert not isinstance(receipt, Exception), receipt
    assert_once([receipt["status"] for receipt in receipts], world.db.count("outbox", f"key = '{name}'"))
    assert len({(receipt["event_id"], receipt["submitted_at"]) for receipt in receipts}) == 1, receipts
    assert world.db.count("submissions", f"request_id = '{name}'") == 1


class Remote(Producer):
    """The same producer as another process sees it: an address."""

    def __init__(self, port):  # pylint: disable=super-init-not-called
        self.port = port


class Program:
    """Submits through two producers in turn."""

    def __init__(self, world):
        self.world = world
        self.ports = [producer.port for producer in world.producers]

    def make(self):
        return self.world.producers[0].create()

    def calls(self, name, count):
        return [(submit, Remote(self.ports[index % 2]), name) for index in range(count)]

    def check(self, name, answers):
        check_receipts(self.world, name, answers)


# The switch is is_two_steps; its table has no key, which would mask it. The same pause stands before both inserts, so
# that a busy machine, which lets one session run through before the next one wakes, does not hide the race.
TWIN = """
    CREATE TABLE public.gate ();
    CREATE TABLE public.twin_keyed (request_id uuid PRIMARY KEY, event_id uuid);
    CREATE TABLE public.twin_unkeyed (request_id uuid, event_id uuid);
    CREATE FUNCTION public.twin_submit(name uuid, is_two_steps boolean) RETURNS text LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM FROM public.gate;
        IF is_two_steps THEN
            IF EXISTS (SELECT FROM public.twin_unkeyed WHERE request_id = name) THEN
                RETURN 'duplicate';
            END IF;
            PERFORM pg_sleep(0.1);
            INSERT INTO public.twin_unkeyed VALUES (name, gen_random_uuid());
        ELSE
            PERFORM pg_sleep(0.1);
            INSERT INTO public.twin_keyed VALUES (name, gen_random_uuid()) ON CONFLICT DO NOTHING;
        END IF;
        RETURN CASE WHEN FOUND THEN 'queued' ELSE 'duplicate' END;
    END $$"""


def submit_to_twin(admin, name, is_two_steps):
    return run_sql(admin, f"SELECT public.twin_submit('{name}', {is_two_steps})")[0][0]


class Twin:
    """Submits by the SQL above."""

    def __init__(self, world, is_two_steps):
        self.world = world
        self.is_two_steps = is_two_steps
        self.table = "twin_unkeyed" if is_two_steps else "twin_keyed"

    @staticmethod
    def make():
        return new_id()

    def calls(self, name, count):
        return [(submit_to_twin, self.world.db.admin, name, self.is_two_steps)] * count

    def check(self, name, answers):
        count = self.world.db.value(f"SELECT count(*) FROM public.{self.table} WHERE request_id = '{name}'")
        assert_once(answers, int(count))


class Gate:
    """A barrier that holds psql too: nobody gets past the table until all of them wait for it."""

    def __init__(self, world, count):
        self.db = world.db
        self.count = count
        self.is_full = False
        self.opener = threading.Thread(target=self.open_for_all)
        self.session = subprocess.Popen(["psql", "-X", "-q", "-At", "-d", world.db.admin], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        self.session.stdin.write("BEGIN; LOCK TABLE public.gate IN ACCESS EXCLUSIVE MODE; SELECT 'closed';\n")
        self.session.stdin.flush()
        assert self.session.stdout.readline().strip() == "closed"
        self.opener.start()

    def open_for_all(self):
        until = time.monotonic() + WAIT
        while not self.is_full and time.monotonic() < until:
            time.sleep(0.03)
            self.is_full = self.count == int(self.db.value(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'public.gate'::regclass "
                "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"))
        self.session.communicate("COMMIT;\n", timeout=WAIT)

    def __exit__(self, *_):
        self.opener.join()
        assert self.is_full, "not all of them came to the gate"


def make_call(call):
    return call[0](*call[1:])


def make_call_behind(arguments):
    barrier, call = arguments
    barrier.wait()
    try:
        return make_call(call)
    except Exception as error:
        return error


def in_threads(_, calls):
    return in_parallel([lambda call=call: make_call(call) for call in calls])


def in_processes(world, calls):
    barrier = world.manager.Barrier(len(calls))
    return world.pool.map(make_call_behind, [(barrier, call) for call in calls], chunksize=1)


def race(world, way, run):
    """One request, RIVALS submits at once; threads and processes wait for each other, and those of a twin once more."""
    name = way.make()
    with Gate(world, RIVALS) if isinstance(way, Twin) else contextlib.nullcontext():
        answers = run(world, way.calls(name, RIVALS))
    way.check(name, answers)


def alone(world, way):
    """The single-threaded cases: one after the other, and requests of their own."""
    name = way.make()
    way.check(name, [make_call(call) for call in way.calls(name, 3)])
    other = way.make()
    way.check(other, [make_call(call) for call in way.calls(other, 1)])


def count_caught(world, way, run):
    caught = 0
    for _ in range(RUNS):
        try:
            race(world, way, run)
        except AssertionError:
            caught += 1
    return caught


@case("A19", "one after the other, one is queued and the others are duplicates, also the twins'")
def _(world):
    for way in (Program(world), Twin(world, False), Twin(world, True)):
        alone(world, way)


@case("A19", "8 threads submit one request through two producers")
def _(world):
    assert count_caught(world, Program(world), in_threads) == 0
    assert count_caught(world, Twin(world, False), in_threads) == 0


@case("A19", "8 processes submit one request through two producers")
def _(world):
    assert count_caught(world, Program(world), in_processes) == 0
    assert count_caught(world, Twin(world, False), in_processes) == 0


@case("A19", "a twin that checks and then acts is caught, with 8 threads and with 8 processes")
def _(world):
    for run in (in_threads, in_processes):
        caught = count_caught(world, Twin(world, True), run)
        print(f"      {run.__name__}: caught in {caught} of {RUNS} runs")
        assert caught >= CAUGHT_MIN, caught


@case("A19 A6", "8 callers bring the same id to POST /submissions and PUT")
def _(world):
    for _ in range(ROUNDS):
        body = {"id": new_id(), "type": "demo", "data": {"a": 1}}
        answers = in_parallel([lambda index=index: world.producers[index % 2].post("/submissions", body)
                               for index in range(8)])
        assert sorted(answer.status for answer in answers) == [200] * 7 + [201], answers
        check_receipts(world, body["id"], [answer.json for answer in answers])
        path = f"/requests/{new_id()}"
        answers = in_parallel([lambda index=index: world.producers[index % 2].put(path, {"type": "demo"})
                               for index in range(8)])
        assert sorted(answer.status for answer in answers) == [200] * 7 + [201], answers
        assert len({answer.body for answer in answers}) == 1, answers


@case("A19 A9", "no document that was accepted is missing from the event, and none comes after it")
def _(world):
    for _ in range(ROUNDS):
        name = world.producers[0].create()

        def add(index):
            return world.producers[index % 2].post(f"/requests/{name}/documents?name=d{index}", b"x" * index)
        calls = [lambda index=index: add(index) for index in range(7)]
        answers = in_parallel(calls + [lambda: submit(world.producers[1], name)])
        accepted = {f"d{index}" for index in range(7) if answers[index].status == 200}
        assert all(answer.status in (200, 409) for answer in answers[:7]), answers
        value = world.db.value("SELECT string_agg(d ->> 'name', ',') FROM onceward.outbox, "
                               "json_array_elements(convert_from(value, 'UTF8')::json -> 'documents') d "
                               f"WHERE key = '{name}'")
        assert {one for one in (value or "").split(",") if one} == accepted, (value, accepted)


def submit_until_answered(producer, name):
    """Repeats the call as a caller would. Gives the receipt, and whether an answer before it left the outcome open."""
    was_open = False
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            answer = producer().post("/submissions", {"id": name, "type": "demo", "data": {"name": name}})
            if answer.status in (200, 201):
                return answer.json, was_open
            assert answer.status == 503, answer
            was_open = was_open or answer.code == "outcome_unknown"
        except (OSError, http.client.HTTPException):
            was_open = True
        time.sleep(0.02)
    raise AssertionError("no answer in 30 s")


def submit_under(world, producer, disturb, seconds):
    """16 callers submit new requests one after another while disturb() is called again and again."""
    results = []
    errors = []
    stop = threading.Event()

    def work():
        try:
            while not stop.is_set():
                name = new_id()
                results.append((name, *submit_until_answered(producer, name)))
        except Exception as error:
            errors.append(error)
    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        disturb()
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors and len(results) > 50, (errors, len(results))
    stored = dict(world.db.sql("SELECT key, string_agg(event_id::text, ' ') FROM onceward.outbox GROUP BY key"))
    for name, receipt, was_open in results:
        assert stored.get(name) == receipt["event_id"], (name, receipt, stored.get(name))
        assert receipt["queued"] or was_open, ("a duplicate whose first was never open", name, receipt)
    return results


@case("D2 D1", "with backends killed at random each accepted call has one event, and says rightly that it queued it")
def _(world):
    def disturb():
        time.sleep(0.03)
        world.db.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'onceward_producer' "
                     "AND datname = current_database() ORDER BY random() LIMIT 2")
    results = submit_under(world, lambda: world.producers[0], disturb, 4)
    queued = sum(1 for _, receipt, _ in results if receipt["queued"])
    print(f"      {len(results)} submits, {queued} queued by the call that was answered")


@case("D2 E3", "with the producer killed at random each accepted call has one event")
def _(world):
    place = [Producer(world.bin_dir, world.db.role())]

    def disturb():
        time.sleep(0.4)
        place[0].process.kill()
        place[0].process.wait()
        place[0] = Producer(world.bin_dir, world.db.role())
    results = submit_under(world, lambda: place[0], disturb, 4)
    print(f"      {len(results)} submits")
    place[0].stop()


main(World, unmake)
