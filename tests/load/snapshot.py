# SPDX-License-Identifier: Apache-2.0
"""What is in the system at one moment, as plain rows. Read here, judged elsewhere."""

import hashlib
import json
import random
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field

import psql

SETTLE_POLL_S = 0.5
STILL_S = 6  # Longer than a consumer needs to be given the partitions of one that was killed.
STILL_COMPLETE_S = 1.5  # The same where each event has an effect and only repeats could follow.
HTTP_TIMEOUT_S = 30


class SnapshotError(Exception):
    """A source cannot be read."""


@dataclass
class Snapshot:
    """Rows are dicts with the columns of the query that reads them; ids are texts, hashes hexadecimal."""
    requests: list = field(default_factory=list)
    documents: list = field(default_factory=list)
    submissions: list = field(default_factory=list)
    outbox: list = field(default_factory=list)
    records: list = field(default_factory=list)  # partition, offset, ts, key, value (bytes), headers ([name, bytes] pairs)
    inbox: list = field(default_factory=list)
    inbox_strangers: list = field(default_factory=list)
    failures: list = field(default_factory=list)
    effects: list = field(default_factory=list)  # In the order in which they took place.
    has_effects: bool = True
    has_logs: bool = True  # Of the relay, and the consumer's inbox: the naive twins keep neither.
    sink: list = field(default_factory=list)
    fetched: list = field(default_factory=list)  # Documents over HTTP.


QUERIES = {
    "requests": "SELECT request_id, type, encode(sha256(data), 'hex') AS data_sha256 FROM onceward.requests",
    "documents": "SELECT request_id, document_id, position, name, media_type, size, encode(sha256, 'hex') AS sha256, "
                 "encode(sha256(content), 'hex') AS content_sha256, octet_length(content) AS content_size "
                 "FROM onceward.documents ORDER BY request_id, position",
    "submissions": "SELECT request_id, event_id, tenant, to_char(submitted_at, '{time}') AS submitted_at FROM onceward.submissions",
    "outbox": "SELECT o.id, o.event_id, o.tenant, o.key, o.type, o.source, o.subject, to_char(o.time, '{time}') AS time, "
              "o.content_type, o.dataschema, o.traceparent, o.header_names, "
              "ARRAY(SELECT encode(h, 'hex') FROM unnest(o.header_values) h) AS header_values, "
              "encode(sha256(o.value), 'hex') AS value_sha256, e.status "
              "FROM onceward.outbox o JOIN onceward.events e ON e.outbox_id = o.id WHERE o.topic = {topic} ORDER BY o.id",
    "inbox": "SELECT i.event_id, i.status, i.payload_hash FROM onceward.inbox i JOIN onceward.inbox_scopes s USING (scope_id) "
             "JOIN onceward.outbox o ON o.event_id = i.event_id AND o.topic = {topic} "
             "WHERE s.consumer = {consumer} AND s.scope = 'live'",
    "inbox_strangers": "SELECT i.event_id FROM onceward.inbox i JOIN onceward.inbox_scopes s USING (scope_id) "
                       "WHERE s.consumer = {consumer} AND s.scope = 'live' "
                       "AND NOT EXISTS (SELECT FROM onceward.outbox o WHERE o.event_id = i.event_id)",
    "failures": "SELECT event_id, 'deferred, ' || state AS place, reason FROM onceward.deferred "
                "WHERE topic = {topic} AND state <> 'published' "
                "UNION ALL SELECT event_id::text::uuid, 'dead letter', reason FROM onceward.dead_letters "
                "WHERE topic = {topic} AND consumer = {consumer}",
    "sink": "SELECT request_id, event_id, tenant, ce_sequence, to_char(submitted_at, '{time}') AS submitted_at, "
            "encode(sha256(convert_to(data::text, 'UTF8')), 'hex') AS data_sha256, "
            "encode(sha256(convert_to(documents::text, 'UTF8')), 'hex') AS documents_sha256, "
            "encode(sha256(value), 'hex') AS value_sha256 FROM {table}",
    "effects": "SELECT event_id, request_id, ce_sequence, encode(value_sha256, 'hex') AS value_sha256, kafka_partition, "
               "kafka_offset FROM {effects} ORDER BY effect_id",
}
TIME_FORMAT = 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'


def find_consumer(conninfo, topic):
    """The only consumer that has a cursor on the topic."""
    names = psql.run(conninfo, "SELECT DISTINCT consumer FROM onceward.consumer_progress "
                               f"WHERE scope = 'live' AND topic = {psql.literal(topic)};").split("\n")[:-1]
    if len(names) != 1:
        raise SnapshotError(f"{len(names)} consumers have a cursor on {topic} ({', '.join(names)}): name one with --consumer")
    return names[0]


