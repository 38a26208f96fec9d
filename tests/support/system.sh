# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A whole system for a test: a database and a topic of its own on the services that ONCEWARD_TEST_DATABASE and
# ONCEWARD_TEST_KAFKA name, and the programs on free ports. Everything the system writes lies in system_folder.
#
#   . tests/support/system.sh
#   trap system_stop EXIT
#   system_start BIN_DIR      sets and exports ONCEWARD_URL, ONCEWARD_DATABASE (owner), ONCEWARD_KAFKA, and system_topic
#
# With system_naive=on, set before system_start, the naive twins run in place of relay and consumer; they keep no logs, so
# system_await_consumed and system_versions tell nothing of them.
#
# system_relay_kafka, set before, is where the relay finds the broker: a proxy before it.
#
# system_run NAME, system_spawn NAME, system_signal NAME SIGNAL and system_await NAME act on one program: producer, relay,
# consumer.

system_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
program=${program:-$(basename "$0")}
# shellcheck source=deploy/local/common.sh
. "$system_root/deploy/local/common.sh"

declare -A system_pids=() system_ports=() system_commands=()
system_folder='' system_name='' system_topic=''
: "${system_seconds:=30}" # How long a program may take to be ready, and to end.
: "${system_partitions:=3}"
: "${system_naive:=off}"

# system_conninfo ROLE: the later keyword wins (libpq).
system_conninfo() { printf '%s dbname=%s user=%s' "$ONCEWARD_TEST_DATABASE" "$system_name" "$1"; }

# system_query SQL: asks the system's database as its owner; rows without headings.
system_query() { psql -XAtq -d "$ONCEWARD_DATABASE" -v ON_ERROR_STOP=1 -c "$1"; }

system_fail() {
    printf '%s: %s\n' "$program" "$*" >&2
    return 1
}

system_make_database() {
    local owner
    owner=$(psql -XAtq -d "$ONCEWARD_TEST_DATABASE" -v ON_ERROR_STOP=1 -c 'SELECT current_user' -c "CREATE DATABASE $system_name") || return 1
    ONCEWARD_DATABASE=$(system_conninfo "$owner")
    ONCEWARD_KAFKA=$ONCEWARD_TEST_KAFKA
    export ONCEWARD_DATABASE ONCEWARD_KAFKA
    "$system_bin/onceward" migrate >"$system_folder/migrate.log"
    psql -Xq -d "$ONCEWARD_DATABASE" -v ON_ERROR_STOP=1 -1 -f "$system_root/schema/example/submissions.sql"
    [ "$system_naive" = off ] || psql -Xq -d "$ONCEWARD_DATABASE" -v ON_ERROR_STOP=1 -1 -f "$system_root/tests/load/naive.sql"
    "$system_bin/onceward" topic add "$system_topic" --partitions "$system_partitions" >>"$system_folder/migrate.log"
    "$system_bin/onceward" route add example.submitted "$system_topic" >>"$system_folder/migrate.log"
}

system_name_commands() {
    local ports
    mapfile -t ports < <(free_ports 4)
    system_ports=([producer]=${ports[0]} [relay]=${ports[1]} [consumer]=${ports[2]} [hint]=${ports[3]})
    export ONCEWARD_URL=http://127.0.0.1:${ports[0]}
    # system_commands holds each program's own settings; its file of settings is written from them.
    system_commands=(
        [producer]="database = $(system_conninfo onceward_producer)
listen = 127.0.0.1:${ports[0]}
development = on
relay_hints = 127.0.0.1:${ports[3]}"
        [relay]="database = $(system_conninfo onceward_relay)
kafka = ${system_relay_kafka:-$ONCEWARD_KAFKA}
listen = 127.0.0.1:${ports[1]}
hint_listen = 127.0.0.1:${ports[3]}
name = relay-1"
        [consumer]="database = $(system_conninfo onceward_consumer)
kafka = $ONCEWARD_KAFKA
listen = 127.0.0.1:${ports[2]}
consumer = $system_name
topics = $system_topic
sink_sql = $(tr '\n' ' ' <"$system_root/schema/example/sink.sql")"
    )
}

system_binary() {
    case $system_naive-$1 in
        on-relay|on-consumer) printf '%s/naive-%s\n' "$system_bin" "$1" ;;
        *-relay) printf '%s/outbox-relay\n' "$system_bin" ;;
        *) printf '%s/onceward-%s\n' "$system_bin" "$1" ;;
    esac
}

