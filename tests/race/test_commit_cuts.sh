#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Connections cut at COMMIT while callers repeat what got no answer: nothing is lost, nothing is there twice.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONPATH=$here/../support PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/test_commit_cuts.py" "$@"
