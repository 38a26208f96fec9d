# SPDX-License-Identifier: Apache-2.0
"""Whether a snapshot is what the manifest promises. Pure: rows in, anomalies and counts out.

Each part compares two neighbours on an event's way: answers, database, outbox, topic, inbox, effects, sink.
"""

import hashlib
from collections import Counter, defaultdict

import json_slices
from expectations import expect, instant

# The stable words, and what each means.
WORDS = {
    "unexpected_answer": "a call was answered otherwise than it should be",
    "answer_unstable": "answers about one request disagree with each other or with what is stored",
    "lost_submission": "accepted by an answer, and not in the database",
    "orphan_submission": "in the database by the run's calls, and none of them accounts for it",
    "lost_document": "an accepted document is missing where it should be",
    "unexpected_document": "a document that nobody sent",
    "lost_event": "an event does not reach the place that is named",
    "doubled_event": "a submission or an event id stands in the outbox more than once",
    "unexpected_event": "an event that should not exist is at the place that is named",
    "unsettled_event": "the relay's own log does not say that the event is published",
    "failed_event": "an event was deferred or dead-lettered",
    "lost_effect": "an event had no effect",
    "doubled_effect": "an event had more than one effect",
    "order_inverted": "a later event of a key stands before an earlier one",
    "key_scattered": "events of one key lie on several partitions",
    "bytes_differ": "bytes are not those that were sent",
    "attribute_differs": "an attribute is not what it should be",
    "sink_stale": "the sink's row is not that of the key's newest event",
    "nothing_compared": "there was nothing to compare, so nothing is proven",
}


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def grouped(rows, column):
    groups = defaultdict(list)
    for row in rows:
        groups[row[column]].append(row)
    return groups


class Verdict:
    """Anomalies and what was compared."""

    def __init__(self):
        self.anomalies = []  # (word, subject, detail)
        self.counts = Counter()

    def add(self, word, subject, detail=""):
        assert word in WORDS, word
        self.anomalies.append((word, str(subject), detail))

    def same(self, word, subject, name, found, wanted):
        """Compares one thing."""
        if found != wanted:
            self.add(word, subject, f"{name} is {found!r}, not {wanted!r}")
        return found == wanted


class Case:
    """The snapshot, indexed, beside what is expected."""

    def __init__(self, settings, expected, snapshot):
        self.settings = settings
        self.expected = expected
        self.snapshot = snapshot
        self.requests = {row["request_id"]: row for row in snapshot.requests}
        self.documents = grouped(snapshot.documents, "request_id")
        self.submissions = {row["request_id"]: row for row in snapshot.submissions}
        self.outbox = {}
        for row in snapshot.outbox:
            self.outbox.setdefault(row["event_id"], row)
        self.records = defaultdict(list)
        for record in snapshot.records:
            record["event_id"] = header(record, "ce_id")
            self.records[record["event_id"]].append(record)


def header(record, name):
    values = [value for found, value in record["headers"] if found == name]
    return values[0].decode(errors="replace") if values and values[0] is not None else None


# Answers against requests, documents and submissions.

def judge_submissions(case, verdict):
    for request in case.expected.requests.values():
        if not request.is_accepted:
            continue
        verdict.counts["submissions"] += 1
        row = case.submissions.get(request.request_id)
        if row is None:
            verdict.add("lost_submission", request.request_id, f"answered with event {request.receipt[0]}")
            continue
        event_id, submitted_at, _ = request.receipt
        verdict.same("answer_unstable", request.request_id, "the stored event_id", row["event_id"], event_id)
        verdict.same("answer_unstable", request.request_id, "the stored submitted_at", row["submitted_at"], instant(submitted_at) + "Z")
    judge_orphans(case, verdict)


def judge_orphans(case, verdict):
    """What other people submit meanwhile is not ours to judge: the trace that the run's calls carry tells."""
    traces = {settings["trace"] for settings in case.settings}
    for request_id, row in case.submissions.items():
        request = case.expected.requests.get(request_id)
        if request is not None and (request.is_accepted or request.is_maybe_submitted):
            continue
        trace = (case.outbox.get(row["event_id"], {}).get("traceparent") or "--").split("-")[1]
        stored = case.requests.get(request_id, {}).get("data_sha256")
        if (trace in traces or request is not None) and stored not in case.expected.loose_data:
            verdict.add("orphan_submission", request_id, f"event {row['event_id']}")


