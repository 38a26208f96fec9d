# SPDX-License-Identifier: Apache-2.0
"""A Postgres and a Kafka of their own, databases and topics on them, and the programs."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "release" / "bin"
LOCAL = ROOT / "deploy" / "local"
TYPE = "example.submitted"
PARTITIONS = 6
# So that no checkpoint falls into one round and not into the next by chance.
POSTGRES_SETTINGS = ("max_wal_size=8GB", "checkpoint_timeout=30min", "shared_buffers=1GB")
KAFKA_SETTINGS = ("log.segment.delete.delay.ms=1000", "log.retention.check.interval.ms=5000")
TICKS = os.sysconf("SC_CLK_TCK")


class BenchError(Exception):
    """Something that is no measurement went wrong."""


def run(*command, **options):
    """Runs a command to its end and gives what it printed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise BenchError(f"{command[0]} ended with {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def tool(name, *arguments):
    """Runs one of the measuring programs; it prints one JSON object."""
    return json.loads(run(BIN / name, *arguments))


def build(log):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ONCEWARD_")}
    with open(log, "w", encoding="utf-8") as out:
        for command in (["cmake", "--preset", "release"], ["cmake", "--build", "--preset", "release"]):
            if subprocess.run(command, cwd=ROOT, stdout=out, stderr=out, check=False, env=environment).returncode != 0:
                raise BenchError(f"the release preset does not build; see {log}")


def free_ports(first, count):
    found = []
    port = first
    while len(found) < count:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                found.append(port)
        port += 1
    return found


class Services:
    """Lives in a folder that is removed at the end."""

    def __init__(self, first_port):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="onceward-bench."))
        self.folder.chmod(0o755)
        self.ports = free_ports(first_port, 12)
        self.programs = []
        self.kafka = f"127.0.0.1:{self.ports[1]}"

    def __enter__(self):
        state = ("--state", self.folder / "state")
        kafka = subprocess.Popen([str(word) for word in (
            LOCAL / "kafka", "start", *state, "--port", self.ports[1], "--controller-port", self.ports[2],
            *(word for setting in KAFKA_SETTINGS for word in ("--set", setting)))], stdout=subprocess.DEVNULL)
        try:
            (self.folder / "state").mkdir(exist_ok=True)
            run(LOCAL / "postgres", "start", *state, "--port", self.ports[0], "--durable",
                *(word for setting in POSTGRES_SETTINGS for word in ("--set", setting)))
            if kafka.wait(120) != 0:
                raise BenchError("Kafka did not start")
        except BaseException:
            kafka.wait(120)
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind, value, trace):
        self.kill_programs()
        for service in ("kafka", "postgres"):
            words = [str(LOCAL / service), "stop", "--state", str(self.folder / "state")]
            subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if kind is None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def kill_programs(self):
        for program in list(self.programs):
            program.kill()

    def conninfo(self, database="postgres", user="postgres"):
        return f"host=127.0.0.1 port={self.ports[0]} user={user} dbname={database}"

    def versions(self):
        postgres = Database(self, "postgres").value("SHOW server_version")
        kafka = run(LOCAL / "kafka", "status", "--state", self.folder / "state").splitlines()[-1]
        return {"postgres": postgres.split()[0], "kafka": kafka.split(",")[0].removeprefix("version "),
                "postgres_settings": ["fsync=on", "synchronous_commit=on", *POSTGRES_SETTINGS]}

    def make_database(self, name):
        """With a topic of its own: one that is made anew under an old name can lose what is sent meanwhile."""
        run("psql", "-Xq", "-d", self.conninfo(), "-c", f"CREATE DATABASE {name}")
        database = Database(self, name)
        run(BIN / "onceward", "migrate", "--database", database.conninfo())
        self.make_topic(database.topic)
        database.run(f"""INSERT INTO onceward.topics (topic) VALUES ('{database.topic}');
            INSERT INTO onceward.routes (type, topic) VALUES ('{TYPE}', '{database.topic}');
            CREATE TABLE effects (n bigint GENERATED ALWAYS AS IDENTITY UNIQUE, id text PRIMARY KEY, seq bigint, name text);
            GRANT SELECT, INSERT, UPDATE ON effects TO onceward_consumer""")
        return database

    def make_topic(self, topic):
        run(BIN / "bench_kafka", self.kafka, "make", topic, PARTITIONS)


class Database:
    def __init__(self, services, name):
        self.services = services
        self.name = name
        self.topic = f"bench.{name}"

    def conninfo(self, user="postgres"):
        return self.services.conninfo(self.name, user)

    def run(self, sql):
        return run("psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", self.conninfo(), "-c", sql)

    def value(self, sql):
        return self.run(sql).strip()

    def drop(self):
        run("psql", "-Xq", "-d", self.services.conninfo(), "-c", f"DROP DATABASE {self.name} WITH (FORCE)")
        run(BIN / "bench_kafka", self.services.kafka, "drop", self.topic)


def await_value(database, query, least, program, patience=900):
    """Until the query gives so much; what is awaited is the program's work."""
    deadline = time.monotonic() + patience
    while int(database.value(query)) < least:
        if time.monotonic() > deadline:
            program.fail(f"has not come to {least} within {patience} s")
        time.sleep(0.2 if least < 1000000 else 1)


class Program:
    """One of the programs, from its start until it is stopped."""

    PORTS = {"producer": 3, "relay": 4, "consumer": 5}
    BINARIES = {"producer": "onceward-producer", "relay": "outbox-relay", "consumer": "onceward-consumer"}

    def __init__(self, services, program, **settings):
        self.services = services
        self.name = program
        self.port = services.ports[self.PORTS[program]]
        words = [str(BIN / self.BINARIES[program]), "--listen", f"127.0.0.1:{self.port}"]
        for setting, value in settings.items():
            words.append(f"--{setting.replace('_', '-')}={value}")
        self.log_path = services.folder / f"{program}.log"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ONCEWARD_")}
        with open(self.log_path, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log, env=environment)
        services.programs.append(self)
        self.await_ready()

    def fail(self, text):
        raise BenchError(f"{self.name} {text}:\n" + "".join(self.log_path.open(encoding="utf-8").readlines()[-20:]))

    def await_ready(self, seconds=60):
        deadline = time.monotonic() + seconds
        while True:
            if self.process.poll() is not None:
                self.fail(f"ended with {self.process.returncode}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                pass
            if time.monotonic() > deadline:
                self.fail("is not ready")
            time.sleep(0.02)

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def peak_mb(self):
        """The most memory that was ever resident."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise BenchError(f"{self.name} tells no VmHWM")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            self.fail("does not end")
        self.services.programs.remove(self)
        if code != 0:
            self.fail(f"ended with {code}")

    def kill(self):
        if self in self.services.programs:
            self.services.programs.remove(self)
        self.process.kill()
        self.process.wait()


def start_producer(database, **settings):
    services = database.services
    return Program(services, "producer", database=database.conninfo("onceward_producer"),
                   development="on", relay_hints=f"127.0.0.1:{services.ports[6]}", **settings)


def start_relay(database, **settings):
    services = database.services
    return Program(services, "relay", database=database.conninfo("onceward_relay"), kafka=services.kafka,
                   hint_listen=f"127.0.0.1:{services.ports[6]}", name="bench", **settings)


def start_consumer(database, consumer, **settings):
    return Program(database.services, "consumer", database=database.conninfo("onceward_consumer"),
                   kafka=database.services.kafka, consumer=consumer, topics=database.topic, sink_table="effects", sink_key="id",
                   sink_columns="id=ce_id,seq=ce_sequence,name=/data/name", **settings)
