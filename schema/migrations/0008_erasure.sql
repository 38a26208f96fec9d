-- SPDX-License-Identifier: Apache-2.0
--
-- Content can go while the guarantee stays: of a submitted request its data, its documents' bytes and names are removed,
-- but never its row, its fingerprint and its documents' hashes, and above all not its submission. So a repetition is still
-- recognised, and so is one that says something else.

ALTER TABLE onceward.requests ADD COLUMN erased_at timestamptz;
COMMENT ON COLUMN onceward.requests.erased_at IS 'when data was removed, by retention or by a person; null: it was not';
ALTER TABLE onceward.documents ALTER COLUMN content DROP NOT NULL;
COMMENT ON COLUMN onceward.documents.content IS 'null: removed, by retention or by a person';
COMMENT ON COLUMN onceward.documents.name IS 'empty: removed together with the request''s data';

-- What may expire, the oldest first. What is erased leaves both.
CREATE INDEX requests_by_age ON onceward.requests (created_at) WHERE erased_at IS NULL;
CREATE INDEX documents_by_age ON onceward.documents (created_at) WHERE content IS NOT NULL;

-- The producer's reaper. It deletes submissions only where the setting submission_kept_days says so.
GRANT UPDATE (name, content) ON onceward.documents TO onceward_producer;
GRANT DELETE ON onceward.requests, onceward.documents, onceward.submissions TO onceward_producer;

-- `onceward erase`. Of an outbox row the payload alone may change, and only once its event is published: relays read
-- rows by id and xid, which stay, so the insert-only order that they rest on is not touched.
GRANT UPDATE (data, erased_at), DELETE ON onceward.requests TO onceward_operator;
GRANT UPDATE (name, content), DELETE ON onceward.documents TO onceward_operator;
GRANT UPDATE (body) ON onceward.idempotency_keys TO onceward_operator;
GRANT UPDATE (value) ON onceward.outbox TO onceward_operator;
GRANT UPDATE (value) ON onceward.deferred TO onceward_operator;

-- What these rights are for, and no more: content is removed, never altered, and a submission of today is never forgotten,
-- whatever a program gets wrong.
CREATE POLICY only_old ON onceward.submissions AS RESTRICTIVE FOR DELETE TO onceward_producer
    USING (submitted_at < clock_timestamp() - interval '1 day');
CREATE POLICY only_remove ON onceward.documents AS RESTRICTIVE FOR UPDATE TO onceward_producer, onceward_operator
    USING (true) WITH CHECK (content IS NULL);
CREATE POLICY only_remove ON onceward.requests AS RESTRICTIVE FOR UPDATE TO onceward_operator
    USING (true) WITH CHECK (data IS NULL);
CREATE POLICY only_open ON onceward.requests AS RESTRICTIVE FOR DELETE TO onceward_operator
    USING (NOT EXISTS (SELECT FROM onceward.submissions s
                        WHERE s.tenant = requests.tenant AND s.request_id = requests.request_id));
CREATE POLICY only_remove ON onceward.outbox AS RESTRICTIVE FOR UPDATE TO onceward_operator
    USING (true) WITH CHECK (value = convert_to('{"erased":true}', 'UTF8'));

-- A wish is an update, too, so here the old value has to be looked at.
CREATE FUNCTION onceward.deferred_only_remove() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'the payload of event % can be erased once it is done, and not be changed', OLD.event_id
        USING ERRCODE = '42501';
END
$$;
CREATE TRIGGER only_remove BEFORE UPDATE OF value ON onceward.deferred FOR EACH ROW
    WHEN (NEW.value IS DISTINCT FROM OLD.value AND (NEW.value <> convert_to('{"erased":true}', 'UTF8')
          OR OLD.state NOT IN ('published', 'discarded')))
    EXECUTE FUNCTION onceward.deferred_only_remove();
REVOKE ALL ON FUNCTION onceward.deferred_only_remove() FROM PUBLIC;

-- Whoever waits for an event to be applied does not wait for a consumer that is no more.
GRANT SELECT ON onceward.retired_consumers TO onceward_producer;
