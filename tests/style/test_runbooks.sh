#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every warning and error that a program logs has a page in docs/runbooks under its name, every page is such an event, and
# says so in its title.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
failures=0
events=$(grep -rhoE --include='*.c' 'log_(warning|error)\("[a-z_.]+"' lib producer outbox-relay consumer cli |
    sed -E 's/.*"(.*)"/\1/' | sort -u)
calls=$(grep -rhE --include='*.c' '\blog_(warning|error)\(' lib producer outbox-relay consumer cli | wc -l)
named=$(grep -rhE --include='*.c' '\blog_(warning|error)\("[a-z_]+\.[a-z_]+"' lib producer outbox-relay consumer cli | wc -l)
[ "$calls" -eq "$named" ] || { printf '%s calls do not name their event where they stand\n' "$((calls - named))"; failures=1; }
[ "$(wc -l <<<"$events")" -gt 20 ]
for event in $events; do
    [ -e "docs/runbooks/$event.md" ] || { printf 'docs/runbooks/%s.md is missing\n' "$event"; failures=1; }
done
for page in docs/runbooks/*.md; do
    name=${page##*/}
    name=${name%.md}
    grep -qx "$name" <<<"$events" || { printf '%s: no program logs this as a warning or an error\n' "$page"; failures=1; }
    [ "$(head -n 1 "$page")" = "# $name" ] || { printf '%s: the title is not "# %s"\n' "$page" "$name"; failures=1; }
    while IFS= read -r link; do
        [ -e "docs/runbooks/$link" ] || { printf '%s: links to %s, which is not there\n' "$page" "$link"; failures=1; }
    done < <(grep -oE '\]\([^)]+\.md\)' "$page" | sed -E 's/.*\((.*)\)/\1/')
done
printf '%s events\n' "$(wc -l <<<"$events")"
exit "$failures"
