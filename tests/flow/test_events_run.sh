#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The producer with a real relay and a real broker: what was pending is claimed when POST /events/run answers.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONPATH=$here/../support PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/test_events_run.py" "$@"
