# SPDX-License-Identifier: Apache-2.0
"""What was sent and what was answered, as a folder: run.json (the settings of the run) and calls.jsonl.

A line of calls.jsonl is a call or a published event. A call's line is written after its last answer, a publish's
line after its transaction; a run that is killed leaves whole lines but for the last.

call: call (create, put, document, submit, whole), request_id, status (0: no answer was ever had), answer, attempts,
    lost (calls that were sent and did not tell what became of them), twin, began, ms; where it was sent: type, data_sha256, document {document_id, name,
    media_type, size, sha256}, documents; under an Idempotency-Key: key, answer_sha256, is_replay
publish: call "publish", outcome (committed, rolled_back, unknown), key, version (that key's events in order, from 1),
    event_id, data_sha256; was_unknown where the end was looked up afterwards
"""

import json
import os
import threading


class ManifestError(Exception):
    """The folder cannot be read or written as a manifest."""


class Writer:
    """Lines from many threads."""

    def __init__(self, folder, settings):
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "calls.jsonl")
        if os.path.exists(path):
            raise ManifestError(f"{path} is there already: each run takes a folder of its own")
        with open(os.path.join(folder, "run.json"), "w", encoding="utf-8") as file:
            json.dump(settings, file, indent=2)
            file.write("\n")
        self._file = open(path, "w", encoding="utf-8")
        self._lock = threading.Lock()

    def add(self, line):
        text = json.dumps(line, ensure_ascii=True, separators=(",", ":")) + "\n"
        with self._lock:
            self._file.write(text)
            self._file.flush()

    def close(self):
        self._file.close()


def read(folder):
    """(settings, lines). A last line that was cut off is left out."""
    try:
        with open(os.path.join(folder, "run.json"), encoding="utf-8") as file:
            settings = json.load(file)
        with open(os.path.join(folder, "calls.jsonl"), encoding="utf-8") as file:
            texts = file.read().split("\n")
        return settings, [json.loads(text) for text in texts[:-1]]
    except (OSError, ValueError) as error:
        raise ManifestError(f"{folder} is no manifest: {error}") from error
