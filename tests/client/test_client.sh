#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The C client against a running producer: answers lost on the way, a producer that is away, refusals; and the installed
# library found by pkg-config.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONPATH=$here/../support PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/test_client.py" "$@"
