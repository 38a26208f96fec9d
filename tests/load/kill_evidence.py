# SPDX-License-Identifier: Apache-2.0
"""What really happened in a run, read from logs, counters, exit codes and tables: never from what was meant to happen."""

import re
import signal

# name: what it counts, and where it is read. In the order in which it is printed.
MEANINGS = {
    "kills_producer": "processes of the producers that ended by SIGKILL (their exit status)",
    "kills_relay": "the same of the relays",
    "kills_consumer": "the same of the consumers",
    "frozen": "processes that were stopped by SIGSTOP, to wake up later (/proc)",
    "postgres_restarts": "crash recoveries of Postgres (its log)",
    "kafka_kills": "brokers that were gone without having shut down (their logs)",
    "kafka_away": "times the other two brokers said that the third was away",
    "unknown_commits": "transactions whose COMMIT got no answer (the producers' log; transactions of publish() that were looked up)",
    "unknown_and_committed": "commits that the database acknowledged and their sender never heard of (the proxy before it)",
    "lost_acks": "acknowledgements of Kafka that were swallowed on their way (the proxy before it)",
    "repeated_publishes": "records on the topic whose event was there already (the topic)",
    "duplicates_dropped": "deliveries that the inbox knew (the consumers' counter, as last read before each kill)",
    "zombies_fenced": "owners that found, on waking or on writing, that lanes or partitions were no longer theirs (the logs)",
    "fenced_by_log": "of these, by the row of a cursor's log that was refused",
    "batches_cut": "transactions whose client went away in the middle (Postgres' log)",
    "rewinds": "rewinds that a running consumer obeyed (its log)",
    "restores": "restores of the consumer's tables that took effects away (the tables)",
    "refills_found": "refilled topics whose consumer stopped and named a verified offset (its log)",
}
# What programs without a log of cursors and an inbox cannot show, and what they show only if they happen to.
OURS_ONLY = {"duplicates_dropped", "zombies_fenced", "fenced_by_log", "rewinds", "refills_found"}
NEED_NOT_BE = {"fenced_by_log"}  # A zombie that wakes mostly sees by its clock, before it writes, that its time is up.
NEED_NOT_BE_OF_TWINS = {"repeated_publishes"}

REFUSED = re.compile(r"\b(?:relay|consumer)\.fenced\b")
FENCED = re.compile(r"\b(?:(?:relay|consumer)\.fenced|consumer\.lost|relay\.lease_lost kind=none)\b")
UNKNOWN = re.compile(r"\bproducer\.commit_unknown\b")
REWOUND = re.compile(r"\bconsumer\.rewound\b")


def _lines(programs, pattern):
    return sum(1 for program in programs for line in program.log().split("\n") if pattern.search(line))


def gather(system, chaos, swallowed, load, check):
    """load and check: what tests/load/run and tests/load/check printed, as texts by name."""
    cuts = system.services.batches_cut(system.mark)
    counts = {f"kills_{kind}": sum(end.code == -signal.SIGKILL for program in system.of_kind(kind) for end in program.ends)
              for kind in ("producer", "relay", "consumer")}
    counts |= {
        "frozen": sum(program.was_frozen for program in system.programs),
        "postgres_restarts": system.services.postgres_restarts(system.mark),
        "kafka_kills": system.services.broker_kills, "kafka_away": system.services.broker_stops,
        "unknown_commits": _lines(system.of_kind("producer"), UNKNOWN) + int(load.get("published_looked_up", 0)),
        "unknown_and_committed": sum(cut["answer"] == "COMMIT" for cut in system.cuts),
        "lost_acks": swallowed, "repeated_publishes": int(check.get("topic_copies", 0)),
        "duplicates_dropped": sum(program.counter("onceward_consumer_duplicates_total") for program in system.of_kind("consumer")),
        "zombies_fenced": _lines(system.of_kind("relay") + system.of_kind("consumer"), FENCED),
        "fenced_by_log": _lines(system.of_kind("relay") + system.of_kind("consumer"), REFUSED),
        "batches_cut": sum(cuts.get(role, 0) for role in ("onceward_producer", "onceward_consumer", "onceward_relay", "onceward_load")),
        "rewinds": _lines(system.of_kind("consumer"), REWOUND),
        "restores": sum(effects > 0 for effects in chaos.restores),
        "refills_found": chaos.refill.found() if chaos.refill else 0,
    }
    return {name: counts[name] for name in MEANINGS if not (system.is_naive and name in OURS_ONLY)}
