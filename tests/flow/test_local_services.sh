#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# deploy/local as a person meets it: started twice, killed, on a taken port, with a stale or a stranger's pid, without
# what it needs. Each line of output is one behaviour; the first that is not as it should be ends the test.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
local_folder=$root/deploy/local
program=test_local_services
# shellcheck source=deploy/local/common.sh
. "$local_folder/common.sh"

folder=$(mktemp -d "${TMPDIR:-/tmp}/onceward-local.XXXXXX")
chmod 755 "$folder"
mapfile -t ports < <(free_ports 6)
export ONCEWARD_STATE=$folder/state
unset KAFKA_HOME PG_BINDIR
stranger=
listener=

clean_up() {
    local code=$?
    trap - EXIT
    "$local_folder/kafka" stop --timeout 15 >/dev/null 2>&1 || true
    "$local_folder/postgres" stop --immediate >/dev/null 2>&1 || true
    [ -z "$stranger" ] || kill "$stranger" 2>/dev/null || true
    [ -z "$listener" ] || kill "$listener" 2>/dev/null || true
    rm -rf "$folder"
    exit "$code"
}
trap clean_up EXIT

# expect CODE TEXT COMMAND...: the command ends with this code and says this text.
expect() {
    local code=$1 text=$2 output actual=0
    shift 2
    output=$("$@" 2>&1) || actual=$?
    if [ "$actual" -ne "$code" ] || [[ $output != *"$text"* ]]; then
        printf 'FAILED: %s\nexpected exit %s and "%s", got exit %s and:\n%s\n' "$*" "$code" "$text" "$actual" "$output" >&2
        exit 1
    fi
    printf 'ok: %s: exit %s, "%s"\n' "${*//$root\//}" "$code" "$text"
}

lives() { kill -0 "$1" || { printf 'FAILED: process %s was hurt\n' "$1" >&2; exit 1; }; }

sleep 600 &
stranger=$!
python3 -c 'import socket, sys, time
s = socket.socket(); s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen(); time.sleep(600)' "${ports[5]}" &
listener=$!
until port_is_taken "${ports[5]}"; do sleep 0.05; done

postgres=$local_folder/postgres
expect 2 "a command is missing" "$postgres"
expect 2 "unknown command begin" "$postgres" begin
expect 2 "not a number" "$postgres" start --port 70000
expect 2 "unknown option --fats" "$postgres" start --fats
expect 3 "does not run" "$postgres" status
expect 1 "no initdb in PG_BINDIR" env PG_BINDIR=/nonexistent "$postgres" start
expect 1 "port ${ports[5]} is taken" "$postgres" start --port "${ports[5]}"
expect 0 "ready on 127.0.0.1:${ports[0]}" "$postgres" start --port "${ports[0]}" --fast
expect 0 "runs already" "$postgres" start
expect 1 "stop it first" "$postgres" start --port "${ports[1]}"
expect 0 "fsync off" "$postgres" status
expect 0 "port=${ports[0]}" "$postgres" env
expect 0 "sent KILL" "$postgres" kill
expect 0 "fsync on" "$postgres" start --durable
expect 0 "stopped" "$postgres" stop
expect 0 "does not run" "$postgres" stop
printf '%s\n' "$stranger" >"$ONCEWARD_STATE/postgres/data/postmaster.pid"
expect 0 "does not run" "$postgres" stop
lives "$stranger"
expect 0 "is a stranger: removed" "$postgres" start
lives "$stranger"
expect 0 "ready on 127.0.0.1:${ports[0]}" "$postgres" restart --immediate
expect 0 "stopped" "$postgres" stop --immediate

kafka=$local_folder/kafka
expect 1 "no Java" env JAVA_HOME=/nonexistent "$kafka" start
expect 1 "no libs/kafka_*.jar" env KAFKA_HOME=/nonexistent "$kafka" start
mkdir "$folder/path"
ln -s /usr/bin/* "$folder/path/"
rm -f "$folder/path/mvn"
expect 1 "without Maven (mvn) its jars cannot be fetched" env ONCEWARD_CACHE="$folder/empty" PATH="$folder/path" "$kafka" fetch
expect 1 "port ${ports[5]} is taken" "$kafka" start --port "${ports[5]}"
expect 1 "port ${ports[5]} is taken" "$kafka" start --port "${ports[2]}" --controller-port "${ports[5]}"
expect 0 "ready on 127.0.0.1:${ports[2]}" "$kafka" start --port "${ports[2]}" --controller-port "${ports[3]}"
expect 0 "runs already" "$kafka" start
expect 1 "stop it first" "$kafka" start --port "${ports[4]}"
expect 0 "cluster " "$kafka" status
cluster=$("$kafka" status | sed -n 's/.*cluster //p')
expect 0 "sent KILL" "$kafka" kill
expect 3 "does not run" "$kafka" status
expect 0 "cluster $cluster" "$kafka" start
expect 0 "127.0.0.1:${ports[2]}" "$kafka" env
expect 0 "sent STOP" "$kafka" kill STOP
expect 0 "stopped" "$kafka" stop
printf '%s\n' "$stranger" >"$ONCEWARD_STATE/kafka/pid"
expect 0 "does not run" "$kafka" stop
lives "$stranger"

if is_root; then
    mkdir -m 700 "$folder/closed"
    mkdir -m 755 "$folder/closed/state"
    expect 1 "cannot work in" "$postgres" start --state "$folder/closed/state"
    expect 1 "is no folder of its own" "$postgres" start --state /tmp
fi
