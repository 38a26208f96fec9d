#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# clang-tidy over the sources of lib and the programs, by the compile commands of the clang preset.
# Usage: tidy.sh [FILE]...
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v clang-tidy-14 >/dev/null || { printf 'clang-tidy-14 is missing; deploy/packages installs it\n' >&2; exit 1; }
[ -e build/clang/compile_commands.json ] || cmake --preset clang >/dev/null
files=("$@")
[ "${#files[@]}" -gt 0 ] || mapfile -t files < <(find lib producer outbox-relay consumer cli -name '*.c' | sort)
printf '%s\0' "${files[@]}" | xargs -0 -P 2 -n 4 clang-tidy-14 -p build/clang --quiet --extra-arg=-D__NO_CTYPE
