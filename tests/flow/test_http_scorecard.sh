#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Raw probes of the running producer's HTTP, each printed with its answer.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONPATH=$here/../support PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/test_http_scorecard.py" "$@"
