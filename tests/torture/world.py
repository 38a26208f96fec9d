# SPDX-License-Identifier: Apache-2.0
"""What a torture runs on: a database and a topic of its own, psql and kcat to look at both."""

import itertools
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading

ADMIN = os.environ.get("ONCEWARD_TEST_DATABASE", "")
KAFKA = os.environ.get("ONCEWARD_TEST_KAFKA", "")
END = "-- end of the answer --"

_numbers = itertools.count()


def conninfo(database, user=None):
    """The later keyword wins (libpq)."""
    return f"{ADMIN} dbname={database}" + (f" user={user}" if user else "")


def free_port():
    """Free for TCP and for UDP."""
    while True:
        with socket.socket() as listener, socket.socket(type=socket.SOCK_DGRAM) as receiver:
            listener.bind(("127.0.0.1", 0))
            try:
                receiver.bind(listener.getsockname())
                return listener.getsockname()[1]
            except OSError:
                continue


class SqlError(Exception):
    """Postgres refused a statement."""


class Sql:
    """A psql that stays: an answer costs no start of a process."""

    def __init__(self, database):
        self._psql = subprocess.Popen(["psql", "-X", "-q", "-At", "-F", "\x1f", "-d", conninfo(database)], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=1)

    def rows(self, sql):
        self._psql.stdin.write(f"{sql};\n\\echo {END}\n")
        self._psql.stdin.flush()
        lines = []
        for line in self._psql.stdout:
            if line == f"{END}\n":
                break
            lines.append(line.rstrip("\n"))
        if any(line.startswith(("ERROR:", "FATAL:")) for line in lines):
            raise SqlError("\n".join([sql, *lines]))
        return [line.split("\x1f") for line in lines]

    def value(self, sql):
        return self.rows(sql)[0][0]

    def number(self, sql):
        return int(self.value(sql))

    def close(self):
        self._psql.stdin.close()
        self._psql.stdout.close()
        self._psql.wait()


class World:
    """One for each worker, so that the tortures of two workers see nothing of each other."""

    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        self.library = os.path.join(bin_dir, "libonceward_torture.so")
        self.name = f"torture_{os.getpid()}_{next(_numbers)}"
        self.folder = tempfile.mkdtemp(prefix="onceward-torture.")
        self.has_services = bool(ADMIN and KAFKA)
        if not self.has_services:
            return
        self.admin_sql = Sql("postgres")
        self.create_database(self.name)
        self.sql = Sql(self.name)
        self.topic = self.name.replace("_", "-")
        self.onceward("migrate")
        self.onceward("topic", "add", self.topic, "--partitions", "1")
        self.onceward("route", "add", "torture", self.topic)

    def program(self, name):
        return os.path.join(self.bin_dir, name)

    def onceward(self, *arguments):
        done = subprocess.run([self.program("onceward"), *arguments, "--database", conninfo(self.name), "--kafka", KAFKA],
                              capture_output=True, text=True, env={}, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"onceward {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def create_database(self, name):
        self.admin_sql.rows(f"CREATE DATABASE {name}")

    def drop_database(self, name):
        self.admin_sql.rows(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def records(self, offset=0):
        """The records of the topic's partition from an offset, as kcat tells them."""
        done = subprocess.run(["kcat", "-C", "-q", "-b", KAFKA, "-t", self.topic, "-p", "0", "-o", str(offset), "-e", "-J"],
                              capture_output=True, check=True, timeout=60)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def feed(self, key, value):
        """A record that is no event of ours."""
        subprocess.run(["kcat", "-P", "-b", KAFKA, "-t", self.topic, "-p", "0", "-k", key], input=value.encode(), check=True,
                       timeout=60)

    def close(self):
        shutil.rmtree(self.folder)
        if self.has_services:
            self.sql.close()
            self.drop_database(self.name)
            self.admin_sql.close()


def header(record, name):
    """The headers of kcat -J are names and values in turn."""
    headers = record["headers"]
    return dict(zip(headers[0::2], headers[1::2])).get(name)
