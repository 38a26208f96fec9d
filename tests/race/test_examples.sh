#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The examples of docs/examples on a running system: many at the same moment have one effect, and their twins more.
# Argument: the folder of the programs.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
program=test_examples
# shellcheck source=tests/support/system.sh
. "$root/tests/support/system.sh"
trap system_stop EXIT
system_start "$1"
export EXAMPLE_TOPIC=$system_topic TMPDIR=$system_folder
runs=10 real_runs=4 rivals=4

# race SCRIPT ARGUMENT...: the rivals at once.
race() {
    local script=$1 pids=() pid
    shift
    for ((n = 0; n < rivals; n++)); do
        "$root/docs/examples/$script" "$@" >>"$system_folder/answers" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || { tail -n 5 "$system_folder/answers" >&2; system_fail "$script $* failed"; }; done
}

for ((run = 1; run <= runs; run++)); do
    if [ "$run" -le "$real_runs" ]; then
        race charge.sh c "real-$run" 12.50
        race webhook.sh p "real-$run" 7
        race ledger.sh "real-$run" a 3
    fi
    race charge.sh c "twin-$run" 12.50 --twin
    race webhook.sh p "twin-$run" 7 --twin
    race ledger.sh "twin-$run" a 3 --twin
done
# One after another the twins hold: only the race tells them from what is right.
for ((n = 0; n < 2; n++)); do
    "$root/docs/examples/charge.sh" c single 1 --twin
    "$root/docs/examples/webhook.sh" p single 1 --twin
    "$root/docs/examples/ledger.sh" single a 1 --twin
done >>"$system_folder/answers"
system_await_consumed

# How often each was applied: lines of member, name, count.
system_query "
    SELECT m.key || ' ' || m.value || ' ' || count(*)
      FROM example.effects e
      JOIN onceward.outbox o USING (event_id)
     CROSS JOIN LATERAL json_each_text(convert_from(o.value, 'UTF8')::json -> 'data') m
     WHERE m.key IN ('invoice', 'delivery', 'token')
     GROUP BY m.key, m.value" >"$system_folder/effects"
count() { grep -cE "$1" "$system_folder/effects" || true; }
failures=0
for member in invoice delivery token; do
    once=$(count "^$member real-[0-9]+ 1\$") caught=$(count "^$member twin-[0-9]+ ([2-9]|[0-9]{2,})\$")
    printf '%s: one effect in %s of %s races of %s rivals; the twin was caught in %s of %s\n' "$member" "$once" "$real_runs" "$rivals" "$caught" "$runs"
    [ "$once" -eq "$real_runs" ] || { printf 'FAILED: %s\n' "$member"; failures=1; }
    [ "$caught" -ge 9 ] || { printf 'FAILED: the twin of %s\n' "$member"; failures=1; }
    [ "$(count "^$member single 1\$")" -eq 1 ] || { printf 'FAILED: the twin of %s does not even hold alone\n' "$member"; failures=1; }
done
[ "$(system_query 'SELECT count(*) FROM example.ledger')" -eq "$real_runs" ] || { printf 'FAILED: the ledger\n'; failures=1; }
[ "$failures" -eq 0 ] || cat "$system_folder/effects"
exit "$failures"
