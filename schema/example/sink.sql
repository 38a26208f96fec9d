WITH newest AS (
    SELECT DISTINCT ON (kafka_key)
           kafka_key AS request_id, ce_id::uuid AS event_id, ce_tenantid AS tenant, ce_sequence, ce_time AS submitted_at,
           value_json -> 'data' AS data, value_json -> 'documents' AS documents, value_bytes AS value
      FROM events
     ORDER BY kafka_key, ce_sequence DESC
), counted AS (
    INSERT INTO example.effects (event_id, request_id, ce_sequence, value_sha256, kafka_partition, kafka_offset)
    SELECT ce_id::uuid, kafka_key, ce_sequence, sha256(value_bytes), kafka_partition, kafka_offset
      FROM events
     ORDER BY ord
)
INSERT INTO example.submissions AS s (request_id, event_id, tenant, ce_sequence, submitted_at, data, documents, value)
SELECT request_id, event_id, tenant, ce_sequence, submitted_at, data, documents, value
  FROM newest
 ORDER BY request_id
ON CONFLICT (request_id) DO UPDATE
   SET event_id = excluded.event_id, tenant = excluded.tenant, ce_sequence = excluded.ce_sequence,
       submitted_at = excluded.submitted_at, data = excluded.data, documents = excluded.documents, value = excluded.value
 WHERE excluded.ce_sequence > s.ce_sequence
