# SPDX-License-Identifier: Apache-2.0
"""The way of one request: made, filled, submitted, by different routes, some calls made again.

What is sent follows from the seed and the number alone; only ids and keys are new in each run. A share of the requests
goes under an Idempotency-Key for each call, and their submit is made again at the end under its key. A caller that insists
leaves no answer unknown: it submits under ids or keys of its own only, and repeats even the making of a request, whose lost
answer leaves no more than an empty request behind.
"""

import base64
import hashlib
import random
import urllib.parse
import uuid
from dataclasses import dataclass

import shapes
from http_client import Call

WAYS = (("post", 35), ("put", 35), ("whole", 20), ("whole_without_id", 10))
WHOLE_SIZE_MAX = 10 * 1024 * 1024  # In base64 still under the producer's 16 MiB a submission.
DOCUMENT_COUNTS = ((0, 15), (1, 55), (2, 20), (4, 10))


@dataclass
class Plan:
    """What every client is told."""
    type: str
    seed: int
    repeat_share: float
    insists: bool = False
    key_share: float = 0.0


def _digest(content):
    return hashlib.sha256(content).hexdigest()


def _sent_document(document, document_id):
    return {"document_id": document_id, "name": document.name, "media_type": document.media_type,
            "size": len(document.content), "sha256": document.sha256}


def _document_json(document, document_id):
    return shapes.body({
        "document_id": shapes.text(document_id) if document_id else None, "name": shapes.text(document.name),
        "media_type": shapes.text(document.media_type), "content": shapes.text(base64.b64encode(document.content).decode())})


def _raw_path(request_id, document, document_id):
    query = {"name": document.name} | ({"document_id": document_id} if document_id else {})
    return f"/requests/{request_id}/documents?{urllib.parse.urlencode(query)}"


def _under_key(call, outcome):
    return {} if call.key is None else {"key": call.key, "answer_sha256": _digest(outcome.body), "is_replay": outcome.is_replay}


