-- SPDX-License-Identifier: Apache-2.0
--
-- The tables of the example: what a subscriber to the topic example.submissions could keep. They are a user's tables,
-- no part of Onceward's schema; apply them to the consumer's database after `onceward migrate`.
--
-- With a table mapping the consumer writes example.submissions only:
--
--   table    example.submissions, key tenant, request_id
--   columns  request_id=kafka_key event_id=ce_id tenant=ce_tenantid ce_sequence=ce_sequence submitted_at=ce_time
--            data=/data documents=/documents value=value
--
-- With the statement in sink.sql beside this file it writes both tables.

CREATE SCHEMA IF NOT EXISTS example;

-- The newest event of each tenant's key: two tenants can use the same one. json, not jsonb: data stays as it was written.
CREATE TABLE IF NOT EXISTS example.submissions (
    tenant       text NOT NULL,
    request_id   text NOT NULL,
    event_id     uuid NOT NULL,
    ce_sequence  bigint NOT NULL,
    submitted_at timestamptz NOT NULL,
    data         json,
    documents    json,
    value        bytea NOT NULL,
    PRIMARY KEY (tenant, request_id)
);
COMMENT ON COLUMN example.submissions.request_id IS 'the record''s key; of an event of another publisher, that publisher''s key';
COMMENT ON COLUMN example.submissions.ce_sequence IS 'only a greater one replaces the row';
COMMENT ON COLUMN example.submissions.value IS 'the record''s value, byte for byte';

-- One row for every effect, without a unique key on purpose: an effect that happens twice stands here twice.
CREATE TABLE IF NOT EXISTS example.effects (
    effect_id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id        uuid NOT NULL,
    tenant          text NOT NULL,
    request_id      text NOT NULL,
    ce_sequence     bigint NOT NULL,
    value_sha256    bytea NOT NULL,
    kafka_partition integer NOT NULL,
    kafka_offset    bigint NOT NULL,
    applied_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Tables that were made before the tenant was part of the key.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_constraint WHERE conrelid = 'example.submissions'::regclass AND contype = 'p'
                  AND cardinality(conkey) = 1) THEN
        ALTER TABLE example.submissions DROP CONSTRAINT submissions_pkey, ADD PRIMARY KEY (tenant, request_id);
        ALTER TABLE example.effects ADD COLUMN tenant text;
        UPDATE example.effects e SET tenant = coalesce((SELECT s.tenant FROM example.submissions s
                                                         WHERE s.request_id = e.request_id), '');
        ALTER TABLE example.effects ALTER COLUMN tenant SET NOT NULL;
    END IF;
END
$$;

GRANT USAGE ON SCHEMA example TO onceward_consumer;
GRANT SELECT, INSERT, UPDATE ON example.submissions TO onceward_consumer;
GRANT SELECT, INSERT ON example.effects TO onceward_consumer;
