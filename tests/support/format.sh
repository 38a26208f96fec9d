#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compares the C sources with .clang-format, pinned to version 14. Usage: format.sh [--fix]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v clang-format-14 >/dev/null || { printf 'clang-format-14 is missing; deploy/packages installs it\n' >&2; exit 1; }
mode=(--dry-run -Werror)
[ "${1:-}" != --fix ] || mode=(-i)
find lib producer outbox-relay consumer cli tests -name '*.[ch]' -print0 | xargs -0 -P 2 -n 32 clang-format-14 "${mode[@]}"
