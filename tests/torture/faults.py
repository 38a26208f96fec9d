# SPDX-License-Identifier: Apache-2.0
"""One program under the torture library: started with a fault, watched, and its end judged."""

import mmap
import os
import re
import signal
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass

# In the order of torture.c: enum kind, and the ways in which a call of the kind may fail.
KINDS = {
    "alloc": ("nomem",),
    "library": ("nomem",),
    "read": ("io", "intr", "short"),
    "write": ("io", "nospace", "short", "intr"),
    "fsync": ("io",),
    "send": ("reset", "short", "intr", "again", "pipe"),
    "receive": ("reset", "short", "end", "intr", "again"),
}
STATE = struct.Struct(f"={len(KINDS)}QQQ32sQ128s")
patience_s = 30  # For a program to do its work, to heal, and to end when asked.
POLL_S = 0.01
SANITIZER = re.compile(r"(ERROR: \w*Sanitizer.*|runtime error:.*)")
ASSERTION = re.compile(r"([\w-]+\.c):\d+: \w+: Assertion `(.*)' failed")
# Where settings are read and metrics are registered, a program that finds no memory says so by an assertion and ends: it
# serves nobody yet. So does the command line's, which answers one question, everywhere. Anything else must go on, or end
# with a reason.
NO_MEMORY = re.compile(r"!= NULL$|!buf\.has_overflowed|is_told|size >= 0")
MAY_ASSERT = re.compile(r"config(_\w+)?\.c|metrics\.c|cli(_\w+)?\.c")
HAS_BEGUN = re.compile(r"^\S+ info \S+ (producer\.started|relay\.ready|consumer\.ready)", re.M)
# An error in a service's log, a command's complaint, an error in JSON.
REASON = re.compile(r"^\S+ error \S+ \S+\.\S+ .*code=\S+ \S|^[a-z-]+: \S|\"error\": \{", re.M)


class Finding(Exception):
    """The program did what it must not do."""


@dataclass(frozen=True)
class Fault:
    kind: str
    at: int
    how: str

    def __str__(self):
        return f"{self.kind} {self.at} {self.how}"


class Process:
    """A program that runs. With a library its calls are counted; with a fault, too, one of them fails."""

    def __init__(self, arguments, library=None, fault=None):
        self.arguments = arguments
        self.fault = fault
        self._out = tempfile.TemporaryFile()
        self._log = tempfile.TemporaryFile()
        self._state_file = tempfile.NamedTemporaryFile()
        self._state_file.truncate(mmap.PAGESIZE)
        self._state = mmap.mmap(self._state_file.fileno(), mmap.PAGESIZE)
        environment = {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}
        if library is not None:
            # The library stands before a sanitizer's, which it calls: so both see every call.
            given = environment.get("ASAN_OPTIONS", "")
            environment["ASAN_OPTIONS"] = f"{given}:verify_asan_link_order=0".lstrip(":")
            environment.update(LD_PRELOAD=library, TORTURE_STATE=self._state_file.name)
        if fault is not None:
            environment.update(TORTURE_KIND=fault.kind, TORTURE_AT=str(fault.at), TORTURE_HOW=fault.how)
        self._process = subprocess.Popen(arguments, env=environment, stdin=subprocess.DEVNULL, stdout=self._out,
                                         stderr=self._log, start_new_session=True)

    @staticmethod
    def _text(file):
        return os.pread(file.fileno(), 1 << 24, 0).decode(errors="replace")

    @property
    def output(self):
        return self._text(self._out)

    @property
    def log(self):
        return self._text(self._log)

    @property
    def code(self):
        """None while it runs."""
        return self._process.poll()

    @property
    def counts(self):
        if not STATE.unpack_from(self._state)[len(KINDS) + 1]:
            raise RuntimeError(f"{self.arguments[0]} ran without the library: {self.log[:1000]}")
        return dict(zip(KINDS, STATE.unpack_from(self._state)))

    @property
    def has_failed(self):
        """Whether the call that was to fail was made."""
        return STATE.unpack_from(self._state)[len(KINDS)] > 0

    @property
    def place(self):
        """Which call failed, and where it stands in the source."""
        function, caller, path = STATE.unpack_from(self._state)[len(KINDS) + 2:]
        function, path = (text.rstrip(b"\0").decode() for text in (function, path))
        if not path:
            return function
        shown = subprocess.run(["addr2line", "-s", "-e", path, hex(caller - 1)], capture_output=True, text=True, check=False)
        line = shown.stdout.strip()
        return f"{function} in {os.path.basename(path) if not line or line.startswith('?') else line}"

    def ask_to_stop(self):
        self._process.send_signal(signal.SIGTERM)

    def await_end(self, what):
        try:
            self._process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            raise Finding(f"hangs: {what} for {patience_s} s") from None

    def close(self):
        if self.code is None:
            self._process.kill()
            self._process.wait()
        self._state.close()
        for file in (self._out, self._log, self._state_file):
            file.close()


def check_end(process, success=(0,)):
    """Says how the process ended, or raises a Finding where that is no end that a program may have."""
    log = process.log
    report = SANITIZER.search(log)
    if report:
        raise Finding(f"sanitizer: {report.group(1)}")
    if process.code < 0:
        assertion = ASSERTION.search(log)
        if assertion and MAY_ASSERT.fullmatch(assertion.group(1)) and NO_MEMORY.search(assertion.group(2)) and not HAS_BEGUN.search(log):
            return "asserted"
        name = signal.Signals(-process.code).name
        raise Finding(f"died of {name}" + (f", assertion {assertion.group(2)} in {assertion.group(1)}" if assertion else ""))
    if process.code in success:
        return f"ended with {process.code}"
    reason = REASON.search(log) or REASON.search(process.output)
    # Where the line with the reason is the very write that fails, nobody can see it.
    if reason is None and not (process.fault and process.fault.kind == "write"):
        raise Finding(f"ended with {process.code} and said no reason")
    return f"ended with {process.code}"


def wait_until(condition, process, what):
    """True when the condition holds, False when the process ended first."""
    until = time.monotonic() + patience_s
    while True:
        if condition():
            return True
        if process.code is not None:
            return False
        if time.monotonic() > until:
            raise Finding(f"hangs: {what} not within {patience_s} s")
        time.sleep(POLL_S)
