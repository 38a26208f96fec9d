-- SPDX-License-Identifier: Apache-2.0
--
-- What the naive twins keep for themselves, beside Onceward's own tables. Apply it after `onceward migrate`.
-- A cursor here is a row that is updated: nobody is fenced, and no log tells how far anything has gone.

CREATE SCHEMA naive;

CREATE TABLE naive.relay_cursor (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    last    bigint NOT NULL
);
COMMENT ON COLUMN naive.relay_cursor.last IS 'greatest outbox id that was handed to Kafka''s library';
INSERT INTO naive.relay_cursor (last) VALUES (0);

CREATE TABLE naive.consumer_offsets (
    consumer    text NOT NULL,
    topic       text NOT NULL,
    partition   integer NOT NULL,
    next_offset bigint NOT NULL,
    PRIMARY KEY (consumer, topic, partition)
);

GRANT USAGE ON SCHEMA naive TO onceward_relay, onceward_consumer;
GRANT SELECT, UPDATE ON naive.relay_cursor TO onceward_relay;
GRANT SELECT, INSERT, UPDATE ON naive.consumer_offsets TO onceward_consumer;
