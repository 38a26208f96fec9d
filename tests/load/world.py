# SPDX-License-Identifier: Apache-2.0
"""A small system in which all went well, as a manifest and a snapshot: what the checker's tests then spoil."""

import json
import uuid

import judging
from expectations import derived_document_id
from snapshot import Snapshot

TYPE = "example.submitted"
TRACE = "0af7651916cd43dd8448eb211c80319c"
TIME = "2027-01-15T08:00:{:02d}.000000Z"
DATA = (b'{"n": 1.00}', b'{"name":"Gr\\u00fc\\u00dfe"}', None, b'{ }', b'{"deep":[[[1e+05]]]}', b'{"n":2}')
KEYED_NUMBER = 4  # Of the request that is submitted under an Idempotency-Key.
KEYS = ("load-token-0", "load-token-1", "load-token-2")
VERSION_COUNT = 4
PARTITION_COUNT = 3


def event_id(number):
    return str(uuid.UUID(int=(0x0189 << 112) | (7 << 76) | (1 << 63) | number))


class World:
    """settings and lines are the manifest; snapshot is the system. Both may be changed before judged()."""

    def __init__(self):
        self.settings = {"trace": TRACE, "token": "token", "url": "http://127.0.0.1", "topic": "t",
                         "with_key": 100, "requests": len(DATA), "events": len(KEYS) * VERSION_COUNT}
        self.lines = []
        self.snapshot = Snapshot()
        self._next_id = 100
        for number, data in enumerate(DATA):
            self._add_request(number, data)
        for version in range(1, VERSION_COUNT + 1):
            for key in KEYS:
                self._add_published(key, version)

    def judged(self):
        return judging.judge([(self.settings, self.lines)], self.snapshot)

    def calls(self, name):
        return [line for line in self.lines if line["call"] == name]

    def _call(self, name, request_id, status, answer, **sent):
        self.lines.append({"call": name, "number": 0, "request_id": request_id, "status": status, "answer": answer, "attempts": 1,
                           "lost": 0, "began": 0, "ms": 1, "media_type": "", "size": 0} | sent)

    def _add_request(self, number, data):
        request_id = str(uuid.UUID(int=number + 1))
        data_sha256 = None if data is None else judging.sha256(data)
        time = TIME.format(number)
        documents = self._add_documents(request_id, number)
        self._call("put", request_id, 201, {"id": request_id}, type=TYPE, data_sha256=data_sha256)
        for document in documents:
            self._call("document", request_id, 200, {"documents": [{"sha256": document["sha256"]}]}, document=document)
        receipt = {"event_id": event_id(self._next_id), "submitted_at": time.replace(".000000", "")}
        queued = receipt | {"queued": True, "status": "queued"}
        if number == KEYED_NUMBER:
            for is_replay in (False, True):
                self._call("submit", request_id, 200, queued, key="k", answer_sha256="same", is_replay=is_replay, again=is_replay)
        else:
            self._call("submit", request_id, 200, queued)
            self._call("submit", request_id, 200, receipt | {"queued": False, "status": "duplicate"}, again=True)
        self.snapshot.requests.append({"request_id": request_id, "type": TYPE, "data_sha256": data_sha256})
        self.snapshot.submissions.append({"request_id": request_id, "event_id": event_id(self._next_id), "tenant": "default",
                                          "submitted_at": time})
        value = self._value(request_id, time, data)
        self._add_event(request_id, TYPE, time, value, number % PARTITION_COUNT, f"00-{TRACE}-00f067aa0ba902b7-01")

    def _add_documents(self, request_id, number):
        sent = []
        for position in range(1, number % 3 + 1):
            content = f"document {number} {position}".encode()
            document = {"document_id": "given" if position == 2 else None, "name": f"é{position}.txt", "media_type": "text/plain",
                        "size": len(content), "sha256": judging.sha256(content)}
            document_id = document["document_id"] or derived_document_id(document["name"], "text/plain", document["sha256"])
            row = document | {"request_id": request_id, "document_id": document_id}
            self.snapshot.documents.append(row | {"position": position, "content_sha256": document["sha256"], "content_size": len(content)})
            self.snapshot.fetched.append({"request_id": request_id, "document_id": document_id, "status": 200,
                                          "media_type": "text/plain", "sha256": document["sha256"]})
            sent.append(document)
        return sent

    def _value(self, request_id, time, data):
        documents = [{"id": row["document_id"], "name": row["name"], "media_type": row["media_type"], "size": row["size"],
                      "sha256": row["sha256"], "uri": f"http://h/requests/{request_id}/documents/{row['document_id']}"}
                     for row in self.snapshot.documents if row["request_id"] == request_id]
        return (b'{"request_id":"%b","tenant":"default","type":"%b","submitted_at":"%b","data":%b,"documents":%b}' %
                (request_id.encode(), TYPE.encode(), time.encode(), data or b"null", json.dumps(documents).encode()))

    def _add_published(self, key, version):
        value = b'{"v": %d}' % version
        self.lines.append({"call": "publish", "number": 0, "outcome": "committed", "key": key, "version": version,
                           "event_id": event_id(self._next_id), "data_sha256": judging.sha256(value), "topic": "t"})
        self._add_event(key, "example.published", TIME.format(30 + version), value, KEYS.index(key))

    def _add_event(self, key, event_type, time, value, partition, traceparent=None):
        identity = event_id(self._next_id)
        row = {"id": self._next_id, "event_id": identity, "tenant": "default", "key": key, "type": event_type, "source": "/onceward",
               "subject": key, "time": time, "content_type": "application/json", "dataschema": None, "traceparent": traceparent,
               "header_names": ["x-load"], "header_values": ["ff00"], "value_sha256": judging.sha256(value), "status": "completed"}
        offset = sum(1 for record in self.snapshot.records if record["partition"] == partition)
        place = {"partition": partition, "offset": offset, "ts": self._next_id}
        headers = [list(pair) for pair in judging.wanted_headers(row)]
        self.snapshot.outbox.append(row)
        self.snapshot.records.append(place | {"key": key.encode(), "value": value, "headers": headers})
        self.snapshot.inbox.append({"event_id": identity, "status": "completed", "payload_hash": judging.payload_hash(row["value_sha256"])})
        self.snapshot.effects.append({"event_id": identity, "request_id": key, "ce_sequence": row["id"],
                                      "value_sha256": row["value_sha256"], "kafka_partition": partition, "kafka_offset": offset})
        self._set_sink(row, value)
        self._next_id += 1

    def _set_sink(self, row, value):
        slices = [judging.json_slices.slice_or_none(value, name) for name in ("data", "documents")]
        hashes = [None if found is None else judging.sha256(found) for found in slices]
        self.snapshot.sink = [old for old in self.snapshot.sink if old["request_id"] != row["key"]]
        self.snapshot.sink.append({"request_id": row["key"], "event_id": row["event_id"], "tenant": row["tenant"],
                                   "ce_sequence": row["id"], "submitted_at": row["time"], "data_sha256": hashes[0],
                                   "documents_sha256": hashes[1], "value_sha256": row["value_sha256"]})
