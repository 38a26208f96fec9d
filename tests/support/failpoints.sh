# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The failpoints of the programs, as their sources name them.
#
#   . tests/support/failpoints.sh
#   failpoints ROOT         prints each name once

failpoints() {
    (cd "$1" && grep -rhoE --include='*.c' 'FAILPOINT(_FAILS)?\("[a-z_.]+"' lib producer outbox-relay consumer cli) |
        sed -E 's/.*"(.*)"/\1/' | sort -u
}
