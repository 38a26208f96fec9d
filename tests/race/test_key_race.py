# SPDX-License-Identifier: Apache-2.0
"""Many equal calls under one key at the same moment, through two producers: one effect, and every answer is the same
bytes. A twin that looks a key up and then acts must be caught by the same check. A rival process that is frozen with
locks in its hand holds up nobody but its own keys."""
import http.client
import json
import signal
import threading
import time

from producer_fixture import Database, Producer, Session, case, expect, in_parallel, main, run_sql

KEYS = 200
CALLERS = 50
RIVALS = 8
RUNS = 10
CAUGHT_MIN = 9
WAIT = 60
GATE = 4711

# Both wait at a gate, so that all have begun before any goes on. The switch is is_two_steps.
TWIN = f"""
    CREATE TABLE public.twin_keys (key text, body text);
    CREATE UNIQUE INDEX twin_keys_by_key ON public.twin_keys (key) WHERE key LIKE 'one-step%';
    CREATE TABLE public.twin_effects (key text);
    CREATE FUNCTION public.twin_call(name text, is_two_steps boolean) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
        answer text := gen_random_uuid();
    BEGIN
        PERFORM pg_advisory_xact_lock_shared({GATE});
        IF is_two_steps THEN
            IF EXISTS (SELECT FROM public.twin_keys WHERE key = name) THEN
                RETURN (SELECT min(body) FROM public.twin_keys WHERE key = name);
            END IF;
            PERFORM pg_sleep(0.1);
            INSERT INTO public.twin_keys VALUES (name, answer);
        ELSE
            INSERT INTO public.twin_keys VALUES (name, answer) ON CONFLICT DO NOTHING;
            IF NOT FOUND THEN
                RETURN (SELECT body FROM public.twin_keys WHERE key = name);
            END IF;
        END IF;
        INSERT INTO public.twin_effects VALUES (name);
        RETURN answer;
    END $$"""


class World:
    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        self.db = Database(bin_dir)
        self.db.sql(TWIN)
        self.producers = [Producer(bin_dir, self.db.role()) for _ in range(2)]


def unmake(world):
    for producer in world.producers:
        producer.stop()
    world.db.drop()


def assert_once(bodies, effect_count):
    """The check that both the real thing and its twin are put to."""
    assert len(set(bodies)) == 1, set(bodies)
    assert effect_count == 1, effect_count


def keyed(key):
    return {"Idempotency-Key": key}


class Caller:
    """One connection that is kept."""

    def __init__(self, producer):
        self.connection = http.client.HTTPConnection("127.0.0.1", producer.port, timeout=WAIT)

    def post(self, path, body, key):
        self.connection.request("POST", path, body, {"Content-Type": "application/json", "Idempotency-Key": key})
        answer = self.connection.getresponse()
        return answer.status, answer.headers["Idempotent-Replayed"], answer.read()


@case("F2 F5 F19", f"{CALLERS} equal calls at once for each of {KEYS} keys: {KEYS} effects, {CALLERS} equal answers each")
def _(world):
    barrier = threading.Barrier(CALLERS)
    results = [[None] * CALLERS for _ in range(KEYS)]

    def run(index):
        caller = Caller(world.producers[index % 2])
        for number in range(KEYS):
            body = f'{{"type":"demo","data":{{"number":{number}}}}}'
            barrier.wait(WAIT)
            results[number][index] = caller.post("/submissions", body, f"race-{number}")
    begun = time.monotonic()
    for outcome in in_parallel([lambda index=index: run(index) for index in range(CALLERS)]):
        assert outcome is None, outcome
    print(f"      {KEYS * CALLERS} calls in {time.monotonic() - begun:.1f} s")
    effects = dict(world.db.sql("SELECT convert_from(value, 'UTF8')::json -> 'data' ->> 'number', count(*) "
                                "FROM onceward.outbox GROUP BY 1"))
    for number, answers in enumerate(results):
        assert {status for status, _, _ in answers} == {201}, answers
        assert_once([body for _, _, body in answers], int(effects.get(str(number), 0)))
        assert sorted(replayed for _, replayed, _ in answers) == ["false"] + ["true"] * (CALLERS - 1), answers
    assert world.db.count("outbox") == world.db.count("submissions") == world.db.count("idempotency_keys") == KEYS


@case("F3 F6", "of different calls under one key at once one takes effect, and every other is told that it is another")
def _(world):
    for number in range(20):
        before = world.db.count("outbox")
        answers = in_parallel([lambda index=index: world.producers[index % 2].post(
            "/submissions", {"type": "demo", "data": {"number": index}}, keyed(f"different-{number}"))
            for index in range(RIVALS)])
        assert sorted(answer.status for answer in answers) == [201] + [422] * (RIVALS - 1), answers
        for answer in answers:
            if answer.status == 422:
                expect(answer, 422, "idempotency_key_reused")
                assert answer.json["differs"] == ["body"] and answer.json["members"] == ["/data"], answer
        assert world.db.count("outbox") == before + 1


