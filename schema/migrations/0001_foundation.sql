-- SPDX-License-Identifier: Apache-2.0
--
-- The tables that carry the guarantee. `onceward migrate` applies this file in one transaction.
-- Reading order: what a deployment routes, the submit path, the outbox and its relays, the inbox and
-- its consumers, what is left for people. Words and rules: ARCHITECTURE.md.

DO $$
BEGIN
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'the database must be encoded in UTF8, not %', current_setting('server_encoding');
    END IF;
END
$$;

CREATE SCHEMA IF NOT EXISTS onceward;

-- What was applied. `onceward migrate` adds the row of each file, this one included, in the file's own transaction.
CREATE TABLE onceward.schema_migrations (
    version    integer PRIMARY KEY CHECK (version > 0),
    name       text NOT NULL,
    checksum   bytea NOT NULL CHECK (octet_length(checksum) = 32),
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON COLUMN onceward.schema_migrations.checksum IS 'SHA-256 of the file''s bytes';

-- A UUIDv7 (RFC 9562, section 5.7) whose time is the database's.
CREATE FUNCTION onceward.uuid_v7() RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT encode(set_bit(set_bit(overlay(
               uuid_send(gen_random_uuid())
               PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
           52, 1), 53, 1), 'hex')::uuid
$$;

-- The least UUIDv7 of a moment: the bound of an inbox partition.
CREATE FUNCTION onceward.uuid_v7_floor(moment timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM moment) * 1000)::bigint), 12, '0') || '70008000000000000000')::uuid
$$;

-- The moment that a UUIDv7 carries, to the millisecond.
CREATE FUNCTION onceward.uuid_v7_time(id uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT to_timestamp(('x' || lpad(left(replace(id::text, '-', ''), 12), 16, '0'))::bit(64)::bigint / 1000.0)
$$;

-- ---------------------------------------------------------------------------------------------------------------
-- The deployment: one row, and what it routes.

CREATE TABLE onceward.deployment (
    is_only    boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    source     text NOT NULL CHECK (source <> '' AND octet_length(source) <= 255),
    created_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE onceward.deployment IS 'source: the ce_source of every event that is minted here';
INSERT INTO onceward.deployment (source) VALUES ('/onceward');

CREATE TABLE onceward.topics (
    topic             text PRIMARY KEY CHECK (topic ~ '^[A-Za-z0-9._-]{1,249}$' AND topic NOT IN ('.', '..')),
    event_bytes_max   integer NOT NULL DEFAULT 1048588 CHECK (event_bytes_max > 0),
    in_flight_per_key integer NOT NULL DEFAULT 1 CHECK (in_flight_per_key > 0),
    created_at        timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN onceward.topics.event_bytes_max IS
    'the topic''s max.message.bytes on the broker: a greater event is refused at submit';
COMMENT ON COLUMN onceward.topics.in_flight_per_key IS
    'unacknowledged events per key; above 1 a refused record can let later ones of its key pass';

CREATE TABLE onceward.routes (
    type       text PRIMARY KEY CHECK (type <> '' AND octet_length(type) <= 255),
    topic      text NOT NULL REFERENCES onceward.topics,
    dataschema text,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- ---------------------------------------------------------------------------------------------------------------
-- The submit path. Every primary key begins with the tenant.

CREATE TABLE onceward.requests (
    tenant      text NOT NULL CHECK (tenant <> '' AND octet_length(tenant) <= 255),
    request_id  uuid NOT NULL,
    type        text NOT NULL,
    data        bytea,
    fingerprint bytea NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, request_id)
);
COMMENT ON COLUMN onceward.requests.data IS 'the bytes as the caller wrote them, or null';
COMMENT ON COLUMN onceward.requests.fingerprint IS
    'SHA-256 of type and canonical data: two PUTs with the same id are compared by it';
CREATE INDEX requests_by_time ON onceward.requests (tenant, created_at, request_id);

CREATE TABLE onceward.documents (
    tenant      text NOT NULL,
    request_id  uuid NOT NULL,
    document_id text NOT NULL CHECK (document_id <> '' AND octet_length(document_id) <= 255),
    position    integer NOT NULL,
    name        text NOT NULL,
    media_type  text NOT NULL,
    size        integer NOT NULL,
    sha256      bytea NOT NULL CHECK (octet_length(sha256) = 32),
    content     bytea NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, request_id, document_id)
);
COMMENT ON COLUMN onceward.documents.position IS 'order of upload, from 1; given under the lock of the request''s row';
ALTER TABLE onceward.documents ALTER COLUMN content SET STORAGE EXTERNAL;

-- The constraint that is the dedup: a request is submitted if and only if its row stands here.
CREATE TABLE onceward.submissions (
    tenant       text NOT NULL,
    request_id   uuid NOT NULL,
    event_id     uuid NOT NULL,
    submitted_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, request_id)
);

-- A key is used up if and only if its effect committed: it stands here with its answer or not at all. Whoever writes
-- here holds the key's advisory lock (lib/db/db_idempotency.c).
CREATE TABLE onceward.idempotency_keys (
    tenant      text NOT NULL CHECK (tenant <> '' AND octet_length(tenant) <= 255),
    key         text NOT NULL CHECK (key <> '' AND octet_length(key) <= 255),
    fingerprint bytea NOT NULL CHECK (octet_length(fingerprint) = 32),
    components  text NOT NULL,
    status      smallint NOT NULL CHECK (status BETWEEN 200 AND 299),
    headers     text NOT NULL,
    body        bytea NOT NULL,
    resource    text,
    event_id    uuid,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant, key)
);
COMMENT ON COLUMN onceward.idempotency_keys.fingerprint IS
    'SHA-256 of method, path, query, media type and canonical body';
