#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every shell script stops at its first failure, says its licence, and passes shellcheck.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v shellcheck >/dev/null || { printf 'shellcheck is missing; deploy/packages installs it\n' >&2; exit 1; }

failures=0
scripts=()
while IFS= read -r file; do
    IFS= read -r first <"$file" || first=
    [[ $first == '#!'*bash* || $file == *.sh ]] || continue
    [[ $first != '#!'* ]] || scripts+=("$file")
    grep -q 'SPDX-License-Identifier: Apache-2.0' "$file" || { printf '%s: no SPDX line\n' "$file"; failures=1; }
    [[ $first != '#!'* ]] || grep -qx 'set -euo pipefail' "$file" || { printf '%s: no "set -euo pipefail"\n' "$file"; failures=1; }
done < <(find .ci deploy tests -type f -size -200k)

# Files without a first line of their own are read where they are included.
printf '%s scripts\n' "${#scripts[@]}"
[ "${#scripts[@]}" -gt 5 ]
shellcheck -x -a "${scripts[@]}"
exit "$failures"