def judge_requests(case, verdict):
    for request in case.expected.requests.values():
        row = case.requests.get(request.request_id)
        if row is None:
            if request.is_accepted:
                verdict.add("lost_submission", request.request_id, "the request itself is missing")
            continue
        verdict.counts["request_data"] += 1
        verdict.same("bytes_differ", request.request_id, "sha256 of data in requests", row["data_sha256"], request.data_sha256)
        verdict.same("attribute_differs", request.request_id, "type", row["type"], request.type)
        judge_documents(case, request, verdict)


def judge_documents(case, request, verdict):
    stored = {row["document_id"]: row for row in case.documents.get(request.request_id, [])}
    for document_id, sent in request.documents.items():
        row = stored.get(document_id)
        subject = f"{request.request_id}/{document_id}"
        if row is None:
            verdict.add("lost_document", subject, f"not in the database: {sent['name']}")
            continue
        verdict.counts["documents"] += 1
        verdict.same("bytes_differ", subject, "sha256 of the stored content", row["content_sha256"], sent["sha256"])
        verdict.same("bytes_differ", subject, "the stored sha256", row["sha256"], sent["sha256"])
        for name in ("size", "name", "media_type"):
            verdict.same("attribute_differs", subject, name, row[name], sent[name])
    for document_id in stored.keys() - request.documents.keys() - request.maybe_documents.keys():
        verdict.add("unexpected_document", f"{request.request_id}/{document_id}", stored[document_id]["name"])


def judge_fetched(case, verdict):
    for row in case.snapshot.fetched:
        subject = f"{row['request_id']}/{row['document_id']}"
        sent = case.expected.requests[row["request_id"]].documents[row["document_id"]]
        verdict.counts["documents_fetched"] += 1
        if verdict.same("lost_document", subject, "the status over HTTP", row["status"], 200):
            verdict.same("bytes_differ", subject, "sha256 over HTTP", row["sha256"], sent["sha256"])
            verdict.same("attribute_differs", subject, "media type over HTTP", row["media_type"], sent["media_type"])


# Submissions and published events against the outbox.

def judge_outbox(case, verdict):
    for event_id, rows in grouped(case.snapshot.outbox, "event_id").items():
        verdict.counts["events"] += 1
        if len(rows) > 1:
            verdict.add("doubled_event", event_id, f"{len(rows)} rows in the outbox")
        if not case.snapshot.has_logs:
            continue
        if rows[0]["status"] == "failed":
            verdict.add("failed_event", event_id, "by the relay's log")
        elif rows[0]["status"] != "completed":
            verdict.add("unsettled_event", event_id, f"{rows[0]['status']} by the relay's log")
    by_key = grouped(case.snapshot.outbox, "key")
    for request_id, row in case.submissions.items():
        of_request = {event["event_id"] for event in by_key.get(request_id, [])}
        if row["event_id"] not in of_request:
            if request_id in case.expected.requests:
                verdict.add("lost_event", row["event_id"], f"of submission {request_id}, at outbox")
        elif len(of_request) > 1:
            verdict.add("doubled_event", request_id, f"{len(of_request)} events of one submission")
        else:
            verdict.same("attribute_differs", row["event_id"], "time", case.outbox[row["event_id"]]["time"], row["submitted_at"])
    judge_published(case, verdict)
    for row in case.snapshot.failures:
        verdict.add("failed_event", row["event_id"], f"{row['place']}: {row['reason']}")


def judge_published(case, verdict):
    expected = case.expected
    for event_id, line in expected.published.items():
        row = case.outbox.get(event_id)
        if row is None:
            verdict.add("lost_event", event_id, f"of key {line['key']}, at outbox")
            continue
        verdict.counts["published_events"] += 1
        verdict.same("bytes_differ", event_id, "sha256 of the value in the outbox", row["value_sha256"], line["data_sha256"])
        verdict.same("attribute_differs", event_id, "key", row["key"], line["key"])
    for event_id in expected.rolled_back.keys() & case.outbox.keys():
        verdict.add("unexpected_event", event_id, "rolled back, and at outbox")
    tokens = tuple(f"load-{settings['token']}-" for settings in case.settings)
    known = expected.published.keys() | expected.maybe_published.keys() | expected.rolled_back.keys()
    for event_id, row in case.outbox.items():
        if row["key"].startswith(tokens) and event_id not in known:
            verdict.add("unexpected_event", event_id, f"nobody published it, and at outbox under key {row['key']}")


