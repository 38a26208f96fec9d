-- SPDX-License-Identifier: Apache-2.0
--
-- One view per question. They feed the command line, its JSON and the HTTP routes alike.

-- Where is each lane? The last row of its log, with the lease of its owner.
CREATE VIEW onceward.lane_state AS
SELECT l.lane, l.owner, r.until, coalesce(r.until > clock_timestamp(), false) AS is_owned,
       p.seq, p.kind, p.snapshot_from, p.from_floor, p.snapshot_to, p.to_floor, p.to_ceiling,
       p.position, p.claimed_to, p.claimed_count, p.starts, p.created_at AS moved_at
  FROM onceward.lanes l
  LEFT JOIN onceward.relays r ON r.relay = l.owner
 CROSS JOIN LATERAL (SELECT * FROM onceward.lane_progress p WHERE p.lane = l.lane ORDER BY p.seq DESC LIMIT 1) p;

-- What became of each event on its way to the topic? A settled one is visible in `snapshot_from`, or in
-- `snapshot_to` and not past the position. To list what is not completed, add
-- `xid >= (SELECT xid_min FROM onceward.unsettled_bound)`: then the cost is that of the backlog.
CREATE VIEW onceward.events AS
SELECT o.id AS outbox_id, o.xid, o.lane, o.tenant, o.event_id, o.topic, o.key, o.type, o.source, o.subject, o.time,
       octet_length(o.value) AS value_bytes,
       CASE
           WHEN d.state IN ('parked', 'discarded') THEN 'failed'
           WHEN d.state = 'published' THEN 'completed'
           WHEN d.state = 'in_doubt' THEN 'claimed'
           WHEN d.state IS NOT NULL THEN 'pending'
           WHEN pg_visible_in_snapshot(o.xid, p.snapshot_from)
                OR (p.snapshot_to IS NOT NULL AND o.id <= p.position AND pg_visible_in_snapshot(o.xid, p.snapshot_to))
               THEN 'completed'
           WHEN p.snapshot_to IS NOT NULL AND o.id <= p.claimed_to AND pg_visible_in_snapshot(o.xid, p.snapshot_to)
               THEN 'claimed'
           ELSE 'pending'
       END AS status,
       d.state AS deferred_state, d.reason_code, d.reason
  FROM onceward.outbox o
  JOIN onceward.lane_state p ON p.lane = o.lane
  LEFT JOIN onceward.deferred d ON d.id = o.id;

-- Nothing that is unsettled has a lower xid, but for what is deferred.
CREATE VIEW onceward.unsettled_bound AS
SELECT min(pg_snapshot_xmin(snapshot_from)::text::bigint)::text::xid8 AS xid_min FROM onceward.lane_state;

-- What waits, oldest first? Neither settled nor deferred, among the first 100 001 rows above the lowest floor and those
-- of the transactions that were open in a lane's snapshot: so its cost is bounded, however much has piled up. Where
-- `is_cut` is true there may be more behind. It is read in the order of ids because the oldest must be among it.
CREATE VIEW onceward.backlog AS
WITH c AS MATERIALIZED (SELECT * FROM onceward.lane_state),
     lowest AS MATERIALIZED (SELECT min(from_floor) AS floor FROM c),
     late AS MATERIALIZED (SELECT DISTINCT x.xid FROM c CROSS JOIN LATERAL pg_snapshot_xip(c.snapshot_from) AS x (xid)),
     o AS MATERIALIZED (
         (SELECT id, xid, lane, topic, time FROM onceward.outbox
           WHERE id > (SELECT floor FROM lowest) ORDER BY id LIMIT 100001)
          UNION ALL
         (SELECT b.id, b.xid, b.lane, b.topic, b.time FROM late
            JOIN onceward.outbox b ON b.xid = late.xid AND b.id <= (SELECT floor FROM lowest) LIMIT 100001))
SELECT o.id AS outbox_id, o.lane, o.topic, o.time,
       c.snapshot_to IS NOT NULL AND o.id <= c.claimed_to AND pg_visible_in_snapshot(o.xid, c.snapshot_to) AS is_claimed,
       (SELECT count(*) > 100000 FROM o) AS is_cut
  FROM o
  JOIN c ON c.lane = o.lane
 WHERE NOT pg_visible_in_snapshot(o.xid, c.snapshot_from)
   AND NOT (c.snapshot_to IS NOT NULL AND o.id <= c.position AND pg_visible_in_snapshot(o.xid, c.snapshot_to))
   AND NOT EXISTS (SELECT FROM onceward.deferred d WHERE d.id = o.id);

-- Where on the topic is an event? Ask with one outbox id: the index on the settled ranges serves that.
CREATE FUNCTION onceward.event_place(lane smallint, outbox_id bigint)
RETURNS TABLE (topic text, partition integer, record_offset bigint, settled_at timestamptz)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT p.settled_topics[i.n], p.settled_partitions[i.n], p.settled_offsets[i.n], p.created_at
      FROM onceward.lane_progress p
     CROSS JOIN LATERAL (SELECT array_position(p.settled_ids, $2) AS n) i
     WHERE int8range(p.settled_least, p.settled_greatest, '[]') @> $2 AND p.settled_ids IS NOT NULL
       AND p.lane = $1 AND i.n IS NOT NULL
     ORDER BY p.seq
     LIMIT 1
$$;

-- What became of events at the consumers whose inbox is in this database?
CREATE VIEW onceward.deliveries AS
SELECT s.consumer, s.scope, NULL::text AS source, i.event_id::text AS event_id, i.status::text AS status, i.applied_at AS at
  FROM onceward.inbox i JOIN onceward.inbox_scopes s USING (scope_id)
UNION ALL
SELECT s.consumer, s.scope, f.source, f.id, f.status::text, f.applied_at
  FROM onceward.inbox_foreign f JOIN onceward.inbox_scopes s USING (scope_id);

-- Where is each partition of each consumer? The last row of its log.
CREATE VIEW onceward.consumer_state AS
SELECT k.consumer, k.scope, k.topic, k.partition, p.seq, p.owner, p.kind, p.next_offset, p.last_offset, p.cluster_id,
       p.created_at AS moved_at
  FROM (SELECT DISTINCT consumer, scope, topic, partition FROM onceward.consumer_progress) k
 CROSS JOIN LATERAL (SELECT * FROM onceward.consumer_progress p
                      WHERE (p.consumer, p.scope, p.topic, p.partition) = (k.consumer, k.scope, k.topic, k.partition)
                      ORDER BY p.seq DESC LIMIT 1) p;

-- Is it flowing?
CREATE VIEW onceward.flow AS
SELECT (SELECT count(*) FROM onceward.lane_state WHERE is_owned) AS lanes_owned,
       (SELECT count(*) FROM onceward.relays WHERE until > clock_timestamp()) AS relays_alive,
       (SELECT min(moved_at) FROM onceward.lane_state) AS oldest_move_at,
       (SELECT count(*) FROM onceward.deferred WHERE state NOT IN ('published', 'discarded')) AS deferred_count,
       (SELECT count(*) FROM onceward.deferred WHERE state = 'parked') AS parked_count,
       (SELECT count(*) FROM onceward.dead_letters) AS dead_letter_count;