# system_spawn NAME [FAILPOINTS]: starts a program.
system_spawn() {
    printf '%s\n' "${system_commands[$1]}" >"$system_folder/$1.conf"
    env -u ONCEWARD_URL -u ONCEWARD_DATABASE -u ONCEWARD_KAFKA -u ONCEWARD_TEST_DATABASE -u ONCEWARD_TEST_KAFKA \
        ONCEWARD_FAILPOINTS="${2:-}" "$(system_binary "$1")" --config "$system_folder/$1.conf" \
        >>"$system_folder/$1.log" 2>&1 &
    system_pids[$1]=$!
}

# system_run NAME: starts a program and waits until it is ready.
system_run() {
    local name=$1 deadline=$((SECONDS + system_seconds)) ready=http://127.0.0.1:${system_ports[$1]}/readyz
    system_spawn "$name"
    until curl -sf -m 5 -o "$system_folder/$name.ready" "$ready"; do
        kill -0 "${system_pids[$name]}" 2>/dev/null || { tail -n 20 "$system_folder/$name.log" >&2; system_fail "$name ended"; return 1; }
        if [ "$SECONDS" -ge "$deadline" ]; then
            curl -s -m 5 "$ready" >&2 || true
            tail -n 20 "$system_folder/$name.log" >&2
            system_fail "$name was not ready within $system_seconds s"
            return 1
        fi
        sleep 0.1
    done
}

system_signal() { kill -s "$2" "${system_pids[$1]}"; }

# system_await NAME: waits for its end and gives its exit code; kills what takes too long.
system_await() {
    local pid=${system_pids[$1]} deadline=$((SECONDS + system_seconds)) code=0
    while kill -0 "$pid" 2>/dev/null && [ "$SECONDS" -lt "$deadline" ]; do sleep 0.05; done
    ! kill -9 "$pid" 2>/dev/null || system_fail "$1 had to be killed" || true
    wait "$pid" 2>/dev/null || code=$?
    unset "system_pids[$1]"
    return "$code"
}

system_start() {
    system_bin=$(cd "$1" && pwd -P)
    : "${ONCEWARD_TEST_DATABASE:?names a Postgres for tests}" "${ONCEWARD_TEST_KAFKA:?names a Kafka for tests}"
    system_folder=$(mktemp -d "${TMPDIR:-/tmp}/onceward-system.XXXXXX")
    system_name=system_$$_$RANDOM
    system_topic=example.submissions.$system_name
    system_make_database || { system_fail "the database or the topic cannot be made"; return 1; }
    system_name_commands
    system_run relay && system_run consumer && system_run producer
}

# Waits until the consumer's cursors stand at the end of every partition, as the broker tells it.
system_await_consumed() {
    local deadline=$((SECONDS + system_seconds))
    until "$system_bin/onceward" status --json >"$system_folder/status.json" && python3 -c 'import json, sys
cursors = json.load(open(sys.argv[1]))["consumers"]
sys.exit(0 if cursors and all(cursor["lag"] == 0 for cursor in cursors) else 1)' "$system_folder/status.json"
    do
        [ "$SECONDS" -lt "$deadline" ] || { system_fail "the consumer does not reach the end of its partitions"; return 1; }
        sleep 0.2
    done
}

# What it all ran on. The consumer has written the broker's cluster id down once it has its partitions.
system_versions() {
    psql -XAtq -d "$ONCEWARD_DATABASE" -v ON_ERROR_STOP=1 -c "SELECT 'database: ' || version()" \
        -c "SELECT DISTINCT 'broker: cluster id ' || cluster_id || ', version ${ONCEWARD_TEST_KAFKA_VERSION:-not told}'
              FROM onceward.consumer_progress"
}

# Asks every program to end. Fails if one of them does not end as it should. The database is dropped, the folder stays
# where something failed.
system_stop() {
    local code=$? name ended
    trap - EXIT
    set +e
    for name in "${!system_pids[@]}"; do system_signal "$name" TERM 2>/dev/null; done
    for name in "${!system_pids[@]}"; do
        system_await "$name"
        ended=$?
        [ "$ended" -eq 0 ] || { system_fail "$name ended with $ended"; tail -n 20 "$system_folder/$name.log" >&2; code=1; }
    done
    if [ "$code" -ne 0 ]; then
        printf '%s: the logs are in %s\n' "$program" "$system_folder" >&2
    else
        rm -rf "$system_folder"
    fi
    [ -z "$system_name" ] || psql -Xq -d "$ONCEWARD_TEST_DATABASE" -c "DROP DATABASE IF EXISTS $system_name WITH (FORCE)" >/dev/null
    exit "$code"
}
