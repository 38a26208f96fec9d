# SPDX-License-Identifier: Apache-2.0
"""From the manifest's lines to what must be true of the system. Pure."""

import hashlib
import re
from dataclasses import dataclass, field

from figures import GOOD_STATUSES

TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?:Z|\+00(?::?00)?)")


def instant(text):
    """A time in UTC as text that compares: to the microsecond, whatever its spelling. None for what is no time."""
    match = TIME.fullmatch(text or "")
    return f"{match[1]}T{match[2]}.{(match[3] or '').ljust(6, '0')}" if match else None


def derived_document_id(name, media_type, sha256):
    """The id of a document that was given none: part of what callers rely on, so it is stated here again."""
    text = f"{len(name.encode())}:{name}{len(media_type.encode())}:{media_type}{sha256}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass
class Request:
    """What the calls about one request promise. has_lost: some submit's answer never came."""
    request_id: str
    type: str = ""
    data_sha256: str = None
    documents: dict = field(default_factory=dict)
    maybe_documents: dict = field(default_factory=dict)
    receipts: list = field(default_factory=list)  # Of all the answers under one key, one.
    made: int = 0
    has_lost: bool = False
    is_maybe_submitted: bool = False

    @property
    def is_accepted(self):
        return bool(self.receipts)

    @property
    def receipt(self):
        return self.receipts[0]


@dataclass
class Expectations:
    requests: dict = field(default_factory=dict)
    loose_data: set = field(default_factory=set)  # sha256 of data whose submission is unknown, with no id to find it by.
    published: dict = field(default_factory=dict)  # event_id -> line
    rolled_back: dict = field(default_factory=dict)
    maybe_published: dict = field(default_factory=dict)
    keys: dict = field(default_factory=dict)  # Idempotency-Key -> the lines of its calls that had an answer
    anomalies: list = field(default_factory=list)  # (word, subject, detail)

    def add_anomaly(self, word, subject, detail):
        self.anomalies.append((word, subject, detail))


def _document_key(document):
    return document["document_id"] or derived_document_id(document["name"], document["media_type"], document["sha256"])


def _add_documents(request, line):
    documents = [line["document"]] if "document" in line else line.get("documents", [])
    target = request.documents if line["status"] in (200, 201) else request.maybe_documents
    for document in documents:
        target[_document_key(document)] = document


def _check_document_answer(expected, request, line):
    listed = {document.get("sha256") for document in (line["answer"] or {}).get("documents", [])}
    if line["document"]["sha256"] not in listed:
        expected.add_anomaly("unexpected_answer", request.request_id, "the answer to an upload does not list the document")


def _add_receipt(expected, request, line):
    answer = line["answer"] or {}
    receipt = (answer.get("event_id"), answer.get("submitted_at"), answer.get("queued"))
    if None in receipt:
        expected.add_anomaly("unexpected_answer", request.request_id, f"a receipt without event_id, submitted_at, queued: {answer}")
        return
    # An answer that was repeated after a lost one may truly say duplicate, and whose repeat it was cannot be told.
    request.receipts.append(receipt)


def _add_call(expected, line):
    name, status = line["call"], line["status"]
    if line["request_id"] is None:
        if name == "whole" and status == 0:
            expected.loose_data.add(line["data_sha256"])
        return
    request = expected.requests.setdefault(line["request_id"], Request(line["request_id"]))
    if "type" in line:
        request.type, request.data_sha256 = line["type"], line["data_sha256"]
    if name in ("submit", "whole"):
        request.has_lost |= line["lost"] > 0
        request.is_maybe_submitted |= status == 0
    if status == 0:
        _add_documents(request, line)
        return
    if status not in GOOD_STATUSES[name]:
        return
    _add_documents(request, line)
    if "key" in line:
        expected.keys.setdefault(line["key"], []).append(line)
        if len(expected.keys[line["key"]]) > 1:
            return  # A replay says nothing of its own: _judge_key holds it to the first.
    if name == "document":
        _check_document_answer(expected, request, line)
    elif name in ("submit", "whole"):
        _add_receipt(expected, request, line)
    elif name == "put" and status == 201:
        request.made += 1


def _add_publish(expected, line):
    target = {"committed": expected.published, "rolled_back": expected.rolled_back, "unknown": expected.maybe_published}
    target[line["outcome"]][line["event_id"]] = line


def _judge_receipts(expected, request):
    identities = {(event_id, instant(submitted_at)) for event_id, submitted_at, _ in request.receipts}
    if len(identities) > 1:
        expected.add_anomaly("answer_unstable", request.request_id, f"answers name different events: {sorted(map(str, identities))}")
    queued = sum(1 for _, _, is_queued in request.receipts if is_queued)
    if queued > 1 or (queued == 0 and request.is_accepted and not request.has_lost):
        expected.add_anomaly("answer_unstable", request.request_id,
                             f"{queued} of {len(request.receipts)} answers say that they queued it")
    if request.made > 1:
        expected.add_anomaly("answer_unstable", request.request_id, f"{request.made} answers say that they made it")


def _judge_key(expected, key, lines):
    """Under one key there is one answer, byte for byte, and no more than one call that made it."""
    subject = f"{lines[0]['request_id']} under key {key}"
    answers = {(line["status"], line["media_type"], line["answer_sha256"]) for line in lines}
    if len(answers) > 1:
        expected.add_anomaly("answer_unstable", subject, f"{len(answers)} different answers: {sorted(map(str, answers))}")
    firsts = sum(line["is_replay"] is False for line in lines)
    if any(line["is_replay"] is None for line in lines):
        expected.add_anomaly("unexpected_answer", subject, "an answer does not say whether it is a replay")
    elif firsts > 1 or (firsts == 0 and not any(line["lost"] for line in lines)):
        expected.add_anomaly("answer_unstable", subject, f"{firsts} of {len(lines)} answers say that they are the first")


def expect(lines):
    """Reads the manifest's lines; what is wrong with the answers by themselves is among the anomalies."""
    expected = Expectations()
    for line in lines:
        if line["call"] == "publish":
            _add_publish(expected, line)
            continue
        if line["status"] not in (0, *GOOD_STATUSES[line["call"]]):
            expected.add_anomaly("unexpected_answer", line["request_id"] or f"number {line['number']}",
                                 f"{line['call']}: {line['status']} {line['answer']}")
        _add_call(expected, line)
    for request in expected.requests.values():
        _judge_receipts(expected, request)
    for key, calls in expected.keys.items():
        _judge_key(expected, key, calls)
    return expected
