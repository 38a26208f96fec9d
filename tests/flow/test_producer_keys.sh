#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Idempotency keys at a running producer: each situation of docs/api.md that is about them.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONPATH=$here/../support PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/test_producer_keys.py" "$@"
