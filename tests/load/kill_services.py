# SPDX-License-Identifier: Apache-2.0
"""A Postgres and a Kafka of three nodes for the run alone, and the faults that they suffer, counted from their own logs."""

import os
import random
import re
import shutil
import socket
import subprocess
import threading
import time

import psql

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOCAL = os.path.join(ROOT, "deploy", "local")
PORT_FIRST, PORT_END = 20000, 25000
NODES = (1, 2, 3)
GONE_WAIT_S = 20
TIMEOUT_S = 300
START_COUNT_MAX = 5

CRASHED = "database system was not properly shut down"
CUT_BATCH = re.compile(r"\] (\w+)@.*unexpected EOF on client connection with an open transaction")


class ServiceError(Exception):
    """A service does not do what it is asked."""


_given = set()


def free_ports(count):
    """The first of so many ports in a row that nobody listens on; as free_ports of deploy/local/common.sh. None is given twice."""
    while True:
        first = random.SystemRandom().randrange(PORT_FIRST, PORT_END - count)
        ports = range(first, first + count)
        if _given.isdisjoint(ports) and all(map(_is_free, ports)):
            _given.update(ports)
            return first


def _is_free(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


class Services:
    """state: a folder of their own. is_durable: with fsync, as in production."""

    def __init__(self, state, is_durable):
        self.state = state
        self.is_durable = is_durable
        self.broker_port = free_ports(24)
        self.proxy_port = free_ports(4)
        self.postgres_port = free_ports(1)
        self.bootstrap = ",".join(f"127.0.0.1:{self.broker_port + node}" for node in NODES)
        # Whoever begins there is told by the brokers to stay behind the proxy; the proxy finds them at the second.
        self.proxied_bootstrap = ",".join(f"127.0.0.1:{self.proxy_port + node}" for node in NODES)
        self.proxied_ports = [self.proxy_port + node for node in NODES]
        self.proxied_brokers = [f"127.0.0.1:{self.broker_port + 20 + node}" for node in NODES]
        self._kept = os.path.join(state, "kept")
        self._lock = threading.Lock()
        self.broker_kills = 0
        self.broker_stops = 0

    def conninfo(self, database="postgres", user="postgres"):
        return f"host=127.0.0.1 port={self.postgres_port} dbname={database} user={user}"

    def start(self):
        os.makedirs(self._kept, exist_ok=True)
        kafka = threading.Thread(target=self._kafka, args=("start", "--port-base", str(self.broker_port),
                                                           "--advertised-port-base", str(self.proxy_port)))
        kafka.start()
        self._postgres("start", "--port", str(self.postgres_port), "--durable" if self.is_durable else "--fast",
                       "--set", "max_connections=200")
        kafka.join()
        if self.brokers_alive() != len(NODES):
            raise ServiceError("Kafka did not start")

    def stop(self):
        self._call("kafka3", "stop", check=False)
        self._call("postgres", "stop", "--immediate", check=False)

    def versions(self):
        lines = self._call("kafka3", "status", check=False).split("\n")
        kafka = next((line.split(",")[0] for line in lines if line.startswith("version ")), "version unknown")
        return {"Postgres": psql.value(self.conninfo(), "SELECT current_setting('server_version')"),
                "Kafka": kafka.removeprefix("version ")}

    # Faults.

    def restart_postgres(self):
        self._postgres("restart", "--immediate")
        self._keep("postgres", "postgres/server.log.1")

    def kill_broker(self, node, pause_s):
        """SIGKILL; it counts where the process is gone and its log ends without a word of that."""
        pid = self._node_pid(node)
        self._call("kafka3", "kill", str(node))
        deadline = time.monotonic() + GONE_WAIT_S
        while os.path.exists(f"/proc/{pid}/cmdline") and self._is_node(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        with open(os.path.join(self.state, "kafka3", str(node), "server.log"), encoding="utf-8", errors="replace") as file:
            was_orderly = "shut down completed" in file.read()
        self.broker_kills += not self._is_node(pid) and not was_orderly
        time.sleep(pause_s)
        self._start_broker(node)

    def stop_broker(self, node, seconds):
        """Stopped in order for a while; it counts where the others say that it is away."""
        self._kafka("stop", str(node))
        deadline = time.monotonic() + seconds
        was_away = False
        while time.monotonic() < deadline:
            was_away = was_away or self.brokers_alive(f"127.0.0.1:{self.broker_port + node % len(NODES) + 1}") == len(NODES) - 1
            time.sleep(0.5)
        self.broker_stops += was_away
        self._start_broker(node)

    def _start_broker(self, node):
        """On a machine that is too busy a broker may give up while it starts."""
        for _ in range(START_COUNT_MAX - 1):
            try:
                return self._kafka("start", str(node))
            except ServiceError:
                time.sleep(1)
        return self._kafka("start", str(node))

    def brokers_alive(self, bootstrap=None):
        command = ["kcat", "-L", "-b", bootstrap or self.bootstrap, "-m", "10"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.search(r"^ (\d+) brokers:", done.stdout, re.MULTILINE)
        return int(found[1]) if found else 0

    # Evidence.

    def mark(self):
        """Where the logs of Postgres are now, for postgres_restarts() and batches_cut() of what comes after."""
        return len(self._postgres_logs())

    def postgres_restarts(self, mark):
        return self._postgres_logs()[mark:].count(CRASHED)

    def batches_cut(self, mark):
        """By role: transactions of which the server says that their client went away in the middle."""
        counts = {}
        for role in CUT_BATCH.findall(self._postgres_logs()[mark:]):
            counts[role] = counts.get(role, 0) + 1
        return counts

    def _postgres_logs(self):
        text = ""
        for path in (os.path.join(self._kept, "postgres"), os.path.join(self.state, "postgres", "server.log")):
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    text += file.read()
        return text

    def _keep(self, name, path):
        with open(os.path.join(self._kept, name), "ab") as kept, open(os.path.join(self.state, path), "rb") as file:
            shutil.copyfileobj(file, kept)

    def _node_pid(self, node):
        with open(os.path.join(self.state, "kafka3", str(node), "pid"), encoding="ascii") as file:
            return int(file.read())

    def _is_node(self, pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return self.state.encode() in file.read()
        except OSError:
            return False

    def _postgres(self, *arguments):
        with self._lock:
            return self._call("postgres", *arguments)

    def _kafka(self, *arguments):
        return self._call("kafka3", *arguments, "--timeout", str(TIMEOUT_S - 20))

    def _call(self, script, *arguments, check=True):
        command = [os.path.join(LOCAL, script), *arguments, "--state", self.state]
        log = os.path.join(self._kept, "scripts.log")
        with open(log, "ab") as errors:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                                  timeout=TIMEOUT_S, check=False)
            errors.write(done.stdout.encode())
        if check and done.returncode != 0:
            raise ServiceError(f"{' '.join(command)} ended with {done.returncode}; see {log}")
        return done.stdout


# A topic is deleted by Kafka's own tool: Onceward has no command for it.
DELETE_TOPIC = """
set -eu
program=tests/load/run
here=$1
. "$here/common.sh"
. "$here/kafka_node.sh"
as_service() { "$@"; }
prepare_java
exec "$java" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$classpath" org.apache.kafka.tools.TopicCommand \\
    --bootstrap-server "$2" --delete --topic "$3"
"""


def delete_topic(bootstrap, topic):
    """The process that does it."""
    return subprocess.Popen(["bash", "-c", DELETE_TOPIC, "bash", LOCAL, bootstrap, topic], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)
