#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The functions and failpoints that the models' README names exist; the models hold, and each mutation that must be
# caught is.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
root=$here/../..
failures=0
mapfile -t names < <(sed -n '/^## What each step/,/^## Mutations/p' "$here/README.md" | grep '^|' | cut -d'|' -f3- |
    grep -oE $'\x60[a-zA-Z_.]+\x60' | tr -d $'\x60' | sort -u)
[ "${#names[@]}" -gt 20 ]
for name in "${names[@]}"; do
    grep -rqwF --include='*.c' "$name" "$root"/{lib,producer,outbox-relay,consumer} ||
        { printf '%s: README.md names it, the programs have no such thing\n' "$name"; failures=1; }
done
[ "$failures" -eq 0 ]
exec nice -n 19 "$here/run" --quick
