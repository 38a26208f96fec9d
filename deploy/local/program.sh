# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Onceward's own programs as background processes: one configuration file, one log, one pid file each.

program_pid() { pid_in "$state/run/$1.pid" "$state/config/$1.conf"; } # NAME

# program_start NAME BINARY: with state/config/NAME.conf. Not ready yet.
program_start() {
    local name=$1 binary=$2
    [ ! -s "$state/log/$name.log" ] || mv -f "$state/log/$name.log" "$state/log/$name.log.1"
    (exec_as_service env -i PATH="$PATH" HOME="$state" setsid "$binary" --config "$state/config/$name.conf") \
        </dev/null >"$state/log/$name.log" 2>&1 9>&- &
    printf '%s\n' "$!" | write_file "$state/run/$name.pid"
    await_exec "$!" "$state/config/$name.conf"
}

# program_await NAME PORT SECONDS: until /readyz says so.
program_await() {
    local name=$1 port=$2 deadline=$((SECONDS + $3))
    until curl -sf -o /dev/null --max-time 5 "http://127.0.0.1:$port/readyz"; do
        program_pid "$name" >/dev/null || { tail -n 20 "$state/log/$name.log" >&2; die "$name ended while starting; its log is $state/log/$name.log"; }
        [ "$SECONDS" -lt "$deadline" ] || {
            curl -s --max-time 5 "http://127.0.0.1:$port/readyz" >&2 || true
            tail -n 20 "$state/log/$name.log" >&2
            die "$name is not ready after $3 s; its log is $state/log/$name.log"
        }
        sleep 0.1
    done
}

# program_stop NAME SECONDS
program_stop() {
    local pid
    pid=$(program_pid "$1" || true)
    [ -n "$pid" ] || return 1
    kill -s TERM "$pid"
    kill -s CONT "$pid" 2>/dev/null || true
    if ! wait_gone "$pid" "$state/config/$1.conf" "$2"; then
        say "$1 did not stop within $2 s: killed"
        kill -s KILL "$pid" 2>/dev/null || true
        wait_gone "$pid" "$state/config/$1.conf" 15 || die "process $pid does not end"
    fi
    rm -f "$state/run/$1.pid"
}