def judge_versions(case, verdict):
    """The versions that the writers took under a lock of their own are the order that the outbox must have."""
    lines = case.expected.maybe_published | case.expected.published
    by_key = defaultdict(list)
    for row in case.snapshot.outbox:
        if row["event_id"] in lines:
            by_key[row["key"]].append(lines[row["event_id"]])
    for key, in_order in by_key.items():
        verdict.counts["keys_by_version"] += 1
        judge_ascending(verdict, key, "in the outbox, by the writers' versions",
                        [(line["event_id"], line["version"]) for line in in_order])


def judge_ascending(verdict, key, where, events):
    """events: (event_id, number) as they stand. Names each event that stands behind a later one."""
    greatest = None
    for event_id, number in events:
        if greatest is not None and number <= greatest[1]:
            verdict.add("order_inverted", event_id, f"key {key}: {number} stands behind {greatest[1]} {where}")
        else:
            greatest = (event_id, number)


# The outbox against the topic.

def wanted_headers(row):
    fixed = {"ce_specversion": "1.0", "ce_id": row["event_id"], "ce_source": row["source"], "ce_type": row["type"],
             "ce_subject": row["subject"], "ce_time": row["time"], "ce_sequence": f"{row['id']:020d}",
             "ce_dataschema": row["dataschema"], "content-type": row["content_type"], "ce_tenantid": row["tenant"],
             "traceparent": row["traceparent"], "ce_traceparent": row["traceparent"]}
    wanted = [(name, value.encode()) for name, value in fixed.items() if value is not None]
    return sorted(wanted + [(name, bytes.fromhex(value)) for name, value in zip(row["header_names"], row["header_values"])])


def judge_topic(case, verdict):
    for event_id, records in case.records.items():
        if event_id not in case.outbox:
            place = f"{records[0]['partition']}/{records[0]['offset']}"
            verdict.add("unexpected_event", event_id, f"at topic {place}, of no row in the outbox")
    for event_id, row in case.outbox.items():
        records = case.records.get(event_id)
        if not records:
            verdict.add("lost_event", event_id, f"of key {row['key']}, at topic")
            continue
        verdict.counts["topic_events"] += 1
        verdict.counts["topic_copies"] += len(records) - 1
        for record in records:
            judge_record(row, record, verdict)
    judge_topic_order(case, verdict)


def judge_record(row, record, verdict):
    subject = f"{row['event_id']}@{record['partition']}/{record['offset']}"
    verdict.counts["headers"] += len(record["headers"])
    wanted, found = wanted_headers(row), sorted((name, value) for name, value in record["headers"])
    if found != wanted:
        differing = sorted({name for name, _ in set(found) ^ set(wanted)})
        verdict.add("attribute_differs", subject, f"headers: {', '.join(differing) or 'doubled'}")
    verdict.same("attribute_differs", subject, "key", record["key"], row["key"].encode())
    found_sha256 = None if record["value"] is None else sha256(record["value"])
    verdict.same("bytes_differ", subject, "sha256 of the value on the topic", found_sha256, row["value_sha256"])


def first_records(case):
    """Each event's first record: by offset inside a partition, by time between partitions (copies may lie anywhere)."""
    firsts = {}
    for record in sorted(case.snapshot.records, key=lambda record: (record["partition"], record["offset"])):
        first = firsts.setdefault(record["event_id"], record)
        if record["partition"] != first["partition"] and record["ts"] < first["ts"]:
            firsts[record["event_id"]] = record
    return {event_id: record for event_id, record in firsts.items() if event_id in case.outbox}


def judge_topic_order(case, verdict):
    firsts = first_records(case)
    by_key = defaultdict(list)
    for event_id, record in firsts.items():
        by_key[case.outbox[event_id]["key"]].append((record["partition"], record["offset"], event_id))
    for key, places in by_key.items():
        verdict.counts["keys"] += 1
        verdict.counts["keys_of_several_events"] += 1 if len(places) > 1 else 0
        partitions = {partition for partition, _, _ in places}
        if len(partitions) > 1:
            verdict.add("key_scattered", key, f"partitions {sorted(partitions)}")
            continue
        judge_ascending(verdict, key, "on the topic", [(event_id, case.outbox[event_id]["id"]) for _, _, event_id in sorted(places)])