class RequestWay:
    """One request by one client. `client` calls, `manifest` keeps."""

    def __init__(self, plan, corpus, client, manifest, number):
        self._plan = plan
        self._client = client
        self._manifest = manifest
        self._rng = random.Random(f"{plan.seed}/{number}")
        self._way = self._choose(WAYS)
        self._has_keys = random.Random(f"{plan.seed}/{number}/key").random() < plan.key_share
        if plan.insists and self._way == "whole_without_id" and not self._has_keys:
            self._way = "whole"
        self._number = number
        self._data = shapes.data_object(self._rng, number)
        if self._way == "whole_without_id":
            self._data = shapes.numbered_object(self._rng, number)
        self._documents = self._pick_documents(corpus)
        self._type = shapes.text(plan.type)

    def walk(self):
        if self._way == "whole":
            self._submit_whole(str(uuid.uuid4()))
        elif self._way == "whole_without_id":
            self._submit_whole(None)
        else:
            request_id = self._put() if self._way == "put" else self._create()
            if request_id is not None:
                for document, document_id in self._documents:
                    self._upload(request_id, document, document_id)
                self._submit(request_id)

    def _call(self, name, method, path, content=b"", content_type="application/json", is_repeatable=True):
        """Under a key of its own any call can be repeated."""
        key = f"load-{uuid.uuid4()}" if self._has_keys else None
        return Call(name, method, path, content, content_type, is_repeatable or self._has_keys, key)

    def _choose(self, weighted):
        return self._rng.choices([value for value, _ in weighted], [weight for _, weight in weighted])[0]

    def _pick_documents(self, corpus):
        """Sometimes one of them twice, as a form does that is sent with the same file chosen twice."""
        picked = [(corpus.pick(self._rng), self._document_id(i)) for i in range(self._choose(DOCUMENT_COUNTS))]
        if picked and self._rng.random() < 0.1:
            picked.insert(self._rng.randint(0, 1), picked[0])
        size = 0
        for count, (document, _) in enumerate(picked):
            size += len(document.content)
            if self._way.startswith("whole") and size > WHOLE_SIZE_MAX:
                return picked[:count]
        return picked

    def _document_id(self, index):
        return f"document-{index}.{self._rng.randint(0, 99)}" if self._rng.random() < 0.3 else None

    def _sent_data(self):
        return None if self._data is None else _digest(self._data)

    def _create(self):
        content = shapes.body({"type": self._type, "data": self._data})
        call = self._call("create", "POST", "/requests", content, is_repeatable=self._plan.insists)
        outcome = self._client.call(call)
        request_id = (outcome.answer or {}).get("id") if outcome.status == 201 else None
        self._keep(call, request_id, outcome, type=self._plan.type, data_sha256=self._sent_data())
        return request_id

    def _put(self):
        request_id = str(uuid.uuid4())
        content = shapes.body({"type": self._type, "data": self._data})
        call = self._call("put", "PUT", f"/requests/{request_id}", content)
        sent = {"type": self._plan.type, "data_sha256": self._sent_data()}
        self._make(call, request_id, **sent)
        if self._data is not None and self._rng.random() < self._plan.repeat_share / 2:
            other = Call("put", "PUT", call.path, shapes.body({"data": shapes.respell(self._data), "type": self._type}))
            self._keep(other, request_id, self._client.call(other), respelled=True)
        return request_id

    def _upload(self, request_id, document, document_id):
        if self._rng.random() < 0.5:
            content = _document_json(document, document_id)
            call = self._call("document", "POST", f"/requests/{request_id}/documents", content)
        else:
            path = _raw_path(request_id, document, document_id)
            call = self._call("document", "POST", path, document.content, document.media_type)
        self._make(call, request_id, document=_sent_document(document, document_id))

    def _submit(self, request_id):
        self._make_last(self._call("submit", "POST", f"/requests/{request_id}/submit"), request_id)

    def _submit_whole(self, request_id):
        documents = b"[" + b",".join(_document_json(*pair) for pair in self._documents) + b"]"
        content = shapes.body({
            "id": shapes.text(request_id) if request_id else None, "type": self._type, "data": self._data,
            "documents": documents if self._documents or self._rng.random() < 0.5 else None})
        call = self._call("whole", "POST", "/submissions", content, is_repeatable=request_id is not None)
        self._make_last(call, request_id, type=self._plan.type, data_sha256=self._sent_data(),
                   documents=[_sent_document(*pair) for pair in self._documents])

    def _make_last(self, call, request_id, **sent):
        """Under a key the first answer must come back, whatever happened meanwhile."""
        self._make(call, request_id, **sent)
        if call.key is not None:
            self._keep(call, request_id, self._client.call(call), again=True, **sent)

    def _make(self, call, request_id, **sent):
        """Makes a call, and some again: after it, or at the same moment over another connection."""
        dice = self._rng.random() if call.is_repeatable else 1.0
        if dice < self._plan.repeat_share / 2:
            for outcome in self._client.call_twice(call):
                self._keep(call, request_id, outcome, twin=True, **sent)
            return
        self._keep(call, request_id, self._client.call(call), **sent)
        if dice < self._plan.repeat_share:
            self._keep(call, request_id, self._client.call(call), again=True, **sent)

    def _keep(self, call, request_id, outcome, **sent):
        answer = outcome.answer
        if request_id is None and isinstance(answer, dict) and outcome.status in (200, 201):
            request_id = answer.get("id")
        self._manifest.add({
            "call": call.name, "number": self._number, "request_id": request_id, "status": outcome.status, "answer": answer,
            "attempts": outcome.attempts, "lost": outcome.lost, "began": round(outcome.began, 6), "ms": round(outcome.ms, 3),
            "media_type": outcome.media_type, "size": len(call.content), **_under_key(call, outcome), **sent})
