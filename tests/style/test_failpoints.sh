#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every failpoint in the programs is used by a test, and begins with its program's name.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
failures=0
# shellcheck source=tests/support/failpoints.sh
. tests/support/failpoints.sh
mapfile -t names < <(failpoints .)
[ "${#names[@]}" -gt 5 ]
for name in "${names[@]}"; do
    [[ $name =~ ^(producer|relay|consumer)\.[a-z_]+$ ]] || { printf '%s: not of the form program.place\n' "$name"; failures=1; }
    grep -rqF --exclude-dir=style --exclude-dir=model "$name" tests || { printf '%s: no test uses this failpoint\n' "$name"; failures=1; }
done
printf '%s failpoints\n' "${#names[@]}"
exit "$failures"