# What the event says against what was sent.

def judge_values(case, verdict):
    for request in case.expected.requests.values():
        row = case.submissions.get(request.request_id)
        records = case.records.get(row["event_id"]) if row else None
        if not records or records[0]["value"] is None:
            continue
        try:
            members = json_slices.members(records[0]["value"])
        except ValueError as error:
            verdict.add("bytes_differ", row["event_id"], f"the value is no JSON object: {error}")
            continue
        judge_value(case, request, members, verdict)


def judge_value(case, request, members, verdict):
    event_id = case.submissions[request.request_id]["event_id"]
    verdict.counts["event_data"] += 1
    wanted_data = sha256(b"null") if request.data_sha256 is None else request.data_sha256
    verdict.same("bytes_differ", event_id, "sha256 of data in the event", sha256(members.get("data", b"")), wanted_data)
    texts = json_slices.texts(members, ("request_id", "type", "tenant", "submitted_at"))
    verdict.same("attribute_differs", event_id, "request_id in the value", texts["request_id"], request.request_id)
    verdict.same("attribute_differs", event_id, "type in the value", texts["type"], request.type)
    row = case.submissions[request.request_id]
    verdict.same("attribute_differs", event_id, "tenant in the value", texts["tenant"], row["tenant"])
    verdict.same("attribute_differs", event_id, "submitted_at in the value", instant(texts["submitted_at"]), instant(row["submitted_at"]))
    judge_value_documents(case, request, event_id, json_slices.parsed(members.get("documents")), verdict)


def judge_value_documents(case, request, event_id, listed, verdict):
    found = {document.get("id"): document for document in listed}
    verdict.same("attribute_differs", event_id, "the order of documents", [document.get("id") for document in listed],
                 [row["document_id"] for row in case.documents.get(request.request_id, [])])
    for document_id, sent in request.documents.items():
        document = found.get(document_id)
        if document is None:
            verdict.add("lost_document", f"{request.request_id}/{document_id}", f"not in event {event_id}")
            continue
        verdict.counts["event_documents"] += 1
        verdict.same("bytes_differ", event_id, f"sha256 of document {document_id} in the event", document.get("sha256"), sent["sha256"])
        for name in ("name", "media_type", "size"):
            verdict.same("attribute_differs", event_id, f"{name} of document {document_id}", document.get(name), sent[name])
        path = f"/requests/{request.request_id}/documents/{document_id}"
        if not str(document.get("uri")).endswith(path):
            verdict.add("attribute_differs", event_id, f"uri of document {document_id} is {document.get('uri')!r}")


# The topic against the consumer.

def payload_hash(value_sha256):
    return int.from_bytes(bytes.fromhex(value_sha256)[:8], "big", signed=True)


def judge_inbox(case, verdict):
    if not case.snapshot.has_logs:
        return
    inbox = {row["event_id"]: row for row in case.snapshot.inbox}
    for event_id, row in case.outbox.items():
        found = inbox.get(event_id)
        if found is None:
            verdict.add("lost_event", event_id, f"of key {row['key']}, at inbox")
            continue
        verdict.counts["inbox"] += 1
        verdict.same("bytes_differ", event_id, "the payload hash in the inbox", found["payload_hash"], payload_hash(row["value_sha256"]))
        if found["status"] != "completed":
            verdict.add("failed_event", event_id, f"{found['status']} in the inbox")
    for row in case.snapshot.inbox_strangers:
        verdict.add("unexpected_event", row["event_id"], "in the inbox, of no row in the outbox")


