# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What the scripts in this folder share: the state folder, the unprivileged user, processes known by pid, ports.
# A process is ours only if its command line names our own folder, so a pid that was given to a stranger is never signalled.

say() { printf '%s: %s\n' "$program" "$*"; }
die() { printf '%s: %s\n' "$program" "$*" >&2; exit 1; }
usage_error() { printf '%s: %s\nTry: %s --help\n' "$program" "$*" "$program" >&2; exit 2; }

is_root() { [ "$(id -u)" -eq 0 ]; }

# Where services keep their data unless --state or ONCEWARD_STATE says otherwise: never inside the checkout.
state_default() {
    if [ -n "${ONCEWARD_STATE:-}" ]; then
        printf '%s\n' "$ONCEWARD_STATE"
    elif is_root; then
        printf '/var/lib/onceward-local\n'
    else
        printf '%s/onceward-local\n' "${XDG_STATE_HOME:-$HOME/.local/state}"
    fi
}

# Where downloads are kept for the next time.
cache_default() {
    if [ -n "${ONCEWARD_CACHE:-}" ]; then
        printf '%s\n' "$ONCEWARD_CACHE"
    elif is_root; then
        printf '/var/cache/onceward\n'
    else
        printf '%s/onceward\n' "${XDG_CACHE_HOME:-$HOME/.cache}"
    fi
}

# Neither Postgres nor Kafka is run as root. deploy/packages makes the user "onceward"; "nobody" serves without it.
service_user() {
    if ! is_root; then
        id -un
    elif id -u onceward >/dev/null 2>&1; then
        printf 'onceward\n'
    else
        printf 'nobody\n'
    fi
}

# Runs a command as the service user, replacing this (sub)shell: the pid of the caller's job is the command's pid.
exec_as_service() {
    if is_root; then
        exec setpriv --reuid="$service_uid" --regid="$service_gid" --clear-groups env HOME="$state" "$@"
    fi
    exec "$@"
}
as_service() { (exec_as_service "$@"); }

# Makes the state folder and proves that the service user can work in it. Sets state, service_uid and service_gid.
# A folder that belongs to somebody else than root stays theirs, and the services run as that user.
prepare_state() {
    local user owner
    user=$(service_user)
    mkdir -p "$state" || die "cannot make the state folder $state; choose another one with --state"
    state=$(cd "$state" && pwd -P)
    cd "$state" || die "cannot enter the state folder $state"
    owner=$(stat -c %u "$state")
    if is_root && [ "$owner" -ne 0 ]; then
        service_uid=$owner
        service_gid=$(stat -c %g "$state")
    else
        service_uid=$(id -u "$user")
        service_gid=$(id -g "$user")
    fi
    if is_root && [ "$owner" -eq 0 ]; then
        case $state in /|/tmp|/var|/var/tmp|/home|/root|/usr|/etc|/opt|/srv) die "$state is no folder of its own" ;; esac
        chown "$service_uid:$service_gid" "$state"
    fi
    as_service test -w "$state" -a -x "$state" 2>/dev/null ||
        die "user $(id -un "$service_uid") cannot work in $state (a folder above it is closed to others?); choose another one with --state"
}

make_folder() {
    [ -d "$1" ] || { as_service mkdir -p "$1" && as_service chmod 700 "$1"; }
}

# is_ours PID NEEDLE: alive, and NEEDLE stands in its command line.
is_ours() {
    [ -n "$1" ] && [ -r "/proc/$1/cmdline" ] && grep -qazF -- "$2" "/proc/$1/cmdline" 2>/dev/null
}

# await_exec PID NEEDLE: until a process that was just started has become its command, or has ended. Before that its command
# line is still this script's, and it would be taken for a stranger.
await_exec() {
    local deadline=$((SECONDS + 30))
    while kill -0 "$1" 2>/dev/null && ! is_ours "$1" "$2" && [ "$SECONDS" -lt "$deadline" ]; do sleep 0.02; done
}

# pid_in FILE NEEDLE: prints the pid in the file's first line if that process is ours.
pid_in() {
    local pid=
    [ -r "$1" ] || return 1
    IFS= read -r pid <"$1" || [ -n "$pid" ] || return 1
    [[ $pid =~ ^[0-9]+$ ]] && is_ours "$pid" "$2" && printf '%s\n' "$pid"
}

# wait_gone PID NEEDLE SECONDS
wait_gone() {
    local deadline=$((SECONDS + $3))
    while is_ours "$1" "$2"; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.1
    done
}

# Somebody accepts connections on this loopback port.
port_is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

check_port() {
    [[ $1 =~ ^[1-9][0-9]{0,4}$ && $1 -le 65535 ]] || usage_error "port $1 is not a number from 1 to 65535"
}

# remembered FILE DEFAULT: the value kept at the last start.
remembered() {
    if [ -r "$1" ]; then cat "$1"; else printf '%s\n' "$2"; fi
}

write_file() { # PATH, text on standard input; readable by the service user only
    (umask 077 && cat >"$1.new")
    if is_root; then chown "$service_uid:$service_gid" "$1.new"; fi
    mv -f "$1.new" "$1"
}

# with_lock FILE: one start or stop at a time per service. Descriptor 9 is closed again in whatever is started.
take_lock() {
    exec 9>"$1" || die "cannot write $1"
    flock -w 120 9 || die "another $program has held $1 for 120 s"
}

# free_ports COUNT: prints COUNT ports that nobody listens on, below the range that the system gives to outgoing
# connections (one of them may hold a port of that range without listening, seen) and below our own usual ports. The
# search begins at a random place, so that two runs at the same moment do not choose alike.
free_ports() {
    local wanted=$1 first=20000 last=25000 port
    port=$((first + (RANDOM * 32768 + RANDOM) % (last - first)))
    while [ "$wanted" -gt 0 ]; do
        port=$((port < last ? port + 1 : first))
        port_is_taken "$port" && continue
        printf '%s\n' "$port"
        wanted=$((wanted - 1))
    done
}

# free_port_range COUNT: the first of COUNT ports in a row that nobody listens on.
free_port_range() {
    local first port
    while :; do
        first=$(free_ports 1)
        for ((port = first + 1; port < first + $1; port++)); do
            port_is_taken "$port" && continue 2
        done
        printf '%s\n' "$first"
        return
    done
}
