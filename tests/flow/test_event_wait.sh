#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# GET /events/{event_id}?wait=: whoever waits is told in time, and holds next to nothing meanwhile.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONPATH=$here/../support PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/test_event_wait.py" "$@"
