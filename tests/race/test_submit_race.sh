#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Many submits of one request at the same moment, and a broken twin that the same check catches.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONPATH=$here/../support PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/test_submit_race.py" "$@"
