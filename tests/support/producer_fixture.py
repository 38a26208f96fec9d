# SPDX-License-Identifier: Apache-2.0
"""What the tests of the running producer share: a database of their own, producers, a strict small client.

Needs ONCEWARD_TEST_DATABASE (the conninfo of a superuser) and psql. Python's standard library does the rest.
"""
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
import uuid

ADMIN = os.environ.get("ONCEWARD_TEST_DATABASE") or sys.exit("ONCEWARD_TEST_DATABASE is not set; tests/run sets it")
JSON_TYPE = {"Content-Type": "application/json"}


def conninfo(**changes):
    """The superuser's conninfo with some keywords changed."""
    words = dict(word.split("=", 1) for word in ADMIN.split())
    words.update(changes)
    return " ".join(f"{name}={value}" for name, value in words.items())


def run_sql(info, sql):
    """Runs SQL and gives the rows as lists of texts."""
    done = subprocess.run(["psql", "-X", "-q", "-At", "-F", "\x1f", "-v", "ON_ERROR_STOP=1", "-d", info, "-f", "-"],
                          input=sql, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{done.stderr}\n{sql}")
    return [line.split("\x1f") for line in done.stdout.splitlines()]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def new_id():
    return str(uuid.uuid4())


class Database:
    """A migrated database with one route: type "demo" to topic "demo"."""

    def __init__(self, bin_dir):
        self.name = f"producer_{os.getpid()}_{time.monotonic_ns()}"
        run_sql(ADMIN, f'CREATE DATABASE "{self.name}"')
        self.admin = conninfo(dbname=self.name)
        server = run_sql(ADMIN, "SELECT current_setting('server_version'), system_identifier FROM pg_control_system()")
        print(f"postgres: version {server[0][0]}, system identifier {server[0][1]}", flush=True)
        subprocess.run([f"{bin_dir}/onceward", "migrate", "--database", self.admin], check=True,
                       stdout=subprocess.DEVNULL, env={})
        self.sql("INSERT INTO onceward.topics (topic) VALUES ('demo');"
                 "INSERT INTO onceward.routes (type, topic) VALUES ('demo', 'demo')")

    def sql(self, text):
        return run_sql(self.admin, text)

    def value(self, text):
        rows = self.sql(text)
        return rows[0][0] if rows else None

    def count(self, table, where="true"):
        return int(self.value(f"SELECT count(*) FROM onceward.{table} WHERE {where}"))

    def role(self, **changes):
        return conninfo(**{"dbname": self.name, "user": "onceward_producer", **changes})

    def drop(self):
        run_sql(ADMIN, f'DROP DATABASE IF EXISTS "{self.name}" WITH (FORCE)')


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json.get("code") if self.status >= 400 else None

    def __repr__(self):
        return f"{self.status} {dict(self.headers)} {self.body[:500]!r}"


class Producer:
    """A running onceward-producer; `settings` are flags with underscores, `failpoints` as in base/failpoint.h."""

    def __init__(self, bin_dir, database, wait=True, failpoints="", port=None, **settings):
        self.port = port or free_port()
        flags = {"database": database, "listen": f"127.0.0.1:{self.port}", "relay_hints": "127.0.0.1:9",
                 "development": "on"}
        flags.update(settings)
        arguments = [f"{bin_dir}/onceward-producer"]
        arguments += [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
        environment = {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}
        environment["ONCEWARD_FAILPOINTS"] = failpoints
        self.process = subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, text=True)
        self.log = []
        threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True).start()
        until = time.monotonic() + 20
        while True:
            try:
                if self.get("/readyz" if wait else "/livez").status == 200:
                    return
            except OSError:
                pass
            if time.monotonic() > until or self.process.poll() is not None:
                raise RuntimeError("the producer did not start: " + "".join(self.log))
            time.sleep(0.02)

    def call(self, method, path, body=None, headers=None, timeout=30):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
                headers = {**JSON_TYPE, **(headers or {})}
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return check(Answer(answer.status, answer.headers, answer.read()), method, path)
        finally:
            connection.close()

    def get(self, path, **more):
        return self.call("GET", path, **more)

    def post(self, path, body=None, headers=None, **more):
        return self.call("POST", path, body, headers, **more)

    def put(self, path, body=None, headers=None):
        return self.call("PUT", path, body, headers)

    def create(self, data=None, type_name="demo"):
        answer = self.post("/requests", {"type": type_name, "data": data or {}})
        assert answer.status == 201, answer
        return answer.json["id"]

    def raw(self, data, wait=1.0):
        """Sends bytes and gives all that comes back until the peer closes or is silent, and whether it closed."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as connection:
            connection.sendall(data)
            text, was_closed = receive(connection, wait)
        check_raw(text)
        return text, was_closed

    def stop(self):
        self.process.terminate()
        code = self.process.wait(timeout=30)
        assert code == 0, f"the producer ended with {code}: " + "".join(self.log)


def receive(connection, wait):
    connection.settimeout(wait)
    text = b""
    try:
        while True:
            piece = connection.recv(65536)
            if not piece:
                return text, True
            text += piece
    except socket.timeout:
        return text, False
    except ConnectionError:
        return text, True


def check(answer, method, path):
    """The rules that every answer keeps."""
    if path == "/readyz" or path == "/livez":
        return answer
    if answer.status >= 300:
        assert answer.headers["Content-Type"] == "application/problem+json", answer
        if method != "HEAD":
            problem = answer.json
            for member in ("type", "title", "status", "detail", "instance", "code", "retry"):
                assert member in problem, (member, answer)
            assert problem["status"] == answer.status, answer
            assert set(problem["retry"]) == {"same_key", "new_key", "after_seconds"}, answer
            if answer.status == 503:
                assert int(answer.headers["Retry-After"]) >= 1 and problem["retry"]["same_key"], answer
    return answer


def check_raw(text):
    """The same rules for bytes as they came; a single answer."""
    head, _, body = text.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    if text.startswith(b"HTTP/1.1 ") and int(lines[0].split()[1]) >= 300:
        headers = http.client.HTTPMessage()
        for line in lines[1:]:
            headers.add_header(*line.split(": ", 1))
        check(Answer(int(lines[0].split()[1]), headers, body), "", "")


def expect(answer, status, code=None):
    assert answer.status == status, (f"expected {status}", answer)
    if code is not None:
        assert answer.code == code, (f"expected {code}", answer)
    return answer


class Session:
    """A session of psql that holds what its statements lock until it ends."""

    def __init__(self, info, sql):
        self.process = subprocess.Popen(["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", info],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(f"BEGIN; {sql}; SELECT 'ready';\n")
        self.process.stdin.flush()
        while self.process.stdout.readline().strip() != "ready":
            assert self.process.poll() is None, "the session ended"

    def ask(self, sql):
        """The one value of a query."""
        self.process.stdin.write(f"{sql};\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self, word="ROLLBACK"):
        self.process.communicate(f"{word};\n", timeout=30)
        assert self.process.returncode == 0


class Proxy:
    """Between a producer and Postgres. mode: "pass"; "cut_after" forwards COMMIT and cuts before its answer;
    "cut_before" cuts instead of forwarding it; "refuse" takes no connection. A cut falls back to `then`."""

    def __init__(self, host, port):
        self.target = (host, port)
        self.mode = "pass"
        self.then = "pass"
        self.cut_count = 0
        self.pairs = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.mode == "refuse":
                client.close()
                continue
            server = socket.create_connection(self.target)
            self.pairs.append((client, server))
            threading.Thread(target=self.forward, args=(client, server), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client), daemon=True).start()

    def cut(self, *sockets):
        self.cut_count += 1
        self.mode = self.then
        for one in sockets:
            close(one)

    def forward(self, client, server):
        try:
            while data := client.recv(65536):
                if b"COMMIT\0" in data and self.mode == "cut_before":
                    self.cut(client, server)
                    return
                if b"COMMIT\0" in data and self.mode == "cut_after":
                    self.cut(client)
                    server.sendall(data)
                    time.sleep(0.3)  # The server commits meanwhile; nobody hears of it.
                    close(server)
                    return
                server.sendall(data)
        except OSError:
            pass
        close(client)
        close(server)

    @staticmethod
    def pump(server, client):
        try:
            while data := server.recv(65536):
                client.sendall(data)
        except OSError:
            pass
        close(client)
        close(server)

    def cut_all(self, mode):
        self.mode = mode
        pairs, self.pairs = self.pairs, []
        for client, server in pairs:
            close(client)
            close(server)


def close(one):
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    one.close()


TESTS = []


def case(rows, sentence):
    """Registers a test. rows: the situations of docs/api.md that it shows, as in "A1 A2"."""
    def register(function):
        TESTS.append((rows, sentence, function))
        return function
    return register


def in_parallel(calls):
    """Runs all calls at once and gives their results in order."""
    results = [None] * len(calls)
    barrier = threading.Barrier(len(calls))

    def run(index):
        barrier.wait()
        try:
            results[index] = calls[index]()
        except Exception as error:  # Shown by whoever looks at the results.
            results[index] = error
    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def main(make, unmake):
    """Runs all registered tests (or those whose sentence has the first argument's text in it) and exits."""
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    failures = 0
    world = make(sys.argv[1])
    try:
        for rows, sentence, function in TESTS:
            if wanted not in f"{rows} {sentence}":
                continue
            begun = time.monotonic()
            try:
                function(world)
                print(f"ok    {rows:12} {sentence} ({time.monotonic() - begun:.2f} s)", flush=True)
            except Exception as error:
                failures += 1
                import traceback
                traceback.print_exc()
                print(f"FAIL  {rows:12} {sentence}: {error}", flush=True)
    finally:
        unmake(world)
    print(f"{len(TESTS)} tests, {failures} failed")
    sys.exit(1 if failures else 0)
