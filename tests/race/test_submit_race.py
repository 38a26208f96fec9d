# SPDX-License-Identifier: Apache-2.0
"""One request, many submits at the same moment: one is queued, all others are duplicates, one event is written. The
same while connections are cut and the producer is killed."""
import http.client
import multiprocessing
import subprocess
import threading
import time

from producer_fixture import Database, Producer, case, in_parallel, main, new_id

ROUNDS = 8


class World:
    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        self.db = Database(bin_dir)
        self.producers = [Producer(bin_dir, self.db.role()) for _ in range(2)]


def unmake(world):
    for producer in world.producers:
        producer.stop()
    world.db.drop()


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


@case("A19", "8 threads submit one request through two producers")
def _(world):
    for _ in range(ROUNDS):
        name = world.producers[0].create()
        calls = [lambda index=index: submit(world.producers[index % 2], name) for index in range(8)]
        check_receipts(world, name, in_parallel(calls))


def submit_from_process(arguments):
    producer, name, barrier = arguments
    barrier.wait()
    try:
        return submit(producer, name)
    except Exception as error:
        return error


class Remote(Producer):
    """The same producer as another process sees it: an address."""

    def __init__(self, port):  # pylint: disable=super-init-not-called
        self.port = port


@case("A19", "8 processes submit one request through two producers")
def _(world):
    context = multiprocessing.get_context("fork")
    with context.Manager() as manager, context.Pool(8) as pool:
        for _ in range(ROUNDS):
            name = world.producers[0].create()
            barrier = manager.Barrier(8)
            work = [(Remote(world.producers[index % 2].port), name, barrier) for index in range(8)]
            check_receipts(world, name, pool.map(submit_from_process, work, chunksize=1))


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


@case("A19", "a twin that checks and then acts is caught by the same check")
def _(world):
    world.db.sql("""
        CREATE TABLE public.twin_submissions (request_id uuid, event_id uuid);
        CREATE FUNCTION public.twin_submit(name uuid) RETURNS text LANGUAGE plpgsql AS $$
        BEGIN
            IF EXISTS (SELECT FROM public.twin_submissions WHERE request_id = name) THEN
                RETURN 'duplicate';
            END IF;
            PERFORM pg_sleep(0.3);
            INSERT INTO public.twin_submissions VALUES (name, gen_random_uuid());
            RETURN 'queued';
        END $$""")
    name = new_id()
    sessions = [subprocess.Popen(["psql", "-X", "-q", "-At", "-d", world.db.admin, "-c",
                                  f"SELECT public.twin_submit('{name}')"], stdout=subprocess.PIPE, text=True)
                for _ in range(8)]
    statuses = [session.communicate()[0].strip() for session in sessions]
    count = int(world.db.value("SELECT count(*) FROM public.twin_submissions"))
    try:
        assert_once(statuses, count)
    except AssertionError:
        return
    raise AssertionError(f"the twin was not caught: {statuses}, {count} events")


main(World, unmake)
