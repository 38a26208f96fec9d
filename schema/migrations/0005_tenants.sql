-- SPDX-License-Identifier: Apache-2.0
--
-- Who may call the producer for which tenant, and who may read a tenant's rows with SQL of their own.

-- A bearer token of a caller. Kept is its SHA-256: what stands here opens nothing. Two of a name may live at once, so that
-- the new one is in use before the old one is revoked.
CREATE TABLE onceward.tokens (
    token_id   uuid PRIMARY KEY DEFAULT onceward.uuid_v7(),
    tenant     text NOT NULL CHECK (tenant ~ '^[A-Za-z0-9._~-]{1,128}$' AND tenant NOT IN ('.', '..')),
    name       text NOT NULL CHECK (name ~ '^[A-Za-z0-9._~-]{1,128}$'),
    slot       smallint NOT NULL CHECK (slot IN (1, 2)),
    token_hash bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
    scopes     text[] NOT NULL CHECK (cardinality(scopes) > 0 AND scopes <@ ARRAY['submit', 'read', 'operate', 'admin']),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz,
    revoked_at timestamptz
);
COMMENT ON COLUMN onceward.tokens.name IS 'the calling service, as its people call it';
COMMENT ON COLUMN onceward.tokens.token_hash IS 'SHA-256 of the whole token';
COMMENT ON COLUMN onceward.tokens.scopes IS
    'submit: create, fill and submit requests; read: see them and their events; operate: events and relays; admin: everything';
-- The constraint is the limit of two.
CREATE UNIQUE INDEX tokens_live ON onceward.tokens (tenant, name, slot) WHERE revoked_at IS NULL;

GRANT SELECT (token_hash, tenant, scopes, expires_at, revoked_at) ON onceward.tokens TO onceward_producer;
GRANT SELECT (token_id, tenant, name, slot, scopes, created_at, expires_at, revoked_at),
      INSERT (tenant, name, slot, token_hash, scopes, expires_at), UPDATE (revoked_at)
   ON onceward.tokens TO onceward_operator;

-- ---------------------------------------------------------------------------------------------------------------
-- Readers. A person or a report gets a role of their own that is a member of onceward_reader, and a row here for each
-- tenant that it may see. Row-level security does the rest; there is no setting that a session could change.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'onceward_reader') THEN
        CREATE ROLE onceward_reader NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL; -- Another database of this cluster was migrated at the same moment.
END
$$;

CREATE TABLE onceward.tenant_readers (
    role       name NOT NULL,
    tenant     text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (role, tenant)
);
COMMENT ON TABLE onceward.tenant_readers IS 'which tenants'' rows a member of onceward_reader sees';

GRANT USAGE ON SCHEMA onceward TO onceward_reader;
GRANT SELECT ON onceward.tenant_readers, onceward.requests, onceward.documents, onceward.submissions, onceward.outbox,
                onceward.deferred TO onceward_reader;
GRANT SELECT ON onceward.tenant_readers TO onceward_operator;

ALTER TABLE onceward.tenant_readers ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON onceward.tenant_readers FOR SELECT TO onceward_reader USING (role = current_user);
CREATE POLICY every_role ON onceward.tenant_readers TO onceward_operator USING (true);

-- On each table that has a tenant. The programs' roles see every tenant: a batch of the producer holds the calls of many,
-- so its statements name the tenant of each; relay and operator serve the deployment. What each may do, its grants say.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['requests', 'documents', 'submissions', 'idempotency_keys', 'outbox', 'deferred', 'tokens'] LOOP
        EXECUTE format('ALTER TABLE onceward.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY every_tenant ON onceward.%I TO onceward_producer, onceward_relay, onceward_operator '
                       'USING (true) WITH CHECK (true)', name);
        EXECUTE format('CREATE POLICY own_tenants ON onceward.%I FOR SELECT TO onceward_reader USING '
                       '(tenant IN (SELECT r.tenant FROM onceward.tenant_readers r WHERE r.role = current_user))', name);
    END LOOP;
END
$$;
