# SPDX-License-Identifier: Apache-2.0
"""Programs that are started again whenever they end, and what became of each of their processes."""

import os
import signal
import subprocess
import threading
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass

RESTART_WAIT_S = 0.2
FAILED_WAIT_S = 1.0
SAMPLE_S = 0.5
STOP_WAIT_S = 60
END_WAIT_S = 20
CRASH_SIGNALS = {signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE}
SANITIZER_MARKS = ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "runtime error:")


@dataclass
class End:
    """One process, as the kernel told its end."""
    program: str
    pid: int
    code: int  # Negative: the signal.
    was_asked: bool  # By SIGTERM.


class Program:
    """One place at which a program runs. kind: producer, relay, consumer. Acts on it exclude each other by `lock`."""

    def __init__(self, kind, name, command, port, log_path):
        self.kind = kind
        self.name = name
        self.port = port
        self.log_path = log_path
        self.lock = threading.Lock()
        self.ends = []
        self.was_frozen = 0
        self._command = command
        self._process = None
        self._is_wanted = False
        self._changed = threading.Condition(threading.RLock())
        self._counters = Counter()  # Of processes that have ended: a counter begins at 0 with each.
        self._last = {}
        self._thread = None

    def start(self):
        self._is_wanted = True
        self._thread = threading.Thread(target=self._supervise, daemon=True)
        self._thread.start()

    def stop(self):
        """Asks it to end and waits until it has."""
        self.sample()
        with self._changed:
            self._is_wanted = False
            if self._process is not None:
                self._send(signal.SIGCONT)
                self._send(signal.SIGTERM)
            self._changed.notify_all()
        self._thread.join(STOP_WAIT_S)
        if self._thread.is_alive():
            self._send(signal.SIGKILL)
            self._thread.join()
            raise RuntimeError(f"{self.name} did not end within {STOP_WAIT_S} s of SIGTERM")

    def kill(self):
        """True if that is what ended it."""
        self.sample()
        with self._changed:
            process = self._process
            if not self._send(signal.SIGKILL):
                return False
            self._changed.wait_for(lambda: self._process is not process, END_WAIT_S)
            return self.ends[-1].pid == process.pid and self.ends[-1].code == -signal.SIGKILL

    def freeze(self, seconds):
        """A zombie in the making: it sleeps, and wakes up believing what it believed before. True if it slept."""
        process = self._process
        if process is None or not self._send(signal.SIGSTOP):
            return False
        time.sleep(seconds)
        is_frozen = self._process is process and _state(process.pid) == "T"
        self.was_frozen += is_frozen
        self._send(signal.SIGCONT)
        return is_frozen

    def await_ready(self, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self._get("/readyz") is not None:
                return
            time.sleep(0.1)
        raise RuntimeError(f"{self.name} is not ready after {seconds} s; its log is {self.log_path}")

    def is_running(self):
        return self._process is not None

    def sample(self):
        """Reads the counters; those of a process that dies afterwards are kept as they were."""
        process, text = self._process, self._get("/metrics")
        if text is not None and process is not None and process is self._process:
            self._last = {line.split(" ")[0]: float(line.split(" ")[1]) for line in text.split("\n") if line and line[0] != "#"}

    def counter(self, name):
        """At least so much, over all of its processes."""
        return int(self._counters[name] + self._last.get(name, 0))

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def _get(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=2) as response:
                return response.read().decode()
        except OSError:
            return None

    def _send(self, number):
        with self._changed:
            if self._process is None:
                return False
            # Not by Popen, which looks for the end of a process first and would take it from _supervise.
            os.kill(self._process.pid, number)
            return True

    def _supervise(self):
        while self._is_wanted:
            with open(self.log_path, "ab") as log:
                process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_environment())
            with self._changed:
                self._process = process
                if not self._is_wanted:
                    os.kill(process.pid, signal.SIGTERM)
            # waitid leaves the process waitable, so its pid is nobody else's until _process is None.
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            with self._changed:
                self._process = None
                code = process.wait()
                self.ends.append(End(self.name, process.pid, code, not self._is_wanted))
                self._counters.update(self._last)
                self._last = {}
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._is_wanted, RESTART_WAIT_S if code == -signal.SIGKILL else FAILED_WAIT_S)


def _state(pid):
    """The letter of a process that is not waited for yet."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def _environment():
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ONCEWARD_", "PG"))}
    return kept | {"UBSAN_OPTIONS": os.environ.get("UBSAN_OPTIONS", "print_stacktrace=1")}


class Sampler(threading.Thread):
    """Reads every program's counters again and again, since a kill takes them with it."""

    def __init__(self, programs):
        super().__init__(daemon=True)
        self._programs = programs
        self._is_over = threading.Event()

    def run(self):
        while not self._is_over.wait(SAMPLE_S):
            for program in self._programs:
                if program.is_running():
                    program.sample()

    def stop(self):
        self._is_over.set()
        self.join()


def bound(command):
    """The command as a process that dies with the thread that starts it, and so with the harness, whatever ends that."""
    return ["setpriv", "--pdeathsig", "KILL", *command]


def faults(programs):
    """Ends that nothing in the harness explains: crashes, sanitizer reports, an end that was not in order."""
    texts = []
    for program in programs:
        for end in program.ends:
            if -end.code in CRASH_SIGNALS or (end.was_asked and end.code != 0):
                texts.append(f"{end.program} (process {end.pid}) ended with {end.code}")
        texts += [f"{program.name}: {line}" for line in program.log().split("\n") if any(mark in line for mark in SANITIZER_MARKS)]
    return texts
