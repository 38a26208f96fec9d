# SPDX-License-Identifier: Apache-2.0
"""A client that behaves as a good one should: keep-alive, and patient where repeating is safe.

An answer that never came, 503, 429 and "still running under this key" are tried again until the time is up, but a lost
answer only where the call can be repeated without a second effect. Nothing is judged here.
"""

import http.client
import json
import random
import time
import urllib.parse
from dataclasses import dataclass

RETRY_STATUSES = (429, 503)
UNKNOWN_CODE = "outcome_unknown"  # A 503 that does not say that nothing was written.
IN_PROGRESS_CODE = "idempotency_in_progress"  # A 409: the first call under this key still runs.
RETRY_AFTER_MAX_S = 2.0
BACKOFF_MAX_S = 1.0
ANSWER_TIMEOUT_S = 60


class LostAnswer(Exception):
    """The connection broke or stayed silent: whether the call took place is unknown."""


class NotSent(LostAnswer):
    """Nobody took the connection, so the call did not take place."""


@dataclass
class Call:
    name: str
    method: str
    path: str
    content: bytes = b""
    content_type: str = "application/json"
    is_repeatable: bool = True
    key: str = None  # Its Idempotency-Key.


@dataclass
class Outcome:
    """status 0: no answer was ever had. lost: the calls that were sent and did not tell what became of them."""
    status: int = 0
    body: bytes = b""
    attempts: int = 0
    lost: int = 0
    began: float = 0.0
    ms: float = 0.0
    media_type: str = ""
    is_replay: bool = None  # None: the answer does not say.

    @property
    def answer(self):
        try:
            return json.loads(self.body)
        except ValueError:
            return None


class Connection:
    """One keep-alive connection, opened again after it broke. traceparent stands in every call where it is given."""

    def __init__(self, url, traceparent=None):
        parts = urllib.parse.urlsplit(url)
        self._fixed = {"traceparent": traceparent} if traceparent else {}
        self._base = parts.path.rstrip("/")
        self._http = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=ANSWER_TIMEOUT_S)

    def send(self, call):
        headers = self._fixed | ({"Content-Type": call.content_type} if call.content else {})
        headers |= {"Idempotency-Key": call.key} if call.key else {}
        if self._http.sock is None:
            try:
                self._http.connect()
            except OSError as error:
                raise NotSent(str(error)) from error
        try:
            self._http.request(call.method, self._base + call.path, call.content or None, headers)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise LostAnswer(str(error)) from error

    def receive(self):
        """(status, headers, body)"""
        try:
            response = self._http.getresponse()
            return response.status, response.headers, response.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise LostAnswer(str(error)) from error

    def close(self):
        self._http.close()


def _code(outcome):
    return outcome.answer.get("code") if isinstance(outcome.answer, dict) else None


def _is_to_be_repeated(outcome):
    return outcome.status in RETRY_STATUSES or (outcome.status == 409 and _code(outcome) == IN_PROGRESS_CODE)


class Client:
    """Two connections, so that a call can be made twice at the same moment. Of several producers each has one, and what is
    tried again goes to the next."""

    def __init__(self, urls, patience_s, traceparent=None):
        self._connections = [Connection(url, traceparent) for url in (urls if len(urls) > 1 else urls * 2)]
        self._patience_s = patience_s

    def call(self, call):
        return self._finish(0, call, Outcome(began=time.time()))

    def call_twice(self, call):
        """Both are sent before either answer is read."""
        outcomes = (Outcome(began=time.time()), Outcome(began=time.time()))
        was_sent = [self._try_send(connection, call, outcome) for connection, outcome in zip(self._connections, outcomes)]
        for i, connection in enumerate(self._connections):
            if was_sent[i]:
                self._try_receive(connection, call, outcomes[i])
        return [self._finish(i, call, outcome) for i, outcome in enumerate(outcomes)]

    def close(self):
        for connection in self._connections:
            connection.close()

    def _finish(self, first, call, outcome):
        """Goes on until there is an answer that stands."""
        while outcome.attempts == 0 or self._should_repeat(call, outcome):
            if outcome.attempts > 0:
                self._wait(outcome)
            connection = self._connections[(first + outcome.attempts) % len(self._connections)]
            if self._try_send(connection, call, outcome):
                self._try_receive(connection, call, outcome)
        outcome.ms = outcome.ms or (time.time() - outcome.began) * 1000
        return outcome

    def _should_repeat(self, call, outcome):
        has_time = time.time() - outcome.began < self._patience_s
        if outcome.status == 0:
            return has_time and (call.is_repeatable or outcome.lost == 0)
        return has_time and _is_to_be_repeated(outcome)

    @staticmethod
    def _wait(outcome):
        wait_s = min(BACKOFF_MAX_S, 0.02 * 2 ** min(outcome.attempts, 10))
        time.sleep(wait_s * random.uniform(0.5, 1.0))

    @staticmethod
    def _try_send(connection, call, outcome):
        outcome.attempts += 1
        try:
            connection.send(call)
            return True
        except NotSent:
            outcome.status = 0
            return False
        except LostAnswer:
            outcome.status = 0
            outcome.lost += 1
            return False

    @staticmethod
    def _try_receive(connection, call, outcome):
        try:
            outcome.status, headers, outcome.body = connection.receive()
        except LostAnswer:
            outcome.status = 0
            outcome.lost += 1
            return
        outcome.media_type = headers.get("Content-Type", "")
        outcome.is_replay = {"true": True, "false": False}.get(headers.get("Idempotent-Replayed"))
        if _is_to_be_repeated(outcome):
            outcome.lost += _code(outcome) == UNKNOWN_CODE
            time.sleep(min(RETRY_AFTER_MAX_S, float(headers.get("Retry-After") or 0)))
        else:
            outcome.ms = (time.time() - outcome.began) * 1000
