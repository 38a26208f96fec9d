#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The torture can fail: every point of a small program that is sound, and those of the same with one mistake each that
# are of the kind of its mistake.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONDONTWRITEBYTECODE=1
failures=0

# torture MODE CODE PATTERN [OPTION]...: the driver must end with this code, and say so.
torture() {
    local mode=$1 expected=$2 pattern=$3 code=0 output
    shift 3
    output=$("$here/run" "$bin_dir" --program "sample-$mode" "$@") || code=$?
    if [ "$code" -ne "$expected" ] || ! grep -qE "$pattern" <<<"$output"; then
        printf '%s: ended with %d, not %d, or did not say: %s\n%s\n' "$mode" "$code" "$expected" "$pattern" "$output"
        failures=1
    else
        printf '%s: %s\n' "$mode" "$(grep -E '^FINDING|^points:' <<<"$output" | tail -n 1)"
    fi
}

bin_dir=$1
torture sound 0 '^points: .* findings: 0$'
torture unchecked 1 '^FINDING .*alloc 1 nomem.*(SIGSEGV|sanitizer)' --kind alloc
torture stubborn 1 '^FINDING .*read 1 io.*hangs' --kind read --patience 3
torture careless 1 '^FINDING .*write 1 io.*lost' --kind write
torture doubling 1 '^FINDING .*send 1 short.*doubled' --kind send
torture silent 1 '^FINDING .*fsync 1 io.*said no reason' --kind fsync
torture boasting 1 '^FINDING .*receive 1 reset.*lost' --kind receive
exit "$failures"
