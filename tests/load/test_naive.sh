#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The naive twins do what is asked of them as long as nothing happens at the same time: one client after the other, and the
# checker finds nothing. Then each fault once, made by hand: a copy of a record happens twice, since neither inbox nor a
# key of the sink's own stands in its way; and a transaction that commits after a younger one is never published. What
# kills do to them is tests/load/run --kill.
#
#   test_naive.sh BIN_DIR
set -euo pipefail

program=test_naive
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=tests/support/system.sh
. "$here/../support/system.sh"
trap system_stop EXIT

sql() { psql -XAtq -d "$ONCEWARD_DATABASE" -v ON_ERROR_STOP=1 "$@"; }
publish() { printf "SELECT onceward.publish('%s', '%s', 'example.late', '{}')" "$system_topic" "$1"; }

# await TEXT SQL: until the statement says true.
await() {
    local deadline=$((SECONDS + system_seconds))
    until [ "$(sql -c "$2")" = t ]; do
        [ "$SECONDS" -lt "$deadline" ] || system_fail "$1 did not happen within $system_seconds s"
        sleep 0.05
    done
}

# check_says CODE LINE...: the checker's exit code, and lines among what it prints.
check_says() {
    local wanted=$1 code=0 said line
    shift
    said=$("$here/check" --naive --manifest "$system_folder/requests" --manifest "$system_folder/events" --fetch 10 --show 5) || code=$?
    grep -E '^(anomalies|not_applied)' <<<"$said" || true
    [ "$code" -eq "$wanted" ] || system_fail "the checker ended with $code"
    for line in "$@"; do
        grep -qx "$line" <<<"$said" || system_fail "the checker did not say: $line"
    done
}

system_naive=on
system_start "$1"
"$here/run" --requests 100 --clients 1 --repeat 5 --events 0 --topic "$system_topic" --out "$system_folder/requests" >"$system_folder/run.log"
"$here/run" --requests 0 --events 200 --keys 20 --writers 1 --topic "$system_topic" --out "$system_folder/events" >>"$system_folder/run.log"
events=$(sql -c "SELECT count(*) FROM onceward.outbox")
[ "$events" -gt 200 ]
check_says 0 'anomalies: 0' "compared_effects: $events"

# Neither a restart of the one nor of the other changes that.
for name in relay consumer; do
    system_signal "$name" TERM
    system_await "$name"
    system_run "$name"
done
check_says 0 'anomalies: 0' "compared_effects: $events"

[ "$(sql -c "SELECT count(*) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
             WHERE i.indrelid = 'example.effects'::regclass AND i.indisunique AND a.attname <> 'effect_id'")" -eq 0 ] ||
    system_fail "a unique key of example.effects would hide what is doubled"
"$here/copy" --topic "$system_topic" --records 20
await "the copies' effects" "SELECT count(*) = $events + 20 FROM example.effects"
check_says 1 'anomalies_doubled_effect: 20' 'anomalies: 20'

# The first transaction has its place in the outbox, and ends when the second has long been published.
sql -c "BEGIN; $(publish late-1); SELECT pg_sleep(3); COMMIT" >"$system_folder/late.log" &
late=$!
await "the first one's insert" "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"
sql -c "$(publish late-2)" >>"$system_folder/late.log"
await "the second one's effect" "SELECT count(*) = 1 FROM example.effects WHERE request_id = 'late-2'"
[ "$(sql -c "SELECT count(*) FROM onceward.outbox WHERE key = 'late-1'")" -eq 0 ] || system_fail "the late transaction was too early"
wait "$late"
check_says 1 'not_applied: 1' 'anomalies_doubled_effect: 20' 'anomalies_lost_effect: 1'
