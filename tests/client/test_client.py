# SPDX-License-Identifier: Apache-2.0
"""The C client's promise: however often a call has to be sent, there is one submission, and its caller learns of it."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading

from producer_fixture import Database, Producer, close, new_id

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class LossyWire:
    """Between a client and a producer: of the first `lost` connections the answer is thrown away, after it was given."""

    def __init__(self, port, lost):
        self.target = port
        self.lost = lost
        self.count = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.count += 1
            threading.Thread(target=self.serve, args=(client, self.count <= self.lost), daemon=True).start()

    def serve(self, client, is_lost):
        with socket.create_connection(("127.0.0.1", self.target)) as server:
            try:
                while data := client.recv(65536):
                    server.sendall(data)
                    answer = server.recv(65536)
                    if is_lost:
                        break
                    client.sendall(answer)
            except OSError:
                pass
        close(client)


def submit(bin_dir, url, key, data="-", type_name="demo", deadline_ms=20000):
    done = subprocess.run([f"{bin_dir}/client_probe", url, key, type_name, data, str(deadline_ms)], capture_output=True,
                          text=True, check=False)
    assert done.returncode in (0, 1), done
    return json.loads(done.stdout)


def count_requests(database):
    return database.count("submissions")


def test_answers_lost(bin_dir, database, producer):
    wire = LossyWire(producer.port, lost=3)
    before = count_requests(database)
    answer = submit(bin_dir, f"http://127.0.0.1:{wire.port}", new_id(), '{"n": 1}')
    assert answer["good"] and answer["tries"] == 4 and answer["replayed"], answer
    assert answer["queued"], f"the bytes of the first answer are replayed: {answer}"
    assert count_requests(database) == before + 1, "a lost answer made another submission"
    # The broken variant has no key: it makes as many submissions as it had to try.
    wire = LossyWire(producer.port, lost=3)
    answer = submit(bin_dir, f"http://127.0.0.1:{wire.port}", "-", '{"n": 2}')
    assert answer["good"] and answer["tries"] == 4, answer
    assert count_requests(database) == before + 5, "the wire lost nothing, so this test shows nothing"


def test_same_key_again(bin_dir, database, producer):
    key, url = new_id(), f"http://127.0.0.1:{producer.port}"
    first = submit(bin_dir, url, key, '{"n": 3}')
    again = submit(bin_dir, url, key, '{"n":3}')
    assert first["good"] and not first["replayed"] and again["replayed"], (first, again)
    assert (first["id"], first["event_id"]) == (again["id"], again["event_id"]), (first, again)
    other = submit(bin_dir, url, key, '{"n": 4}')
    assert not other["good"] and other["code"] == "idempotency_key_reused" and other["tries"] == 1, other
    assert database.count("submissions", f"event_id = '{first['event_id']}'") == 1


def test_refusals_are_not_repeated(bin_dir, producer):
    url = f"http://127.0.0.1:{producer.port}"
    for data, type_name, code in (("{}", "nobody", "type_unknown"), ("{", "demo", "body_invalid")):
        answer = submit(bin_dir, url, new_id(), data, type_name)
        assert not answer["good"] and answer["code"] == code and answer["tries"] == 1, answer


def test_producer_away(bin_dir, database, producer):
    url, answers = f"http://127.0.0.1:{producer.port}", []
    producer.stop()
    caller = threading.Thread(target=lambda: answers.append(submit(bin_dir, url, new_id())))
    caller.start()
    again = None
    try:
        caller.join(1)
        assert not answers, answers
        again = Producer(bin_dir, database.role(), port=producer.port, wait=False)
    finally:
        caller.join()
    assert answers[0]["good"] and answers[0]["tries"] > 1, answers
    return again


def test_installed(build_dir):
    """What is installed is enough to build a program with, by pkg-config alone."""
    with tempfile.TemporaryDirectory() as prefix:
        subprocess.run(["cmake", "--install", build_dir, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        found = list(pathlib.Path(prefix).rglob("onceward-client.pc"))
        assert len(found) == 1, found
        environment = {**os.environ, "PKG_CONFIG_PATH": str(found[0].parent)}
        words = ["--define-prefix", "--cflags", "--libs", "onceward-client"]
        flags = subprocess.run(["pkg-config", *words], env=environment, check=True, capture_output=True, text=True)
        source = pathlib.Path(prefix) / "program.c"
        source.write_text('#include <onceward/client.h>\nint main(void) { char key[ONCEWARD_KEY_SIZE]; '
                          "onceward_key_new(key); return key[36]; }\n", encoding="utf-8")
        sanitizer = ["-fsanitize=address,undefined"] if "asan" in str(build_dir) else []
        subprocess.run(["cc", *sanitizer, "-o", f"{prefix}/program", str(source), *flags.stdout.split()], check=True)
        library = [word[2:] for word in flags.stdout.split() if word.startswith("-L")]
        subprocess.run([f"{prefix}/program"], env={**os.environ, "LD_LIBRARY_PATH": ":".join(library)}, check=True)


def main():
    bin_dir = pathlib.Path(sys.argv[1])
    database = Database(bin_dir)
    producer = Producer(bin_dir, database.role())
    test_same_key_again(bin_dir, database, producer)
    test_answers_lost(bin_dir, database, producer)
    test_refusals_are_not_repeated(bin_dir, producer)
    producer = test_producer_away(bin_dir, database, producer)
    producer.stop()
    database.drop()
    test_installed(bin_dir.parent)
    print("5 passed, 0 failed")


main()
