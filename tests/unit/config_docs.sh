#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# docs/CONFIGURATION.md is what the programs say of themselves, and each program knows the variables of the others.
# Usage: config_docs.sh BIN_DIR
set -euo pipefail

bin=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
failures=0

if ! tests/support/config_docs.sh "$bin" | diff -u docs/CONFIGURATION.md -; then
    printf 'docs/CONFIGURATION.md is stale: tests/support/config_docs.sh %s >docs/CONFIGURATION.md\n' "$bin"
    failures=1
fi

# Every setting of every program as a variable with a value that fits none: only unknown names are looked for.
# shellcheck disable=SC2016  # The backquotes are Markdown's.
mapfile -t names < <(sed -nE 's/^\| `([a-z_]+)` .*/\1/p' docs/CONFIGURATION.md | sort -u)
[ "${#names[@]}" -gt 5 ]
variables=()
for name in "${names[@]}"; do
    variables+=("ONCEWARD_${name^^}=?")
done
for program in onceward-producer outbox-relay onceward-consumer onceward; do
    said=$(env -i "${variables[@]}" "$bin/$program" --check 2>&1) || true
    if unknown=$(grep 'no setting is called' <<<"$said"); then
        printf '%s does not know settings of other programs (lib/base/config_names.c):\n%s\n' "$program" "$unknown"
        failures=1
    fi
done
exit "$failures"
