#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Writes a ledger entry once for its token, and publishes it with it: ledger.sh TOKEN ACCOUNT AMOUNT [--twin]
#
# The token is the entry's key: whoever comes second inserts nothing, and so publishes nothing. It waits for a rival that has
# not committed, and takes over if that one fails. The twin's table has no such key: it looks, and then inserts.
# EXAMPLE_TOPIC is where the events go (example.submissions).
set -euo pipefail

[ $# -ge 3 ] || { printf 'Usage: %s TOKEN ACCOUNT AMOUNT [--twin]\n' "$0" >&2; exit 2; }
run() {
    PGOPTIONS='-c client_min_messages=warning' psql -XAtq -d "${ONCEWARD_DATABASE:?eval \"\$(deploy/quickstart --env)\" sets it}" \
        -v ON_ERROR_STOP=1 -v token="$token" -v account="$account" -v amount="$amount" -v topic="${EXAMPLE_TOPIC:-example.submissions}" -f -
}
token=$1 account=$2 amount=$3

if [ "${4:-}" != --twin ]; then
    run <<'SQL'
BEGIN;
SELECT pg_advisory_xact_lock(hashtext('example.ledger')) WHERE to_regclass('example.ledger') IS NULL \g /dev/null
CREATE TABLE IF NOT EXISTS example.ledger (token text PRIMARY KEY, account text NOT NULL, amount numeric NOT NULL);
COMMIT;
WITH entry AS (
    INSERT INTO example.ledger (token, account, amount) VALUES (:'token', :'account', :'amount')
    ON CONFLICT (token) DO NOTHING RETURNING *
)
SELECT onceward.publish(:'topic', account, 'ledger.entered', json_build_object('data', entry)) FROM entry;
SQL
else
    run <<'SQL'
BEGIN;
SELECT pg_advisory_xact_lock(hashtext('example.ledger')) WHERE to_regclass('example.ledger_twin') IS NULL \g /dev/null
CREATE TABLE IF NOT EXISTS example.ledger_twin (token text NOT NULL, account text NOT NULL, amount numeric NOT NULL);
COMMIT;
SELECT NOT EXISTS (SELECT FROM example.ledger_twin WHERE token = :'token') AS is_new \gset
\if :is_new
-- What else it looks at before it writes.
SELECT pg_sleep(0.3) \g /dev/null
WITH entry AS (
    INSERT INTO example.ledger_twin (token, account, amount) VALUES (:'token', :'account', :'amount') RETURNING *
)
SELECT onceward.publish(:'topic', account, 'ledger.entered', json_build_object('data', entry)) FROM entry;
\endif
SQL
fi
