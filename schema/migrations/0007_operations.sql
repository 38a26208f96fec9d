-- SPDX-License-Identifier: Apache-2.0
--
-- What waits for a person, and how that ends: partitions that a consumer stopped, consumers that are no more, dead letters
-- that somebody has dealt with.

-- Why a partition stands still. A stop belongs to the row of the log that its consumer stopped at, and is in force while
-- that row is the last: whoever takes or rewinds the partition ends it without writing here.
CREATE TABLE onceward.consumer_stops (
    consumer   text NOT NULL,
    scope      text NOT NULL,
    topic      text NOT NULL,
    partition  integer NOT NULL,
    seq        bigint NOT NULL,
    attempt    uuid NOT NULL,
    code       text NOT NULL CHECK (code <> ''),
    reason     text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer, scope, topic, partition, attempt)
);
COMMENT ON COLUMN onceward.consumer_stops.attempt IS
    'of the row in consumer_progress, as seq: a row of the same seq after a restore is another one';
GRANT SELECT, INSERT, DELETE ON onceward.consumer_stops TO onceward_consumer;
GRANT SELECT ON onceward.consumer_stops TO onceward_operator;

-- That nobody is to miss a consumer any more. Nothing of it is deleted, and it comes back by being started.
CREATE TABLE onceward.consumer_retirements (
    consumer   text NOT NULL CHECK (consumer <> ''),
    retired_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer, retired_at)
);
GRANT SELECT, INSERT ON onceward.consumer_retirements TO onceward_operator;

ALTER TABLE onceward.dead_letters ADD COLUMN acknowledged_at timestamptz,
                                  ADD COLUMN acknowledged_by text,
                                  ADD COLUMN acknowledged_reason text;
COMMENT ON COLUMN onceward.dead_letters.acknowledged_at IS 'when a person said that nothing is left to be done about it';
CREATE INDEX dead_letters_open ON onceward.dead_letters (consumer, scope) WHERE acknowledged_at IS NULL;
GRANT UPDATE (acknowledged_at, acknowledged_by, acknowledged_reason) ON onceward.dead_letters TO onceward_operator;

-- Does a process of this consumer have a session here? They are seen by the name that they give themselves
-- (consumer/consumer.c), of which Postgres keeps 63 bytes.
CREATE FUNCTION onceward.consumer_is_connected(consumer text) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT EXISTS (SELECT FROM pg_stat_activity a
                    WHERE a.datname = current_database() AND a.application_name = left('onceward-consumer ' || $1, 63))
$$;
REVOKE ALL ON FUNCTION onceward.consumer_is_connected(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION onceward.consumer_is_connected(text) -- Views call functions by the right of who asks them.
   TO onceward_operator, onceward_producer, onceward_relay, onceward_consumer;

-- Which consumers are retired? Those that nobody has started since.
CREATE VIEW onceward.retired_consumers AS
SELECT r.consumer, r.retired_at
  FROM (SELECT consumer, max(retired_at) AS retired_at FROM onceward.consumer_retirements GROUP BY consumer) r
 WHERE NOT EXISTS (SELECT FROM onceward.consumer_progress p WHERE p.consumer = r.consumer AND p.created_at > r.retired_at)
   AND NOT onceward.consumer_is_connected(r.consumer);
GRANT SELECT ON onceward.retired_consumers TO onceward_operator;

-- As in 0002_views.sql, with why it stands still.
CREATE OR REPLACE VIEW onceward.consumer_state AS
SELECT k.consumer, k.scope, k.topic, k.partition, p.seq, p.owner, p.kind, p.next_offset, p.last_offset, p.cluster_id,
       p.created_at AS moved_at, s.code AS stop_code, s.reason AS stop_reason, s.created_at AS stopped_at
  FROM (SELECT DISTINCT consumer, scope, topic, partition FROM onceward.consumer_progress) k
 CROSS JOIN LATERAL (SELECT * FROM onceward.consumer_progress p
                      WHERE (p.consumer, p.scope, p.topic, p.partition) = (k.consumer, k.scope, k.topic, k.partition)
                      ORDER BY p.seq DESC LIMIT 1) p
  LEFT JOIN onceward.consumer_stops s
    ON (s.consumer, s.scope, s.topic, s.partition, s.attempt) = (k.consumer, k.scope, k.topic, k.partition, p.attempt);

-- As in 0002_views.sql; of the dead letters those that wait for a person.
CREATE OR REPLACE VIEW onceward.flow AS
SELECT (SELECT count(*) FROM onceward.lane_state WHERE is_owned) AS lanes_owned,
       (SELECT count(*) FROM onceward.relays WHERE until > clock_timestamp()) AS relays_alive,
       (SELECT min(moved_at) FROM onceward.lane_state) AS oldest_move_at,
       (SELECT count(*) FROM onceward.deferred WHERE state NOT IN ('published', 'discarded')) AS deferred_count,
       (SELECT count(*) FROM onceward.deferred WHERE state = 'parked') AS parked_count,
       (SELECT count(*) FROM onceward.dead_letters d
         WHERE d.acknowledged_at IS NULL AND d.consumer NOT IN (SELECT r.consumer FROM onceward.retired_consumers r))
           AS dead_letter_count;