class Gate:
    """Held until all rivals wait at it."""

    def __init__(self, world):
        self.session = Session(world.db.admin, f"SELECT pg_advisory_xact_lock({GATE})")

    def open(self):
        until = time.monotonic() + WAIT
        while int(self.session.ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "
                                   f"AND objid = {GATE} AND database = (SELECT oid FROM pg_database "
                                   "WHERE datname = current_database())")) < RIVALS:
            assert time.monotonic() < until, "not all came to the gate"
            time.sleep(0.02)
        self.session.end()


def call_twin(world, key, is_two_steps):
    return run_sql(world.db.admin, f"SELECT public.twin_call('{key}', {is_two_steps})")[0][0]


def check_twin(world, key, answers):
    for answer in answers:
        assert not isinstance(answer, Exception), answer
    assert_once(answers, int(world.db.value(f"SELECT count(*) FROM public.twin_effects WHERE key = '{key}'")))


def race_twin(world, key, is_two_steps):
    gate = Gate(world)
    calls = [lambda: call_twin(world, key, is_two_steps)] * RIVALS
    check_twin(world, key, in_parallel(calls + [gate.open])[:RIVALS])


@case("F5", "a twin that looks its key up and then acts is caught, one that inserts first is not")
def _(world):
    for is_two_steps in (False, True):
        for number in range(3):
            key = f"{'two' if is_two_steps else 'one'}-step-alone-{number}"
            check_twin(world, key, [call_twin(world, key, is_two_steps) for _ in range(3)])
    caught = 0
    for number in range(3):
        race_twin(world, f"one-step-{number}", False)
    for number in range(RUNS):
        try:
            race_twin(world, f"two-step-{number}", True)
        except AssertionError:
            caught += 1
    print(f"      caught in {caught} of {RUNS} runs")
    assert caught >= CAUGHT_MIN, caught


@case("F5 D8", "a rival process that is frozen with locks in its hand holds up nobody but its own keys")
def _(world):
    names = [world.producers[0].create() for _ in range(4)]
    mine = Producer(world.bin_dir, world.db.role(), key_wait_ms="1000")
    rival = Producer(world.bin_dir, world.db.role(), failpoints="producer.before_commit=pause:60000@1", batchers="1")

    def through_rival(index):
        try:
            rival.post(f"/requests/{names[index]}/submit", None, keyed(f"frozen-{index}"), timeout=1)
        except (OSError, http.client.HTTPException):
            pass
    in_parallel([lambda index=index: through_rival(index) for index in range(len(names))])
    rival.process.send_signal(signal.SIGSTOP)
    held = [index for index in range(len(names))
            if world.producers[0].get(f"/idempotency-keys/frozen-{index}").status == 200]
    assert held, "the rival holds no key"
    slowest = [0.0]

    def neighbour(number):
        begun = time.monotonic()
        expect(mine.post("/submissions", {"type": "demo"}, keyed(f"neighbour-{number}")), 201)
        slowest[0] = max(slowest[0], time.monotonic() - begun)

    def neighbours(first):
        for number in range(first, first + 25):
            neighbour(number)
    answers = in_parallel([lambda index=index: mine.post(f"/requests/{names[index]}/submit", None,
                                                         keyed(f"frozen-{index}")) for index in held] +
                          [lambda first=first: neighbours(first) for first in (0, 25, 50, 75)])
    for answer in answers[:len(held)]:
        expect(answer, 409, "idempotency_in_progress")
    assert answers[len(held):] == [None] * 4, answers
    print(f"      {len(held)} keys held; the slowest of 100 neighbours took {slowest[0] * 1000:.0f} ms")
    assert slowest[0] < 1, slowest
    rival.process.send_signal(signal.SIGKILL)
    rival.process.wait()
    until = time.monotonic() + WAIT
    for index in range(len(names)):
        while (answer := mine.post(f"/requests/{names[index]}/submit", None, keyed(f"frozen-{index}"))).status != 200:
            expect(answer, 409, "idempotency_in_progress")
            assert time.monotonic() < until
        assert answer.json["queued"] is True and world.db.count("outbox", f"key = '{names[index]}'") == 1, answer
    mine.stop()


@case("F2", "equal calls that are written differently are one call at the same moment too")
def _(world):
    for number in range(10):
        spellings = [json.dumps({"type": "demo", "data": {"a": 1, "n": number}}),
                     json.dumps({"data": {"n": number, "a": 1}, "type": "demo"}),
                     f' {{"type":"d\\u0065mo","data":{{"a":1.0,"n":{number}e0}}}}']
        answers = in_parallel([lambda index=index: Caller(world.producers[index % 2]).post(
            "/submissions", spellings[index % 3], f"spelling-{number}") for index in range(12)])
        assert len({answer[2] for answer in answers}) == 1 and answers[0][0] == 201, answers


main(World, unmake)
