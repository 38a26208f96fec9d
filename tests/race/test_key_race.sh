#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Equal calls under one key at the same moment, a rival that is frozen, and a twin that the same check catches.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONPATH=$here/../support PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/test_key_race.py" "$@"
