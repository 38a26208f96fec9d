#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The acknowledgement of a record that was written is lost on its way to the relay (a proxy before the broker swallows it and
# cuts the connection): a repeat follows, not a loss. While the relay lives the broker recognises the repeat; if the relay
# dies before it hears, the event is on the topic twice, and the consumer drops the copy. Where the request itself was lost
# the event is published after all, by the relay; the naive twin, which waits for no acknowledgement, loses it.
#
#   test_lost_ack.sh BIN_DIR
set -euo pipefail

program=test_lost_ack
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=tests/support/system.sh
. "$here/../support/system.sh"
broker=$system_root/deploy/local/kafka
ack_proxy=$system_root/tests/support/ack_proxy
broker_state=$(mktemp -d "${TMPDIR:-/tmp}/onceward-lost-ack.XXXXXX")
socket=$broker_state/proxy.socket
proxy_pid=

stop_all() {
    local code=$?
    trap - EXIT
    set +e
    [ -z "$proxy_pid" ] || kill -s TERM "$proxy_pid" 2>/dev/null
    "$broker" stop --state "$broker_state" --timeout 20 >/dev/null 2>&1
    rm -rf "$broker_state"
    (exit "$code")
    system_stop
}
trap stop_all EXIT

publish() { system_query "SELECT onceward.publish('$system_topic', '$1', 'example.published', '{\"data\":{}}')" >/dev/null; }

# until_true TEXT COMMAND...
until_true() {
    local what=$1 deadline=$((SECONDS + system_seconds))
    shift
    until "$@"; do
        if [ "$SECONDS" -ge "$deadline" ]; then
            proxy status >&2
            tail -n 15 "$system_folder/relay.log" >&2
            system_fail "$what: not within $system_seconds s"
            return 1
        fi
        sleep 0.05
    done
}

# proxy COMMAND; count NAME: one of its counts.
proxy() { "$ack_proxy" --control "$socket" --send "$*"; }
count() { proxy status | sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p"; }
has_counted() { [ "$(count "$1")" -ge "$2" ]; }
has_effects() { [ "$(system_query "SELECT count(*) FROM example.effects WHERE request_id = '$1'")" -eq "$2" ]; }
has_cursor_passed() { [ "$(system_query "SELECT last >= (SELECT max(id) FROM onceward.outbox) FROM naive.relay_cursor")" = t ]; }
records() { kcat -q -C -b "$ONCEWARD_KAFKA" -t "$system_topic" -o beginning -e -f '%k\n' | grep -cx "$1" || true; }
has_records() { [ "$(records "$1")" -ge "$2" ]; }
duplicates() { curl -sf "http://127.0.0.1:${system_ports[consumer]}/metrics" | sed -n 's/^onceward_consumer_duplicates_total //p'; }

# restart_killed: the relay dies now, and what the proxy still had in mind is forgotten before the next one begins.
restart_killed() {
    system_signal relay KILL
    system_await relay || [ $? -eq 137 ]
    proxy swallow 0 >/dev/null
    proxy cut 0 >/dev/null
    system_run relay
}

start_broker() {
    local first proxy_port
    first=$(free_port_range 4)
    proxy_port=$((first + 3))
    "$broker" start --state "$broker_state" --port "$first" --advertised-port "$proxy_port"
    "$ack_proxy" --control "$socket" --listen "$proxy_port" --upstream "127.0.0.1:$((first + 2))" >"$broker_state/proxy.log" &
    proxy_pid=$!
    until [ -S "$socket" ]; do
        kill -0 "$proxy_pid" || system_fail "the proxy ended"
        sleep 0.05
    done
    export ONCEWARD_TEST_KAFKA=127.0.0.1:$first
    # The relay alone goes through the proxy: the others are not what is tried here.
    system_relay_kafka=127.0.0.1:$proxy_port
}

system_seconds=60 # Two cores may have other work.
start_broker
system_start "$1"

# 1. Acknowledgements swallowed while the relay lives: everything arrives, in order, and the topic holds no copy.
"$system_root/tests/load/run" --requests 0 --events 400 --keys 20 --topic "$system_topic" --out "$system_folder/manifest" \
    >"$system_folder/load.log" &
load=$!
for swallowed in 1 2 3 4 5; do
    proxy swallow 1 >/dev/null
    publish "more-$swallowed"
    until_true "acknowledgement $swallowed is swallowed" has_counted swallowed "$swallowed"
done
wait "$load"
swallowed=$(count swallowed)
checked=$("$system_root/tests/load/check" --manifest "$system_folder/manifest" --fetch 0) || { printf '%s\n' "$checked"; system_fail "something was lost"; }
grep -qx 'anomalies: 0' <<<"$checked"
grep -qx 'topic_copies: 0' <<<"$checked" || system_fail "the broker did not recognise a repeat of the same session"
printf '%s acknowledgements swallowed: nothing lost, no copy on the topic, order per key right\n' "$swallowed"
[ "$swallowed" -ge 5 ]

# 2. The relay dies before it hears that its record was written.
before=$(duplicates)
proxy swallow 1000000 >/dev/null
publish swallowed-and-killed
until_true "the acknowledgement is swallowed" has_counted swallowed $((swallowed + 1))
restart_killed
until_true "the effect" has_effects swallowed-and-killed 1
until_true "the repeat" has_records swallowed-and-killed 2
system_await_consumed
has_effects swallowed-and-killed 1 || system_fail "the repeat had an effect of its own"
[ "$(duplicates)" -gt "$before" ] || system_fail "the consumer dropped no duplicate"
printf 'relay killed before a swallowed acknowledgement: %s records of the event on the topic, 1 effect, %s dropped\n' \
    "$(records swallowed-and-killed)" "$(($(duplicates) - before))"

# 3. The request is lost, and the relay dies: published by the next one.
proxy cut 1000000 >/dev/null
publish cut-and-killed
until_true "the request is lost" has_counted requests_cut 1
[ "$(records cut-and-killed)" -eq 0 ] || system_fail "the request was not lost"
restart_killed
until_true "the effect" has_effects cut-and-killed 1
printf 'relay killed behind a lost request: published again, 1 effect\n'

# 4. The same with the naive relay: lost, and it goes on as if nothing had been.
system_signal relay TERM
system_await relay
psql -Xq -d "$ONCEWARD_DATABASE" -v ON_ERROR_STOP=1 -1 -f "$system_root/tests/load/naive.sql"
system_query "UPDATE naive.relay_cursor SET last = (SELECT max(id) FROM onceward.outbox)"
system_naive=on
system_run relay
cut=$(count requests_cut)
proxy cut 1000000 >/dev/null
publish naive-cut-and-killed
until_true "the request is lost" has_counted requests_cut $((cut + 1))
until_true "the naive cursor" has_cursor_passed
restart_killed
publish naive-marker
until_true "the marker's effect" has_effects naive-marker 1
if [ "$(records naive-cut-and-killed)" -ne 0 ] || ! has_effects naive-cut-and-killed 0; then
    system_fail "the naive relay lost nothing"
fi
printf 'naive relay killed behind a lost request: lost\n'
