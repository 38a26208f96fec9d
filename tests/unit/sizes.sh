#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Functions of at most 70 lines and 7 parameters, files of at most 600 lines, every file name once.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
mapfile -t files < <(find lib producer outbox-relay consumer cli tests -name '*.[ch]' | sort)
failures=0

wc -l "${files[@]}" | awk '$1 > 600 && $2 != "total" { print $2 ": " $1 " lines, allowed are 600"; found = 1 } END { exit found }' ||
    failures=1

twice=$(printf '%s\n' "${files[@]##*/}" | grep -vx 'main\.c' | sort | uniq -d)
[ -z "$twice" ] || { printf 'more than one file is called %s\n' "$twice"; failures=1; }

if ! command -v ctags >/dev/null; then
    printf 'ctags is missing; functions were not measured\n'
    exit "$failures"
fi
ctags --languages=C --kinds-C=f --fields=+neS -o - "${files[@]}" | awk -F '\t' '
    /^!/ { next }
    {
        line = end = 0
        signature = ""
        for (i = 4; i <= NF; i++) {
            if ($i ~ /^line:/) line = substr($i, 6)
            if ($i ~ /^end:/) end = substr($i, 5)
            if ($i ~ /^signature:/) signature = substr($i, 11)
        }
        if (end > 0 && end - line + 1 > 70) { print $2 ":" line ": " $1 " has " end - line + 1 " lines, allowed are 70"; found = 1 }
        while (match(signature, /\([^()]*\)\([^()]*\)/)) signature = substr(signature, 1, RSTART - 1) "x" substr(signature, RSTART + RLENGTH)
        if (gsub(/,/, ",", signature) + 1 > 7) { print $2 ":" line ": " $1 " has more than 7 parameters"; found = 1 }
    }
    END { exit found }
' || failures=1
exit "$failures"
