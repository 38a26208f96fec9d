#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Real input through a whole system: REQUESTS requests (default 1 000) with real files, 20 clients at once, some calls
# repeated, events of few keys beside them; then the checker proves each effect, and again after records were copied on
# the topic. At last one effect is doubled and one lost in the sink, to see that this very check would have named them.
#
#   test_load.sh BIN_DIR [REQUESTS]
set -euo pipefail

program=test_load
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=tests/support/system.sh
. "$here/../support/system.sh"
trap system_stop EXIT
requests=${2:-1000}

system_start "$1"
"$here/run" --requests "$requests" --clients 20 --topic "$system_topic" --out "$system_folder/manifest"
"$here/check" --manifest "$system_folder/manifest" --settle $((60 + requests / 50))

# Copies on the topic change nothing: the consumer reads them to the end, and the same holds as before.
"$here/copy" --topic "$system_topic" --records 60
system_await_consumed
code=0
copied=$("$here/check" --manifest "$system_folder/manifest" --fetch 1) || code=$?
grep -E '^(anomal|topic_copies)' <<<"$copied"
[ "$code" -eq 0 ] || system_fail "copies on the topic changed something"
grep -qE '^topic_copies: ([6-9][0-9]|[0-9]{3,})$' <<<"$copied" || system_fail "the copies were not seen"
system_versions

psql -XAtq -d "$ONCEWARD_DATABASE" -v ON_ERROR_STOP=1 -c "
    INSERT INTO example.effects (event_id, tenant, request_id, ce_sequence, value_sha256, kafka_partition, kafka_offset)
    SELECT event_id, tenant, request_id, ce_sequence, value_sha256, kafka_partition, kafka_offset FROM example.effects
     ORDER BY effect_id DESC LIMIT 1" -c "
    DELETE FROM example.effects WHERE effect_id = (SELECT min(effect_id) FROM example.effects)"
code=0
spoiled=$("$here/check" --manifest "$system_folder/manifest" --fetch 1) || code=$?
grep '^anomal' <<<"$spoiled" || true
[ "$code" -eq 1 ] || system_fail "the checker ended with $code on a spoiled sink"
for line in 'anomalies_doubled_effect: 1' 'anomalies_lost_effect: 1'; do
    grep -qx "$line" <<<"$spoiled" || system_fail "the checker did not say: $line"
done
