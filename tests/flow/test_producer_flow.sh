#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every route of the running producer and every situation of docs/api.md, over HTTP with a real Postgres.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONPATH=$here/../support PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/test_producer_flow.py" "$@"
