#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The broker goes away under load, cleanly, killed and frozen, longer than a session lasts, and comes back: the consumer
# goes on by itself and applies every event, each once. Of its cursors none may pass a record that was not applied.
#
#   test_broker_outage.sh BIN_DIR
set -euo pipefail

program=test_broker_outage
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=tests/support/system.sh
. "$here/../support/system.sh"
broker=$here/../../deploy/local/kafka
broker_state=$(mktemp -d "${TMPDIR:-/tmp}/onceward-outage.XXXXXX")

stop_all() {
    local code=$?
    trap - EXIT
    set +e
    "$broker" kill CONT --state "$broker_state" >/dev/null 2>&1
    "$broker" stop --state "$broker_state" --timeout 20 >/dev/null 2>&1
    rm -rf "$broker_state"
    (exit "$code")
    system_stop
}
trap stop_all EXIT


# publish COUNT: events of random keys, in one transaction.
publish() {
    system_query "SELECT count(onceward.publish('$system_topic', gen_random_uuid()::text, 'example.published', '{\"data\":{}}'))
             FROM generate_series(1, $1)" >/dev/null
}

# Every event of the outbox has exactly one effect.
await_effects() {
    local deadline=$((SECONDS + $1)) missing
    until missing=$(system_query "SELECT count(*) FROM onceward.outbox o WHERE NOT EXISTS
                             (SELECT FROM example.effects e WHERE e.event_id = o.event_id)") && [ "$missing" -eq 0 ]; do
        if [ "$SECONDS" -ge "$deadline" ]; then
            "$system_bin/onceward" status >&2 || true
            tail -n 15 "$system_folder/consumer.log" >&2
            system_fail "$missing events have no effect after $2"
            return 1
        fi
        sleep 0.2
    done
    [ "$(system_query 'SELECT count(*) - count(DISTINCT event_id) FROM example.effects')" -eq 0 ] ||
        system_fail "an event has two effects after $2"
}

# outage WHAT: away while events come in, back, and a little more traffic, which must not lead past what was missed.
outage() {
    publish 300
    await_effects 30 'before the outage'
    local relay_lines
    relay_lines=$(($(wc -l <"$system_folder/relay.log") + 1))
    case $1 in
        stopped) "$broker" stop --state "$broker_state" >/dev/null ;;
        killed) "$broker" kill --state "$broker_state" >/dev/null ;;
        frozen) "$broker" kill STOP --state "$broker_state" >/dev/null ;;
    esac
    publish "${OUTAGE_EVENTS:-20000}"
    sleep 12
    grep -q 'relay.publish_delayed' <(tail -n "+$relay_lines" "$system_folder/relay.log") ||
        system_fail "the relay does not say that the broker is away ($1)"
    case $1 in
        frozen) "$broker" kill CONT --state "$broker_state" >/dev/null ;;
        *) "$broker" start --state "$broker_state" >/dev/null ;;
    esac
    sleep 2
    publish 30
    await_effects 60 "the broker was $1"
    grep -q 'relay.publish_resumed' <(tail -n "+$relay_lines" "$system_folder/relay.log") ||
        system_fail "the relay does not say that nothing is delayed any more ($1)"
    printf 'the broker was %s: every event has its one effect\n' "$1"
}

mapfile -t ports < <(free_ports 2)
"$broker" start --state "$broker_state" --port "${ports[0]}" --controller-port "${ports[1]}" >/dev/null
export ONCEWARD_TEST_KAFKA=127.0.0.1:${ports[0]}
system_start "$1"
for how in ${OUTAGES:-stopped killed}; do
    outage "$how"
done
system_versions
