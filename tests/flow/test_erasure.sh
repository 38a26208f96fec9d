#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Content goes, by retention or by a person, and the guarantee stays.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONPATH=$here/../support PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/test_erasure.py" "$@"
