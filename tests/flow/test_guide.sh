#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every command of docs/guides/submit-safely.md, in its order, in one shell, against a running system; what the guide shows
# of the output is what comes. Argument: the folder of the programs.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
program=test_guide
# shellcheck source=tests/support/system.sh
. "$root/tests/support/system.sh"
trap system_stop EXIT
system_start "$1"

# The guide speaks of the quickstart's topic and consumer; these are the system's. Commands and expectations, by turns.
python3 - "$root/docs/guides/submit-safely.md" "$system_folder" "$system_topic" "$system_name" <<'PYTHON'
import pathlib
import re
import sys

guide, folder, topic, consumer = sys.argv[1:]
text = pathlib.Path(guide).read_text(encoding="utf-8")
blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
assert len(blocks) > 15 and {kind for kind, _ in blocks} == {"sh", "text"}, [kind for kind, _ in blocks]
script, expected, number = ["set -euo pipefail"], {}, 0
for kind, body in blocks:
    body = body.replace("'example.submissions'", f"'{topic}'")
    body = body.replace("consumer=example", f"consumer={consumer}").replace('"consumer":"example"', f'"consumer":"{consumer}"')
    if kind == "sh":
        number += 1
        script += [f"exec >'{folder}/guide.{number}' 2>&1", body]
    else:
        expected[number] = body
pathlib.Path(folder, "guide.sh").write_text("\n".join(script), encoding="utf-8")
for number, body in expected.items():
    pathlib.Path(folder, f"guide.{number}.expected").write_text(body, encoding="utf-8")
print(f"{number} blocks of commands, {len(expected)} of output")
PYTHON

cd "$system_folder" # The guide's files are made here; it reads two of the checkout's.
cp "$root/LICENSE" .
mkdir -p deploy
cp -r "$root/deploy/shell" deploy/
bash "$system_folder/guide.sh" || { tail -n 20 "$system_folder"/guide.[0-9]* >&2; system_fail "the guide's commands fail"; }

python3 - "$system_folder" <<'PYTHON'
import pathlib
import re
import sys

folder = pathlib.Path(sys.argv[1])
failures = 0
for path in sorted(folder.glob("guide.*.expected")):
    expected = path.read_text(encoding="utf-8")
    found = path.with_suffix("").read_text(encoding="utf-8")
    if not re.fullmatch(re.escape(expected).replace("…", ".*"), found, re.DOTALL):
        failures += 1
        print(f"--- the guide shows\n{expected}--- and it was\n{found}", file=sys.stderr)
sys.exit(1 if failures else 0)
PYTHON
cd /
printf 'ok: the output is as the guide shows it\n'
