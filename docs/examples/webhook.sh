#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Settles a webhook once: webhook.sh PROVIDER DELIVERY_ID AMOUNT [--twin]
#
# A provider delivers again until it is answered, for days: longer than answers are kept under a key. So the delivery's own id
# becomes the request's id, which is protected for ever. The twin remembers in a file what it has settled.
set -euo pipefail

# shellcheck source=deploy/shell/onceward.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../deploy/shell/onceward.sh"
[ $# -ge 3 ] || { printf 'Usage: %s PROVIDER DELIVERY_ID AMOUNT [--twin]\n' "$0" >&2; exit 2; }
provider=$1 delivery=$2 amount=$3
data='{"provider": "'$provider'", "delivery": "'$delivery'", "amount": "'$amount'"}'
settle() { onceward_call '' POST /submissions -H 'Content-Type: application/json' --data '{"id": "'"$1"'", "type": "example.submitted", "data": '"$data"'}'; }

if [ "${4:-}" != --twin ]; then
    settle "$(onceward_id_of "$provider" "$delivery")"
else
    done_file=${TMPDIR:-/tmp}/settled-$provider-$delivery
    [ ! -e "$done_file" ] || exit 0
    settle "$(onceward_key_new)" # An id of its own for each delivery.
    : >"$done_file"
fi