def read_database(conninfo, topic, consumer, table, effects):
    """Everything but the topic and what HTTP gives. effects may be None."""
    values = {"topic": psql.literal(topic), "consumer": psql.literal(consumer), "table": table, "effects": effects,
              "time": TIME_FORMAT}
    snapshot = Snapshot(has_effects=effects is not None)
    for name, query in QUERIES.items():
        if name != "effects" or effects is not None:
            setattr(snapshot, name, list(psql.rows(conninfo, query.format(**values))))
    return snapshot


def _bytes(text):
    return None if text is None else text.encode("utf-8", "surrogateescape")


def parse_record(line: bytes):
    """A line of kcat -J. What is no UTF-8 in it passes as it is, so nothing is lost."""
    found = json.loads(line.decode("utf-8", "surrogateescape"))
    flat = found.get("headers") or []
    return {"partition": found["partition"], "offset": found["offset"], "ts": found.get("ts", 0), "key": _bytes(found.get("key")),
            "value": _bytes(found.get("payload")),
            "headers": [[name, _bytes(value)] for name, value in zip(flat[::2], flat[1::2])]}


def read_topic(bootstrap, topic):
    """Every record from the beginning to the end, by kcat."""
    command = ["kcat", "-C", "-q", "-b", bootstrap, "-t", topic, "-o", "beginning", "-e", "-J", "-X", "check.crcs=true"]
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process:
            records = [parse_record(line) for line in process.stdout]
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()
    if process.returncode != 0:
        raise SnapshotError(f"kcat cannot read {topic}: {said}")
    return records


def fetch_documents(url, documents, count_max):
    """Gets documents back from the producer; a sample where they are more than count_max."""
    chosen = documents if len(documents) <= count_max else random.Random(1).sample(documents, count_max)
    for request_id, document_id in chosen:
        address = f"{url.rstrip('/')}/requests/{request_id}/documents/{urllib.parse.quote(document_id)}"
        try:
            with urllib.request.urlopen(address, timeout=HTTP_TIMEOUT_S) as response:
                status, media_type, content = response.status, response.headers["Content-Type"], response.read()
        except urllib.error.HTTPError as error:
            status, media_type, content = error.code, None, b""
        except OSError as error:
            raise SnapshotError(f"{address}: {error}") from error
        yield {"request_id": request_id, "document_id": document_id, "status": status, "media_type": media_type,
               "sha256": hashlib.sha256(content).hexdigest()}


def wait_until_applied(conninfo, topic, consumer, seconds):
    """Waits until each event of the topic is in the consumer's inbox. Gives the seconds it took, and how many are not."""
    query = ("SELECT count(*) FROM onceward.outbox o WHERE o.topic = {0} AND NOT EXISTS (SELECT FROM onceward.inbox i "
             "JOIN onceward.inbox_scopes s USING (scope_id) WHERE s.consumer = {1} AND s.scope = 'live' "
             "AND i.event_id = o.event_id)").format(psql.literal(topic), psql.literal(consumer))
    unsettled = ("SELECT count(*) FROM onceward.events WHERE status NOT IN ('completed', 'failed') AND topic = {0} "
                 "AND xid >= (SELECT xid_min FROM onceward.unsettled_bound)").format(psql.literal(topic))
    began = time.monotonic()
    while True:
        missing = int(psql.value(conninfo, query)) or int(psql.value(conninfo, unsettled))
        if missing == 0 or time.monotonic() - began >= seconds:
            return time.monotonic() - began, missing
        time.sleep(SETTLE_POLL_S)


def wait_until_still(conninfo, topic, effects, seconds):
    """For programs that keep no log: waits until nothing moves any more. Gives the
    seconds it took, and how many have none."""
    query = (f"SELECT (SELECT count(*) FROM onceward.outbox o WHERE o.topic = {psql.literal(topic)} "
             f"AND NOT EXISTS (SELECT FROM {effects} e WHERE e.event_id = o.event_id)) || ' ' || (SELECT count(*) FROM {effects})")
    began = moved = time.monotonic()
    before = None
    while True:
        found = psql.value(conninfo, query)
        now = time.monotonic()
        moved = now if found != before else moved
        before = found
        missing = int(found.split()[0])
        if now - moved >= (STILL_S if missing else STILL_COMPLETE_S) or now - began >= seconds:
            return now - began, missing
        time.sleep(SETTLE_POLL_S)
