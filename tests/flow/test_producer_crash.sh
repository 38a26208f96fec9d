#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The producer killed before and after its commit: what was accepted is there once, what was not is not there.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONPATH=$here/../support PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/test_producer_crash.py" "$@"
