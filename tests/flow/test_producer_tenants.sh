#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tokens, scopes and tenants of the running producer, over HTTP with a real Postgres.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONPATH=$here/../support PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/test_producer_tenants.py" "$@"
