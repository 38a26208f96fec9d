#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The figures come out, are sane, and are not below coarse floors. The full form measures for real: it keeps its lines in
# build/bench/, and fails only where the same floors are missed, since what is asked of it holds on a quiet machine only.
#
#   test_bench.sh BIN_DIR [full]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
form=(--quick)
[ "${2:-}" != full ] || form=()
mkdir -p "$root/build/bench"
"$root/tests/bench/run" "${form[@]}" --check --json "$root/build/bench/figures.jsonl" --raw "$root/build/bench/raw.json"

# Every line has exactly the members that others read.
python3 - "$root/build/bench/figures.jsonl" <<'END'
import json
import sys

members = {"name", "value", "unit", "bound", "bound_value", "ratio"}
figures = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
assert len(figures) == len({figure["name"] for figure in figures}) == 22, [figure["name"] for figure in figures]
for figure in figures:
    assert set(figure) == members, figure
END
