#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every situation of docs/api.md is named by a test, every id that a test names is a situation, and every code in the
# document is one that the programs have.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
failures=0
rows=$(sed -nE 's/^\| ([A-Z][0-9]+) \|.*/\1/p' docs/api.md)
named=$(grep -rhoE '@case\("[A-Z0-9 ]+"' tests | grep -oE '[A-Z][0-9]+' | sort -u)
[ "$(wc -l <<<"$rows")" -ge 30 ]
for row in $rows; do
    grep -qx "$row" <<<"$named" || { printf 'docs/api.md: no test names %s\n' "$row"; failures=1; }
done
for row in $named; do
    grep -qx "$row" <<<"$rows" || { printf 'a test names %s, which docs/api.md does not have\n' "$row"; failures=1; }
done
[ "$(sort <<<"$rows" | uniq -d)" = "" ] || { printf 'docs/api.md: an id stands twice\n'; failures=1; }

# Codes: what stands as 4xx or 5xx `code` in the document, and the tables in the sources.
tables=$(grep -hoE '"[a-z_]+", [45][0-9]{2},' producer/producer_problem.c lib/http/http_problem.c | grep -oE '[a-z_]+' | sort -u)
# shellcheck disable=SC2016 # The backquotes are Markdown's.
codes=$(grep -E '^\| [A-Z][0-9]+ ' docs/api.md | grep -oE '`[a-z]+_[a-z_]+`' | tr -d '`' | sort -u)
for code in $codes; do
    case $code in
        document_count|event_id|event_wait_max_s|event_waiters_max|erased_at|tenant_waiters_max|token_cache_ms|expired_keys|expired_keys_kept_s|key_is_required) continue ;;
        request_kept_days|document_kept_days|open_request_kept_days|submission_kept_days|key_lifetime_s) continue ;;
        head_bytes_max|tenant_keys_max|token_calls_per_s|tenant_calls_per_s|peer_unknown_tokens_per_s) continue ;;
    esac
    grep -qx "$code" <<<"$tables" || { printf 'docs/api.md: the code %s is not in the tables\n' "$code"; failures=1; }
done
printf '%s situations\n' "$(wc -l <<<"$rows")"
exit "$failures"
