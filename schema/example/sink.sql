WITH newest AS (
    SELECT DISTINCT ON (ce_tenantid, kafka_key)
           ce_tenantid AS tenant, kafka_key AS request_id, ce_id::uuid AS event_id, ce_sequence, ce_time AS submitted_at,
           value_json -> 'data' AS data, value_json -> 'documents' AS documents, value_bytes AS value
      FROM events
     ORDER BY ce_tenantid, kafka_key, ce_sequence DESC
), counted AS (
    INSERT INTO example.effects (event_id, tenant, request_id, ce_sequence, value_sha256, kafka_partition, kafka_offset)
    SELECT ce_id::uuid, ce_tenantid, kafka_key, ce_sequence, sha256(value_bytes), kafka_partition, kafka_offset
      FROM events
     ORDER BY ord
)
INSERT INTO example.submissions AS s (tenant, request_id, event_id, ce_sequence, submitted_at, data, documents, value)
SELECT tenant, request_id, event_id, ce_sequence, submitted_at, data, documents, value
  FROM newest
 ORDER BY tenant, request_id
ON CONFLICT (tenant, request_id) DO UPDATE
   SET event_id = excluded.event_id, ce_sequence = excluded.ce_sequence,
       submitted_at = excluded.submitted_at, data = excluded.data, documents = excluded.documents, value = excluded.value
 WHERE excluded.ce_sequence > s.ce_sequence
