#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Slow, synchronised and silent peers of the running producer.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONPATH=$here/../support PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/test_slow_peers.py" "$@"
