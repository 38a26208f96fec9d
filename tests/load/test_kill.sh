#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A system under load while everything is killed, frozen, cut, rewound and restored; then the naive twins in the same
# harness, which must lose and double. With FULL the load of docs/reliability.md, else a short one in which each fault
# still takes place.
#
#   test_kill.sh BIN_DIR [full]
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
load=(--requests 400 --pace 25 --fast)
[ "${2:-}" != full ] || load=()
exec "$here/run" --kill --both --bin "$1" "${load[@]}"
