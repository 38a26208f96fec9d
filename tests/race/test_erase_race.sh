#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `onceward erase` against submits and against a relay that publishes, and a twin that does not look whether it may.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONPATH=$here/../support PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/test_erase_race.py" "$@"