def judge_effects(case, verdict):
    if not case.snapshot.has_effects:
        return
    effects = grouped(case.snapshot.effects, "event_id")
    for event_id, row in case.outbox.items():
        found = effects.get(event_id, [])
        verdict.counts["effects"] += len(found)
        if not found:
            verdict.add("lost_effect", event_id, f"of key {row['key']}")
        elif len(found) > 1:
            verdict.add("doubled_effect", event_id, f"{len(found)} effects")
        places = {(record["partition"], record["offset"]) for record in case.records.get(event_id, [])}
        for effect in found:
            verdict.same("bytes_differ", event_id, "sha256 of the value in its effect", effect["value_sha256"], row["value_sha256"])
            verdict.same("attribute_differs", event_id, "ce_sequence of its effect", effect["ce_sequence"], row["id"])
            if (effect["kafka_partition"], effect["kafka_offset"]) not in places:
                verdict.add("attribute_differs", event_id, "its effect names a place on the topic where it is not")
    for event_id in effects.keys() - case.outbox.keys():
        verdict.add("unexpected_event", event_id, "at effects, of no row in the outbox")
    for key, in_order in grouped(case.snapshot.effects, "request_id").items():
        firsts = {}
        for effect in in_order:
            firsts.setdefault(effect["event_id"], effect["ce_sequence"])
        judge_ascending(verdict, key, "among the effects", firsts.items())


def judge_sink(case, verdict):
    newest = {}
    for row in case.snapshot.outbox:
        if row["key"] not in newest or row["id"] > newest[row["key"]]["id"]:
            newest[row["key"]] = row
    sink = {row["request_id"]: row for row in case.snapshot.sink}
    for key, row in newest.items():
        found = sink.get(key)
        if found is None:
            verdict.add("lost_event", row["event_id"], f"of key {key}, at sink")
            continue
        verdict.counts["sink_rows"] += 1
        if found["event_id"] != row["event_id"]:
            verdict.add("sink_stale", key, f"event {found['event_id']} stands there, the newest is {row['event_id']}")
            continue
        judge_sink_row(case, found, row, verdict)
    for key in sink.keys() - newest.keys():
        verdict.add("unexpected_event", sink[key]["event_id"], f"at sink under key {key}, of no row in the outbox")


def judge_sink_row(case, found, row, verdict):
    event_id = row["event_id"]
    verdict.same("bytes_differ", event_id, "sha256 of value in the sink", found["value_sha256"], row["value_sha256"])
    for name, wanted in (("ce_sequence", row["id"]), ("tenant", row["tenant"]), ("submitted_at", row["time"])):
        verdict.same("attribute_differs", event_id, f"{name} in the sink", found[name], wanted)
    request = case.expected.requests.get(row["key"])
    records = case.records.get(event_id)
    if request is None or not records or records[0]["value"] is None:
        return
    verdict.counts["sink_data"] += 1
    wanted_data = sha256(b"null") if request.data_sha256 is None else request.data_sha256
    if found["data_sha256"] is not None or request.data_sha256 is not None:
        verdict.same("bytes_differ", event_id, "sha256 of data in the sink", found["data_sha256"], wanted_data)
    documents = json_slices.slice_or_none(records[0]["value"], "documents")
    verdict.same("bytes_differ", event_id, "sha256 of documents in the sink", found["documents_sha256"],
                 None if documents is None else sha256(documents))


PARTS = (judge_submissions, judge_requests, judge_fetched, judge_outbox, judge_versions, judge_topic, judge_values, judge_inbox,
         judge_effects, judge_sink)


def wanted_counts(case):
    """What must have been compared at all, given what was sent."""
    names = ["events", "topic_events", "headers", "keys", "sink_rows"]
    if sum(settings["requests"] * settings.get("with_key", 0) for settings in case.settings) > 2000:
        names += ["answers_replayed"]
    names += ["inbox"] if case.snapshot.has_logs else []
    names += ["effects"] if case.snapshot.has_effects else []
    if any(settings["requests"] for settings in case.settings):
        names += ["submissions", "request_data", "documents", "event_data", "event_documents", "sink_data"]
    if any(settings["events"] for settings in case.settings):
        names += ["published_events", "keys_by_version", "keys_of_several_events"]
    return names


def judge(manifests, snapshot):
    """manifests: (settings, lines) pairs."""
    expected = expect(line for _, lines in manifests for line in lines)
    case = Case([settings for settings, _ in manifests], expected, snapshot)
    verdict = Verdict()
    for word, subject, detail in expected.anomalies:
        verdict.add(word, subject, detail)
    verdict.counts["answers_replayed"] = sum(len(lines) - 1 for lines in expected.keys.values())
    for part in PARTS:
        part(case, verdict)
    for name in wanted_counts(case):
        if verdict.counts[name] == 0:
            verdict.add("nothing_compared", name)
    return verdict
