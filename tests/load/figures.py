# SPDX-License-Identifier: Apache-2.0
"""What a run amounts to, counted while its manifest is written."""

import threading
from collections import Counter, defaultdict

# The answers that each call may have. A document's second upload is 200 as the first.
GOOD_STATUSES = {"create": (201,), "put": (200, 201), "document": (200,), "submit": (200,), "whole": (200, 201)}
COMPLAINT_COUNT_MAX = 20


def percentile(values, share):
    """Of sorted values; the greatest that share of them reaches."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0


class Figures:
    def __init__(self):
        self._lock = threading.Lock()
        self._counts = Counter()
        self._latencies = defaultdict(list)
        self._submitted = set()
        self._bad = []

    def watch(self, writer):
        """The writer, with every line counted too."""
        add = writer.add

        def add_and_count(line):
            add(line)
            with self._lock:
                self._count(line)

        writer.add = add_and_count
        return writer

    def print(self, submit_seconds, publish_seconds):
        counts = self._counts
        rows = {
            "accepted": len(self._submitted), "duplicates": counts["duplicates"], "calls": counts["calls"],
            "calls_repeated": counts["repeated"], "calls_tried_again": counts["tried_again"],
            "calls_with_key": counts["with_key"], "answers_replayed": counts["replayed"],
            "answers_lost": counts["lost"], "answers_unknown": counts["unknown"], "answers_unexpected": counts["unexpected"],
            "documents": counts["documents"], "document_bytes": counts["document_bytes"], "seconds": f"{submit_seconds:.1f}",
            "calls_per_second": f"{counts['calls'] / submit_seconds:.0f}",
            "submissions_per_second": f"{len(self._submitted) / submit_seconds:.0f}"}
        for name, values in sorted(self._latencies.items()):
            values.sort()
            rows |= {f"{name}_p50_ms": f"{percentile(values, 0.5):.1f}", f"{name}_p99_ms": f"{percentile(values, 0.99):.1f}"}
        rows |= {"published": counts["committed"], "published_rolled_back": counts["rolled_back"],
                 "published_unknown": counts["publish_unknown"], "publish_seconds": f"{publish_seconds:.1f}"}
        for name, value in rows.items():
            print(f"{name}: {value}")

    def complaints(self, options):
        texts = self._bad[:COMPLAINT_COUNT_MAX]
        if self._counts["unexpected"] > len(texts):
            texts.append(f"… and {self._counts['unexpected'] - len(texts)} answers more were not as they should be")
        # A call that cannot be repeated has a lost answer for good; who needs to know makes only calls that can (--insist).
        unknown = self._counts["unknown"] + self._counts["publish_unknown"]
        texts += [f"{unknown} answers are unknown"] if unknown > 0 else []
        missing = options.requests - len(self._submitted) - self._counts["unknown"]
        return texts + ([f"{missing} requests were not accepted"] if missing > 0 else [])

    def _count(self, line):
        if line["call"] == "publish":
            self._counts["publish_unknown" if line["outcome"] == "unknown" else line["outcome"]] += 1
            return
        counts = self._counts
        counts["calls"] += line["attempts"]
        counts["repeated"] += 1 if line.get("again") or line.get("twin") or line.get("respelled") else 0
        counts["tried_again"] += line["attempts"] - 1
        counts["lost"] += line["lost"]
        counts["with_key"] += "key" in line
        counts["replayed"] += line.get("is_replay") is True
        self._latencies[line["call"]].append(line["ms"])
        if line["status"] == 0:
            counts["unknown"] += 1
        elif line["status"] not in GOOD_STATUSES[line["call"]]:
            counts["unexpected"] += 1
            self._bad.append(f"{line['call']} of {line['request_id']}: {line['status']} {line['answer']}")
        else:
            self._count_good(line)

    def _count_good(self, line):
        counts = self._counts
        documents = [line["document"]] if "document" in line else line.get("documents", [])
        counts["documents"] += len(documents)
        counts["document_bytes"] += sum(document["size"] for document in documents)
        if line["call"] in ("submit", "whole"):
            self._submitted.add(line["request_id"])
            counts["duplicates"] += 1 if (line["answer"] or {}).get("status") == "duplicate" else 0
