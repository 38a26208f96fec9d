# SPDX-License-Identifier: Apache-2.0
"""One system on the run's services: a database, topics, two producers, two relays, two consumers, and the proxies between."""

import json
import os
import socket
import subprocess
import threading
import time

import psql
from kill_programs import Program, Sampler, bound
from kill_services import ROOT, free_ports

HERE = os.path.dirname(os.path.abspath(__file__))
ROLES = {"producer": "onceward_producer", "relay": "onceward_relay", "consumer": "onceward_consumer"}
READY_S = 120
PARTITIONS = 6
SCHEMA = "onceward_kill"  # The schema of what the harness itself keeps.


class DatabaseProxy:
    """database_proxy.py as a process: what it cut, as it says it."""

    def __init__(self, port, server):
        self.port = port
        self.events = []
        command = ["python3", "-B", os.path.join(HERE, "database_proxy.py"), "--listen", str(port), "--server", server]
        self._process = subprocess.Popen(bound(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if json.loads(self._process.stdout.readline())["event"] != "ready":
            raise RuntimeError("the database proxy did not start")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def cut(self, user, statement, way):
        self._process.stdin.write(json.dumps({"user": user, "statement": statement, "way": way}) + "\n")
        self._process.stdin.flush()

    def stop(self):
        self._process.terminate()
        self._process.wait()
        self._reader.join()

    def _read(self):
        for line in self._process.stdout:
            self.events.append(json.loads(line))


class AckProxy:
    """tests/support/ack_proxy as a process: swallows acknowledgements when told."""

    COMMAND = os.path.join(ROOT, "tests", "support", "ack_proxy")

    def __init__(self, services):
        self._control = os.path.join(services.state, "ack_proxy.socket")
        self._log = open(os.path.join(services.state, "ack_proxy.log"), "ab")
        command = [self.COMMAND, "--listen", ",".join(map(str, services.proxied_ports)),
                   "--upstream", ",".join(services.proxied_brokers), "--control", self._control]
        self._process = subprocess.Popen(bound(command), stdout=self._log, stderr=self._log)
        retry(lambda: self.send("status"), OSError, READY_S)

    def send(self, order):
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(self._control)
            control.sendall(f"{order}\n".encode())
            return json.loads(control.makefile().readline())

    def stop(self):
        self._process.terminate()
        self._process.wait()
        self._log.close()


class System:
    """bin_dir: where the programs are. is_naive: the twins run where relay and consumer would."""

    def __init__(self, services, bin_dir, folder, is_naive):
        self.services = services
        self.folder = folder
        self.is_naive = is_naive
        self.name = f"kill_{'naive' if is_naive else 'true'}_{os.getpid()}"
        self.topic = f"example.submissions.{self.name}"
        self.refill_topic = f"refilled.{self.name}"
        self.owner = services.conninfo(self.name)
        self.mark = services.mark()
        self._bin = os.path.abspath(bin_dir)
        self._proxy = DatabaseProxy(free_ports(1), f"127.0.0.1:{services.postgres_port}")
        self.programs = []
        self.refilled = None
        self.cut = self._proxy.cut
        self.writer = f"{services.conninfo(self.name, 'onceward_load')} port={self._proxy.port}"
        os.makedirs(folder, exist_ok=True)

    def prepare(self):
        psql.run(self.services.conninfo(), f"CREATE DATABASE {self.name};")
        self._onceward("migrate")
        for path in ("schema/example/submissions.sql", *(["tests/load/naive.sql"] if self.is_naive else [])):
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                psql.run(self.owner, file.read())
        psql.run(self.owner, f"CREATE SCHEMA {SCHEMA};"
                 "DO $$ BEGIN CREATE ROLE onceward_load SUPERUSER LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;")
        self._onceward("topic", "add", self.topic, "--partitions", str(PARTITIONS))
        self._onceward("route", "add", "example.submitted", self.topic)

    def start(self):
        for kind, count in (("relay", 1 if self.is_naive else 2), ("consumer", 2), ("producer", 2)):
            for number in range(1, count + 1):
                self._add(kind, number)
        for program in self.programs:
            program.start()
        for program in self.programs:
            program.await_ready(READY_S)
        self._sampler = Sampler(self.programs)
        self._sampler.start()

    def stop(self):
        """Asks every program to end."""
        self._sampler.stop()
        for program in self.programs + ([self.refilled] if self.refilled else []):
            program.stop()

    def close(self):
        self._proxy.stop()

    def of_kind(self, kind):
        return [program for program in self.programs if program.kind == kind]

    @property
    def urls(self):
        return [f"http://127.0.0.1:{program.port}" for program in self.of_kind("producer")]

    @property
    def consumer(self):
        return self.name

    @property
    def cuts(self):
        return [event for event in self._proxy.events if event["event"] == "cut"]

    def add_refilled(self):
        """A consumer of its own for the topic that is deleted and filled again; nobody kills it."""
        sql = (f"CREATE TABLE IF NOT EXISTS {SCHEMA}.refilled (event_id text, value bytea);"
               f"GRANT USAGE ON SCHEMA {SCHEMA} TO onceward_consumer; GRANT SELECT, INSERT ON {SCHEMA}.refilled TO onceward_consumer;")
        retry(lambda: psql.run(self.owner, sql), psql.PsqlError)
        retry(lambda: self.add_topic(self.refill_topic, 1), RuntimeError)
        settings = self._connections("consumer") + [
            f"consumer = {self.name}.refilled", f"topics = {self.refill_topic}", "name = refilled", "checkpoint_ms = 1000",
            f"sink_table = {SCHEMA}.refilled", "sink_columns = event_id=ce_id, value=value"]
        self.refilled = self._program("consumer", "refilled", "onceward-consumer", settings)
        self.refilled.start()
        self.refilled.await_ready(READY_S)

    def add_topic(self, topic, partitions):
        self._onceward("topic", "add", topic, "--partitions", str(partitions))

    def _onceward(self, *arguments):
        environment = {"PATH": os.environ["PATH"], "ONCEWARD_DATABASE": self.owner, "ONCEWARD_KAFKA": self.services.bootstrap}
        done = subprocess.run([os.path.join(self._bin, "onceward"), *arguments], env=environment, capture_output=True, text=True,
                              check=False)
        if done.returncode not in (0, 3):
            raise RuntimeError(f"onceward {' '.join(arguments)}: {done.stdout}{done.stderr}")

    def _connections(self, kind):
        kafka = {"producer": [], "relay": [f"kafka = {self.services.proxied_bootstrap}"],
                 "consumer": [f"kafka = {self.services.bootstrap}"]}[kind]
        return [f"database = {self.services.conninfo(self.name, ROLES[kind])} port={self._proxy.port}"] + kafka

    def _add(self, kind, number):
        settings = self._connections(kind)
        binary = {"producer": "onceward-producer", "relay": "outbox-relay", "consumer": "onceward-consumer"}[kind]
        if kind == "producer":
            settings.append("development = on")
            settings.append("relay_hints = " + ", ".join(f"127.0.0.1:{relay.port + 1}" for relay in self.of_kind("relay")))
        elif kind == "relay":
            settings.append(f"name = relay-{number}")
        else:
            with open(os.path.join(ROOT, "schema", "example", "sink.sql"), encoding="utf-8") as file:
                sink = " ".join(file.read().split("\n"))
            settings += [f"name = consumer-{number}", f"consumer = {self.consumer}", f"topics = {self.topic}", f"sink_sql = {sink}"]
        if self.is_naive and kind != "producer":
            binary = f"naive-{kind}"
        self.programs.append(self._program(kind, f"{kind}-{number}", binary, settings))

    def _program(self, kind, name, binary, settings):
        port = free_ports(2)
        settings = [*settings, f"listen = 127.0.0.1:{port}"] + ([f"hint_listen = 127.0.0.1:{port + 1}"] if kind == "relay" else [])
        config = os.path.join(self.folder, f"{name}.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write("\n".join(settings) + "\n")
        command = bound([os.path.join(self._bin, binary), "--config", config])
        return Program(kind, name, command, port, os.path.join(self.folder, f"{name}.log"))


def retry(action, errors, seconds=300):
    """What needs the database while it is being restarted."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return action()
        except errors:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.5)