COMMENT ON COLUMN onceward.idempotency_keys.components IS
    'the parts of the fingerprint, each with the first bytes of its own hash, so that a mismatch can be named';
COMMENT ON COLUMN onceward.idempotency_keys.headers IS
    'lines of Name: value, sent again with the bytes of body';
CREATE INDEX idempotency_keys_by_expiry ON onceward.idempotency_keys (expires_at);

-- ---------------------------------------------------------------------------------------------------------------
-- The outbox. Insert-only. Column order matters: xid is evaluated before id, so that every writer has its
-- transaction id before its sequence number; the relay's floors rest on that.

CREATE TABLE onceward.outbox (
    xid           xid8 NOT NULL DEFAULT pg_current_xact_id(),
    id            bigint NOT NULL GENERATED ALWAYS AS IDENTITY (CACHE 1),
    lane          smallint NOT NULL GENERATED ALWAYS AS
                      (get_byte(sha256(decode(replace(key, '\', '\\'), 'escape')), 0) % 8) STORED,
    tenant        text NOT NULL,
    event_id      uuid NOT NULL,
    topic         text NOT NULL,
    key           text NOT NULL CHECK (key <> '' AND octet_length(key) <= 1024),
    type          text NOT NULL,
    source        text NOT NULL,
    subject       text,
    time          timestamptz NOT NULL,
    content_type  text,
    dataschema    text,
    traceparent   text,
    header_names  text[] NOT NULL DEFAULT '{}',
    header_values bytea[] NOT NULL DEFAULT '{}',
    value         bytea NOT NULL,
    CHECK (cardinality(header_names) = cardinality(header_values) AND cardinality(header_names) <= 32)
) PARTITION BY RANGE (id);
COMMENT ON COLUMN onceward.outbox.xid IS 'the writer''s top-level transaction: decides when a row can be seen';
COMMENT ON COLUMN onceward.outbox.id IS 'decides the order inside a lane; travels as ce_sequence';
COMMENT ON COLUMN onceward.outbox.lane IS 'first byte of sha256(key), modulo 8';
CREATE INDEX outbox_by_id ON onceward.outbox (id);
CREATE INDEX outbox_by_xid ON onceward.outbox (xid, id);
CREATE INDEX outbox_by_event_id ON onceward.outbox (event_id);

CREATE TABLE onceward.outbox_partitions (
    partition   text PRIMARY KEY,
    first_id    bigint NOT NULL UNIQUE,
    end_id      bigint NOT NULL,
    sequence_at bigint NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK (first_id < end_id)
);
COMMENT ON TABLE onceward.outbox_partitions IS
    'ids from first_id up to but not including end_id; sequence_at is where the sequence stood at creation';

-- Makes outbox partitions ahead: each about a day at the measured rate, within 1 M and 50 M ids, until more than
-- two such lengths lie ahead. CREATE, then ATTACH, so that inserts pass meanwhile. Returns the number made.
CREATE FUNCTION onceward.outbox_make_partitions() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    sequence_now bigint := coalesce(pg_sequence_last_value('onceward.outbox_id_seq'), 0);
    ids_a_day    bigint;
    next_id      bigint;
    made         integer := 0;
    name         text;
BEGIN
    SELECT p.end_id,
           ((sequence_now - p.sequence_at) * 86400 / greatest(extract(epoch FROM clock_timestamp() - p.created_at), 60))::bigint
      INTO next_id, ids_a_day
      FROM onceward.outbox_partitions p ORDER BY p.first_id DESC LIMIT 1;
    ids_a_day := least(greatest(coalesce(ids_a_day, 0), 1000000), 50000000);
    -- Without the lock: the usual answer is that nothing is to be done.
    IF next_id - sequence_now > 2 * ids_a_day THEN
        RETURN 0;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('onceward.outbox_make_partitions', 0));
    SELECT coalesce(max(end_id), 1) INTO next_id FROM onceward.outbox_partitions;
    WHILE next_id - sequence_now <= 2 * ids_a_day LOOP
        name := 'outbox_' || lpad(next_id::text, 15, '0');
        EXECUTE format('CREATE TABLE onceward.%I (LIKE onceward.outbox INCLUDING DEFAULTS INCLUDING GENERATED '
                       'INCLUDING CONSTRAINTS INCLUDING STORAGE)', name);
        EXECUTE format('ALTER TABLE onceward.outbox ATTACH PARTITION onceward.%I FOR VALUES FROM (%s) TO (%s)',
                       name, next_id, next_id + ids_a_day);
        INSERT INTO onceward.outbox_partitions (partition, first_id, end_id, sequence_at)
        VALUES (name, next_id, next_id + ids_a_day, sequence_now);
        next_id := next_id + ids_a_day;
        made := made + 1;
    END LOOP;
    RETURN made;
END
$$;
SELECT onceward.outbox_make_partitions();

-- Puts one event into the outbox inside the caller's own transaction; it is published after that commits.
-- Order per key is the order of the lock that the caller holds on its own row. Gives the event's id.
CREATE FUNCTION onceward.publish(
    topic text, key text, type text, data json,
    headers jsonb DEFAULT '{}', event_id uuid DEFAULT NULL, tenant text DEFAULT 'default') RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    bytes_max  integer;
    bytes      bigint;
    names      text[];
    contents   bytea[];
    own_source text;
    value      bytea := convert_to(data::text, 'UTF8');
BEGIN
    SELECT t.event_bytes_max INTO bytes_max FROM onceward.topics t WHERE t.topic = publish.topic;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'topic "%" is not known here', topic
            USING ERRCODE = 'OW001', HINT = 'Make it with: onceward topic add';
    END IF;
    IF key IS NULL OR key = '' OR octet_length(key) > 1024 THEN
        RAISE EXCEPTION 'the key must have 1 to 1024 bytes' USING ERRCODE = 'OW002';
    END IF;
    IF type IS NULL OR type = '' OR octet_length(type) > 255 THEN
        RAISE EXCEPTION 'the type must have 1 to 255 bytes' USING ERRCODE = 'OW002';
    END IF;
    IF tenant IS NULL OR tenant = '' OR octet_length(tenant) > 255 THEN
        RAISE EXCEPTION 'the tenant must have 1 to 255 bytes' USING ERRCODE = 'OW002';
    END IF;
    IF data IS NULL THEN
        RAISE EXCEPTION 'data must not be null' USING ERRCODE = 'OW002', HINT = 'JSON''s null is written ''null''.';
    END IF;
    IF event_id IS NULL THEN
        event_id := onceward.uuid_v7();
    ELSIF substr(event_id::text, 15, 1) <> '7' OR substr(event_id::text, 20, 1) NOT IN ('8', '9', 'a', 'b')
          OR abs(extract(epoch FROM clock_timestamp() - onceward.uuid_v7_time(event_id))) > 3600 THEN
        RAISE EXCEPTION 'event_id % is no UUIDv7 within an hour of the database''s clock', event_id
            USING ERRCODE = 'OW003', HINT = 'Leave it out, or take onceward.uuid_v7() and keep it.';
    END IF;
    IF headers IS NULL OR jsonb_typeof(headers) <> 'object' THEN
        RAISE EXCEPTION 'headers must be a JSON object of strings' USING ERRCODE = 'OW004';
    END IF;
    IF EXISTS (SELECT FROM jsonb_each(headers) h
                WHERE jsonb_typeof(h.value) <> 'string' OR h.key !~ '^[a-z0-9][a-z0-9_.-]{0,127}$'
                   OR h.key ~ '^ce_' OR h.key = 'content-type')
       OR (SELECT count(*) FROM jsonb_object_keys(headers)) > 32 THEN
        RAISE EXCEPTION 'headers must be at most 32 strings with lower-case names that are neither ce_* nor content-type'
            USING ERRCODE = 'OW004';
    END IF;
    SELECT coalesce(array_agg(h.key ORDER BY h.key), '{}'),
           coalesce(array_agg(convert_to(h.value, 'UTF8') ORDER BY h.key), '{}')
      INTO names, contents
      FROM jsonb_each_text(headers) h WHERE h.key <> 'traceparent';
    SELECT d.source INTO own_source FROM onceward.deployment d;
    -- The same upper bound as event_wire_size() in lib/domain/event.c, with its constants rounded up.
    bytes := 512 + octet_length(value) + 2 * octet_length(key) + octet_length(type) + octet_length(tenant)
           + octet_length(own_source) + 64 + 2 * octet_length(coalesce(headers ->> 'traceparent', ''))
           + (SELECT coalesce(sum(octet_length(h.key) + octet_length(h.value) + 10), 0) FROM jsonb_each_text(headers) h);
    IF bytes > bytes_max THEN
        RAISE EXCEPTION 'the event may take % bytes, topic "%" takes %', bytes, topic, bytes_max
            USING ERRCODE = 'OW005';
    END IF;
    -- A crash must not undo what a relay may already have published.
    IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    INSERT INTO onceward.outbox (tenant, event_id, topic, key, type, source, subject, time, content_type, traceparent,
                                 header_names, header_values, value)
    VALUES (tenant, event_id, topic, key, type, own_source, key, clock_timestamp(), 'application/json',
            headers ->> 'traceparent', names, contents, value);
    RETURN event_id;
END
$$;
COMMENT ON FUNCTION onceward.publish(text, text, text, json, jsonb, uuid, text) IS
    'puts one event into the outbox inside the caller''s own transaction and gives its id';

-- ---------------------------------------------------------------------------------------------------------------
-- Relays. A lane belongs to one relay, and the last row of its log says how far it has gone.

CREATE TABLE onceward.relays (
    relay       text PRIMARY KEY CHECK (relay <> '' AND octet_length(relay) <= 255),
    incarnation uuid NOT NULL,
    until       timestamptz NOT NULL,
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON COLUMN onceward.relays.until IS
    'end of the lease by clock_timestamp() of this database; further ahead than a lease''s length counts as expired';

CREATE TABLE onceward.lanes (
    lane  smallint PRIMARY KEY CHECK (lane BETWEEN 0 AND 7),
    owner text
);
COMMENT ON COLUMN onceward.lanes.owner IS 'a relay, or null where the lane is free';

CREATE TABLE onceward.lane_progress (
    lane               smallint NOT NULL REFERENCES onceward.lanes,
    seq                bigint NOT NULL,
    owner              text NOT NULL,
    incarnation        uuid NOT NULL,
    attempt            uuid NOT NULL,
    kind               text NOT NULL CHECK (kind IN ('initial', 'taken', 'moved', 'rebased')),
    snapshot_from      pg_snapshot NOT NULL,
    from_floor         bigint NOT NULL,
    snapshot_to        pg_snapshot,
    to_floor           bigint,
    to_ceiling         bigint,
    position           bigint NOT NULL,
    claimed_to         bigint NOT NULL,
    claimed_count      integer NOT NULL DEFAULT 0,
    starts             integer NOT NULL DEFAULT 0,
    settled_ids        bigint[],
    settled_least      bigint,
    settled_greatest   bigint,
    settled_topics     text[],
    settled_partitions integer[],
    settled_offsets    bigint[],
    system_identifier  bigint NOT NULL,
    created_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (lane, seq),
    CHECK ((snapshot_to IS NULL) = (to_floor IS NULL) AND (snapshot_to IS NULL) = (to_ceiling IS NULL))
);
COMMENT ON TABLE onceward.lane_progress IS
    'insert-only log; its last row is the lane''s cursor. Never updated; never delete the last row of a lane';
COMMENT ON COLUMN onceward.lane_progress.position IS
    'greatest settled id of the difference (snapshot_from, snapshot_to); means nothing without that snapshot_to';
COMMENT ON COLUMN onceward.lane_progress.claimed_to IS 'greatest id that was handed to the broker';
CREATE INDEX lane_progress_by_settled ON onceward.lane_progress
    USING gist (int8range(settled_least, settled_greatest, '[]')) WHERE settled_ids IS NOT NULL;

INSERT INTO onceward.lanes (lane) SELECT generate_series(0, 7);
-- Row 0 of every lane: a snapshot in which nothing is visible.
INSERT INTO onceward.lane_progress (lane, seq, owner, incarnation, attempt, kind, snapshot_from, from_floor,
                                    position, claimed_to, system_identifier)
SELECT lane, 0, 'migration', '00000000-0000-0000-0000-000000000000', gen_random_uuid(), 'initial', '3:3:', 0, 0, 0,
       (SELECT system_identifier FROM pg_control_system())
  FROM onceward.lanes;

CREATE TABLE onceward.deferred (
    id            bigint PRIMARY KEY,
    lane          smallint NOT NULL,
    tenant        text NOT NULL,
    event_id      uuid NOT NULL,
    topic         text NOT NULL,
    key           text NOT NULL,
    type          text NOT NULL,
    source        text NOT NULL,
    subject       text,
    time          timestamptz NOT NULL,
    content_type  text,
    dataschema    text,
    traceparent   text,
    header_names  text[] NOT NULL,
    header_values bytea[] NOT NULL,
    value         bytea NOT NULL,
    state         text NOT NULL CHECK (state IN ('parked', 'held', 'waiting', 'in_doubt', 'published', 'discarded')),
    reason_code   text NOT NULL,
    reason        text NOT NULL,
    attempts      integer NOT NULL DEFAULT 0,
    wish          text CHECK (wish IN ('retry', 'discard')),
    deferred_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON COLUMN onceward.deferred.state IS
    'parked: the broker refused it, a person decides; held: behind another of its (topic, key); '
    'waiting: its topic is unavailable; in_doubt: handed over, no report yet; published and discarded: done';
CREATE INDEX deferred_by_key ON onceward.deferred (lane, topic, key, id) WHERE state NOT IN ('published', 'discarded');

-- ---------------------------------------------------------------------------------------------------------------
-- Consumers.

CREATE TYPE onceward.delivery_status AS ENUM ('claimed', 'completed', 'failed');

CREATE TABLE onceward.inbox_scopes (
    scope_id   integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer   text NOT NULL CHECK (consumer <> '' AND octet_length(consumer) <= 255),
    scope      text NOT NULL DEFAULT 'live' CHECK (scope <> '' AND octet_length(scope) <= 255),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (consumer, scope)
);

-- The dedup of events of our own sources. Partitioned by its own key and nothing else: with any other
-- partition key the same id could stand twice.
CREATE TABLE onceward.inbox (
    scope_id     integer NOT NULL,
    status       onceward.delivery_status NOT NULL DEFAULT 'completed',
    payload_hash bigint NOT NULL,
    applied_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    event_id     uuid NOT NULL,
    PRIMARY KEY (scope_id, event_id)
) PARTITION BY RANGE (event_id);
COMMENT ON COLUMN onceward.inbox.payload_hash IS 'first 8 bytes of SHA-256 of the value, big-endian';

CREATE TABLE onceward.inbox_partitions (
    partition  text PRIMARY KEY,
    first_id   uuid NOT NULL UNIQUE,
    end_id     uuid NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK (first_id < end_id)
);

-- Makes weekly inbox partitions (weeks begin on Monday, UTC), from five weeks back at the first call, until more
-- than two weeks past a moment are covered. Returns the number made.
CREATE FUNCTION onceward.inbox_make_partitions(moment timestamptz DEFAULT now()) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
AS $$
DECLARE
    week timestamptz;
    made integer := 0;
    name text;
BEGIN
    IF moment > now() + interval '1 year' THEN
        RAISE EXCEPTION 'no inbox partitions are made more than a year ahead' USING ERRCODE = 'OW006';
    END IF;
    -- Without the lock: the usual answer is that nothing is to be done.
    IF EXISTS (SELECT FROM onceward.inbox_partitions WHERE end_id > onceward.uuid_v7_floor(moment + interval '2 weeks')) THEN
        RETURN 0;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('onceward.inbox_make_partitions', 0));
    SELECT onceward.uuid_v7_time(end_id) INTO week FROM onceward.inbox_partitions ORDER BY end_id DESC LIMIT 1;
    week := coalesce(week, date_trunc('week', now()) - interval '5 weeks');
    WHILE week <= moment + interval '2 weeks' LOOP
        name := 'inbox_' || to_char(week, 'YYYYMMDD');
        EXECUTE format('CREATE TABLE onceward.%I (LIKE onceward.inbox INCLUDING DEFAULTS)', name);
        EXECUTE format('ALTER TABLE onceward.inbox ATTACH PARTITION onceward.%I FOR VALUES FROM (%L) TO (%L)',
                       name, onceward.uuid_v7_floor(week), onceward.uuid_v7_floor(week + interval '1 week'));
        INSERT INTO onceward.inbox_partitions (partition, first_id, end_id)
        VALUES (name, onceward.uuid_v7_floor(week), onceward.uuid_v7_floor(week + interval '1 week'));
        week := week + interval '1 week';
        made := made + 1;
    END LOOP;
    RETURN made;
END
$$;
SELECT onceward.inbox_make_partitions();

-- The dedup of events of anybody else: an id is any text, unique with its source.
CREATE TABLE onceward.inbox_foreign (
    scope_id     integer NOT NULL,
    status       onceward.delivery_status NOT NULL DEFAULT 'completed',
    payload_hash bigint NOT NULL,
    applied_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    source       text NOT NULL,
    id           text NOT NULL,
    PRIMARY KEY (scope_id, source, id)
);

CREATE TABLE onceward.sources (
    consumer   text NOT NULL,
    source     text NOT NULL,
    kind       text NOT NULL CHECK (kind IN ('own', 'foreign')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer, source)
);
COMMENT ON TABLE onceward.sources IS 'which inbox a source''s ids go to, pinned at first sight and never changed';

CREATE TABLE onceward.consumer_progress (
    consumer    text NOT NULL,
    scope       text NOT NULL,
    topic       text NOT NULL,
    partition   integer NOT NULL,
    seq         bigint NOT NULL,
    owner       text NOT NULL,
    incarnation uuid NOT NULL,
    attempt     uuid NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('registered', 'taken', 'moved', 'rewound')),
    next_offset bigint NOT NULL,
    last_offset bigint,
    last_hash   bytea,
    records     integer NOT NULL DEFAULT 0,
    cluster_id  text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer, scope, topic, partition, seq),
    CHECK ((last_offset IS NULL) = (last_hash IS NULL))
);
COMMENT ON TABLE onceward.consumer_progress IS
    'insert-only log; its last row is the partition''s cursor. Never updated; never delete the last row of a partition';
COMMENT ON COLUMN onceward.consumer_progress.last_hash IS
    'of the record at last_offset: on assignment it is read again, compared and skipped';

CREATE TABLE onceward.dead_letters (
    dead_letter_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer       text NOT NULL,
    scope          text NOT NULL,
    topic          text NOT NULL,
    partition      integer NOT NULL,
    record_offset  bigint NOT NULL,
    record_hash    bytea NOT NULL,
    record_time    timestamptz,
    event_id       text,
    source         text,
    key            bytea,
    value          bytea,
    header_names   text[] NOT NULL,
    header_values  bytea[] NOT NULL,
    reason_code    text NOT NULL,
    reason         text NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    published_at   timestamptz,
    UNIQUE (consumer, scope, topic, partition, record_offset, record_hash)
);
COMMENT ON COLUMN onceward.dead_letters.event_id IS 'ce_id as it came, where it could be read';
COMMENT ON COLUMN onceward.dead_letters.published_at IS 'when it was copied to the dead-letter topic';
CREATE INDEX dead_letters_by_event_id ON onceward.dead_letters (event_id);

-- ---------------------------------------------------------------------------------------------------------------
-- People.

CREATE TABLE onceward.audit (
    audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor    text NOT NULL DEFAULT session_user,
    action   text NOT NULL,
    object   text NOT NULL,
    detail   jsonb NOT NULL DEFAULT '{}'
);
