# SPDX-License-Identifier: Apache-2.0
"""Runs the contract tester against a producer: with the description that it serves, and with descriptions in each of
which one thing is not true, which it must find."""
import pathlib
import re
import subprocess
import sys
import tempfile

from producer_fixture import Database, Producer

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DESCRIPTION = ROOT / "schema/openapi.yaml"

# What is spoiled, and by which text for which.
SEED = "20261130"
SPOILED = {
    "a member that no answer has": ("required: [id, queued, status, event_id, submitted_at]",
                                    "required: [id, queued, status, event_id, submitted_at, colour]"),
    "a status that is not answered": ('        "201":\n          description: Created and submitted.',
                                      '        "202":\n          description: Created and submitted.'),
    "a member that is not taken": ("        type: {$ref: \"#/components/schemas/Type\"}\n        data:",
                                   "        type: {$ref: \"#/components/schemas/Type\"}\n        colour: {type: string}\n"
                                   "        data:"),
    "a code that is missing": ("        - request_not_found\n", ""),
}


def run(url, *options):
    done = subprocess.run([HERE / "run", url, *options], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_served_as_it_is(producer):
    answer = producer.get("/openapi.yaml")
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/yaml", answer
    assert answer.body == DESCRIPTION.read_bytes(), "the program serves another description than the file"


def test_every_route_and_code_is_described(producer):
    text = DESCRIPTION.read_text(encoding="utf-8")
    described, path = set(), None
    for line in text[text.index("\npaths:"):text.index("\ncomponents:")].splitlines():
        if found := re.fullmatch(r"  (/\S*):", line):
            path = found[1]
        elif found := re.fullmatch(r"    (get|put|post|delete|patch):", line):
            described.add(f"{found[1].upper()} {path}")
    routes = set(producer.get("/").json["routes"])
    assert described == routes, described ^ routes
    codes = set(re.findall(r"^        - ([a-z_]+)$", text[text.index("    ProblemCode:"):], re.MULTILINE))
    tables = set()
    for source in ("lib/http/http_problem.c", "producer/producer_problem.c"):
        tables |= set(re.findall(r'"([a-z_]+)", [45]\d\d,', (ROOT / source).read_text(encoding="utf-8")))
    assert codes == tables, codes ^ tables


def test_answers_are_as_described(url):
    """The same cases each time; tests/contract/run without --seed takes others."""
    code, output = run(url, "--seed", SEED)
    print(output[output.find("= SUMMARY ="):])
    assert code == 0, output


def test_lies_are_found(url):
    text = DESCRIPTION.read_text(encoding="utf-8")
    for name, (old, new) in SPOILED.items():
        assert text.count(old) >= 1, f"{name}: the description has changed, spoil it in another way"
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as spoiled:
            spoiled.write(text.replace(old, new, 1))
            spoiled.flush()
            code, output = run(url, "--schema", spoiled.name, "--quick")
        assert code == 1 and "❌ ST" in output, f"not found: {name}\n{output}"
        print(f"found: {name}")


def main():
    bin_dir = sys.argv[1]
    database = Database(bin_dir)
    database.sql("INSERT INTO onceward.routes (type, topic) VALUES ('example.submitted', 'demo')")
    producer = Producer(bin_dir, database.role(), event_wait_max_s=1)
    url = f"http://127.0.0.1:{producer.port}"
    try:
        test_served_as_it_is(producer)
        test_every_route_and_code_is_described(producer)
        test_answers_are_as_described(url)
        test_lies_are_found(url)
    finally:
        producer.stop()
    database.drop()
    print("4 passed, 0 failed")


main()
