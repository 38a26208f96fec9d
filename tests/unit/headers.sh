#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every public header compiles by itself, with its module's view of the tree.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
includes=()
for folder in lib/*/include; do
    includes+=(-I "$folder")
done
find lib -path '*/include/*' -name '*.h' -print0 |
    xargs -0 -P 2 -n 8 "${CC:-cc}" -x c -std=gnu11 -D_GNU_SOURCE -fsyntax-only -Wall -Wextra -Wno-pragma-once-outside-header -Werror "${includes[@]}"
