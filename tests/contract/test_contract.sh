#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the running producer answers is what schema/openapi.yaml says.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONPATH=$here/../support PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/test_contract.py" "$@"
