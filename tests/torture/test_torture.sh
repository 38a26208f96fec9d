#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# About thirty of all the points at which a call can fail, spread over the programs, the kinds and each run's length.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONDONTWRITEBYTECODE=1
exec "$here/run" "$1" --points 30
