#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The shell functions of deploy/shell/onceward.sh: a producer that is killed between tries, and answers of every kind.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONPATH=$here/../support PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/test_shell.py" "$@"
