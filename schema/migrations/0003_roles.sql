-- SPDX-License-Identifier: Apache-2.0
--
-- One role per program, with what that program needs and nothing else. Made if absent, without a password:
-- how they log in is the deployment's affair. None of them owns anything. The tables that a consumer's sink
-- writes are the user's: grant them to onceward_consumer.

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['onceward_producer', 'onceward_relay', 'onceward_consumer', 'onceward_operator',
                                'onceward_publisher'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = name);
        BEGIN
            EXECUTE format('CREATE ROLE %I LOGIN NOINHERIT', name);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL; -- Another database of this cluster was migrated at the same moment.
        END;
    END LOOP;
END
$$;

REVOKE ALL ON SCHEMA onceward FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA onceward FROM PUBLIC;
GRANT USAGE ON SCHEMA onceward TO onceward_producer, onceward_relay, onceward_consumer, onceward_operator, onceward_publisher;
GRANT SELECT ON onceward.schema_migrations, onceward.deployment
   TO onceward_producer, onceward_relay, onceward_consumer, onceward_operator;

-- Whoever publishes from its own transaction.
GRANT EXECUTE ON FUNCTION onceward.publish(text, text, text, json, jsonb, uuid, text), onceward.uuid_v7() TO onceward_publisher;

-- Producer: writes the submit path, never xid, id or lane of the outbox; reads what its routes show.
GRANT SELECT ON onceward.topics, onceward.routes, onceward.requests, onceward.documents, onceward.submissions,
                onceward.idempotency_keys, onceward.outbox, onceward.outbox_partitions, onceward.outbox_id_seq,
                onceward.relays, onceward.lanes, onceward.lane_progress, onceward.deferred,
                onceward.inbox, onceward.inbox_foreign, onceward.inbox_scopes, onceward.dead_letters,
                onceward.lane_state, onceward.events, onceward.unsettled_bound, onceward.deliveries, onceward.flow
   TO onceward_producer;
GRANT INSERT, UPDATE ON onceward.requests TO onceward_producer;
GRANT INSERT ON onceward.documents, onceward.submissions TO onceward_producer;
GRANT INSERT, UPDATE, DELETE ON onceward.idempotency_keys TO onceward_producer;
GRANT INSERT (tenant, event_id, topic, key, type, source, subject, time, content_type, dataschema, traceparent,
              header_names, header_values, value) ON onceward.outbox TO onceward_producer;
GRANT EXECUTE ON FUNCTION onceward.outbox_make_partitions(), onceward.event_place(smallint, bigint),
                          onceward.uuid_v7(), onceward.uuid_v7_floor(timestamptz), onceward.uuid_v7_time(uuid) TO onceward_producer;

-- Relay: reads the outbox, writes its lease and its lanes' logs, defers.
GRANT SELECT ON onceward.topics, onceward.outbox, onceward.outbox_partitions, onceward.outbox_id_seq, onceward.relays,
                onceward.lanes, onceward.lane_progress, onceward.deferred, onceward.lane_state, onceward.events,
                onceward.unsettled_bound, onceward.flow TO onceward_relay;
GRANT INSERT, UPDATE, DELETE ON onceward.relays TO onceward_relay;
GRANT UPDATE (owner) ON onceward.lanes TO onceward_relay;
GRANT INSERT, DELETE ON onceward.lane_progress TO onceward_relay;
GRANT INSERT, UPDATE, DELETE ON onceward.deferred TO onceward_relay;
GRANT EXECUTE ON FUNCTION onceward.outbox_make_partitions() TO onceward_relay;

-- Consumer: its cursors, its inbox, its dead letters; the sink's tables are granted by their owner.
GRANT SELECT ON onceward.inbox_scopes, onceward.inbox, onceward.inbox_partitions, onceward.inbox_foreign, onceward.sources,
                onceward.consumer_progress, onceward.dead_letters, onceward.consumer_state, onceward.deliveries TO onceward_consumer;
GRANT INSERT ON onceward.inbox_scopes, onceward.inbox, onceward.inbox_foreign, onceward.sources,
                onceward.consumer_progress, onceward.dead_letters TO onceward_consumer;
GRANT UPDATE (status) ON onceward.inbox, onceward.inbox_foreign TO onceward_consumer;
GRANT DELETE ON onceward.consumer_progress TO onceward_consumer;
GRANT EXECUTE ON FUNCTION onceward.inbox_make_partitions(timestamptz), onceward.uuid_v7_floor(timestamptz),
                          onceward.uuid_v7_time(uuid) TO onceward_consumer;

-- Operator: looks at everything, sets up topics and routes, leaves a trace.
GRANT SELECT ON ALL TABLES IN SCHEMA onceward TO onceward_operator;
GRANT SELECT ON ALL SEQUENCES IN SCHEMA onceward TO onceward_operator;
GRANT INSERT, UPDATE, DELETE ON onceward.topics, onceward.routes TO onceward_operator;
GRANT INSERT ON onceward.consumer_progress, onceward.audit TO onceward_operator;
GRANT UPDATE (wish, changed_at) ON onceward.deferred TO onceward_operator;
GRANT EXECUTE ON FUNCTION onceward.outbox_make_partitions(), onceward.inbox_make_partitions(timestamptz),
                          onceward.event_place(smallint, bigint), onceward.uuid_v7(), onceward.uuid_v7_floor(timestamptz),
                          onceward.uuid_v7_time(uuid) TO onceward_operator;
