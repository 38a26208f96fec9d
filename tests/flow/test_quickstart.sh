#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# deploy/quickstart in a state folder and on ports of its own, with the programs of this build: what it shows is true in the
# database, a second run changes nothing that runs, and --stop ends all of it. Argument: the folder of the programs.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
here=$root/deploy/local
program=test_quickstart
# shellcheck source=deploy/local/common.sh
. "$here/common.sh"

binaries=$1
state=$(mktemp -d "${TMPDIR:-/tmp}/onceward-quickstart.XXXXXX")
base=$(free_port_range 7)
quickstart() { "$root/deploy/quickstart" --state "$state" --no-packages --bin "$binaries" "$@"; }

clean_up() {
    local code=$?
    trap - EXIT
    quickstart --stop >/dev/null 2>&1 || true
    [ "$code" -eq 0 ] || tail -n 30 "$state"/log/*.log >&2 || true
    rm -rf "$state"
    exit "$code"
}
trap clean_up EXIT

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
shows() { grep -qE -- "$1" "$state/output" || { cat "$state/output" >&2; fail "the output does not show: $1"; }; }
ask() { psql -X -q -A -t -v ON_ERROR_STOP=1 "$ONCEWARD_DATABASE" -c "$1"; }
is() { [ "$2" = "$3" ] || fail "$1: expected $3, found $2"; printf 'ok: %s: %s\n' "$1" "$2"; }
pids() { cat "$state"/run/*.pid "$state/kafka/pid"; head -n 1 "$state/postgres/data/postmaster.pid"; }

quickstart --port-base "$base" >"$state/output" 2>&1 || { cat "$state/output" >&2; fail "the first run failed"; }
cat "$state/output"
shows 'submit .* 200 queued'
shows 'submit .* 200 duplicate'
shows 'published'
shows 'dropped'
shows "http://127.0.0.1:$base"

eval "$("$root/deploy/quickstart" --state "$state" --env)"
is "ONCEWARD_URL" "$ONCEWARD_URL" "http://127.0.0.1:$base"
is "ONCEWARD_KAFKA" "$ONCEWARD_KAFKA" "127.0.0.1:$((base + 5))"
applied=$(ask 'SELECT count(*) FROM example.submissions')
is "one effect per submission" "$applied" "$(ask 'SELECT count(*) FROM onceward.submissions')"
is "one inbox row per effect" "$(ask 'SELECT count(*) FROM onceward.inbox')" "$applied"
is "the copy is on the topic besides" "$(ask "SELECT sum(next_offset) FROM (SELECT DISTINCT ON (topic, partition) next_offset
    FROM onceward.consumer_progress ORDER BY topic, partition, seq DESC) last")" "$((applied + 1))"
is "no dead letter" "$(ask 'SELECT count(*) FROM onceward.dead_letters')" 0

# The README's first submission, as it stands there: block 1 submits twice, block 2 looks at the effect.
readme_block() {
    awk -v wanted="$1" '/^## /{inside = ($0 == "## A first submission")} !inside{next} /^```/{open = !open; count += open; next}
        open && count == wanted' "$root/README.md" | sed "s|deploy/quickstart --env|deploy/quickstart --state $state --env|"
}
(cd "$root" && eval "$(readme_block 1)" >"$state/output" 2>"$state/errors") || { cat "$state/output" "$state/errors" >&2; fail "the README's block 1"; }
cat "$state/output"
shows '"queued": ?true'
shows '"duplicate"'
id=$(sed -n 's/.*"id": *"\([0-9a-f-]*\)".*/\1/p' "$state/output" | head -n 1)
for ((i = 0; i < 100; i++)); do
    [ "$(ask "SELECT count(*) FROM example.effects WHERE request_id = '$id'")" -eq 0 ] || break
    sleep 0.1
done
eval "$(readme_block 2)" >"$state/output"
cat "$state/output"
shows "$id .*12.50"
shows '^ +1$'
applied=$((applied + 1))

before=$(pids)
quickstart >"$state/output" 2>&1 || { cat "$state/output" >&2; fail "the second run failed"; }
is "processes after a second run" "$(pids | tr '\n' ' ')" "$(printf '%s\n' "$before" | tr '\n' ' ')"
is "one effect per submission" "$(ask 'SELECT count(*) FROM example.effects')" "$(ask 'SELECT count(*) FROM onceward.submissions')"
[ "$(ask 'SELECT count(*) FROM example.effects')" -gt "$applied" ] || fail "the second run submitted nothing"

if "$root/deploy/quickstart" --state "$state/never-started" --env >"$state/output" 2>&1; then
    fail "--env printed addresses of what was never started"
fi
shows 'start it first'
[ ! -e "$state/never-started" ] || fail "--env made a folder"

quickstart --stop >"$state/output" 2>&1 || { cat "$state/output" >&2; fail "--stop failed"; }
for pid in $before; do
    ! is_ours "$pid" "$state" || fail "process $pid still runs"
done
printf 'ok: nothing runs any more\n'
