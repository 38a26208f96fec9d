# SPDX-License-Identifier: Apache-2.0
"""docs/reliability.md, from the rows of one run."""

import os
import platform
import subprocess

from kill_evidence import MEANINGS
from kill_services import ROOT

SOURCES = ("lib", "producer", "outbox-relay", "consumer", "schema")

HEAD = """# What it withstands

<!-- Written by tests/load/run --kill --report. Do not edit: run it again. -->

A whole system under load, while everything that can fail does: two producers, two relays and two consumers that are started
again whenever they end, Postgres, and Kafka of three brokers. After the load `tests/load/check` compares what was answered,
the database, the topic and the effects, event by event. The naive twin runs through the same harness with the same seed: a
relay whose cursor is an id, a consumer that moves its offset first and has no inbox. It must lose and double; if it did not,
the harness would prove nothing. (Of the naive relay one process runs: two would publish everything twice.)
"""

FOUND = (("lost_effect", "events that had no effect"), ("doubled_effect", "events that had more than one effect"),
         ("order_inverted", "events that stand behind a later one of their key"),
         ("answer_unstable", "answers that disagree with what is stored"))


def write(path, options, versions, rows):
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([HEAD, *_run(options, versions), "", *_result(rows), "", *_faults(rows)]) + "\n")


def _run(options, versions):
    # The last change of what was run, not of this file or the harness.
    commit = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%h", "--", *SOURCES], capture_output=True, text=True, check=False)
    durable = "without fsync" if options.fast else "with fsync"
    command = f"tests/load/run --kill --requests {options.requests} --clients {options.clients} --seed {options.seed}"
    command += (f" --pace {options.pace:g}" if options.pace else "") + (" --fast" if options.fast else "")
    return ["## The run", "", f"    {command} --report docs/reliability.md", "",
            f"Seed {options.seed}; programs of commit {commit.stdout.strip()}; {_machine()}; {platform.system()} {platform.release()}; "
            f"Postgres {versions['Postgres']} {durable}; Kafka {versions['Kafka']}, three brokers, `min.insync.replicas=2`."]


def _machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())
    with open("/proc/meminfo", encoding="utf-8") as file:
        memory = int(file.readline().split()[1])
    return f"{os.cpu_count()} cores ({model}), {memory / 1048576:.0f} GiB"


def _table(heads, lines):
    return ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 2) + ("---|" if len(heads) > 3 else "---:|"),
            *("| " + " | ".join(map(str, line)) + " |" for line in lines)]


def _result(rows):
    lines = [("submissions accepted", *(row.load.get("accepted") for row in rows)),
             ("events published by SQL", *(row.load.get("published") for row in rows)),
             ("events compared on their whole way", *(row.check.get("compared_events") for row in rows))]
    lines += [(f"**{text}**", *(f"**{row.anomalies(word)}**" for row in rows)) for word, text in FOUND]
    lines += [("answers that were lost, and repeated until they were known", *(row.load.get("answers_lost") for row in rows)),
              ("calls made under an Idempotency-Key", *(row.load.get("calls_with_key") for row in rows)),
              ("answers that came again under their key, byte for byte", *(row.check.get("compared_answers_replayed") for row in rows)),
              ("answers unknown to the end", *(row.load.get("answers_unknown") for row in rows)),
              ("seconds of load and faults", *(f"{row.seconds['faults'] + row.seconds['rest_of_load']:.0f}" for row in rows)),
              ("seconds until all was applied, or nothing moved any more", *(row.check.get("settle_seconds") for row in rows))]
    return ["## The result", "", *_table(("", *(_title(row) for row in rows)), lines)]


def _faults(rows):
    lines = [(f"`{name}`", *(row.counts.get(name, "–") for row in rows), meaning) for name, meaning in MEANINGS.items()]
    return ["## What really happened", "",
            "Counted from what was left behind, not from what was meant to happen. A zero fails the run, but for `fenced_by_log`, and "
            "`repeated_publishes` of the twin. A dash: the twin has nothing that could show it.", "",
            *_table(("", *(_title(row) for row in rows), "counted"), lines)]


def _title(row):
    return "naive twin" if row.is_naive else "Onceward"
