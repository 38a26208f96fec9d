#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Charges a payment once: charge.sh CUSTOMER INVOICE AMOUNT [--twin]
#
# The key is made of who does what with which content, so a client that lost everything but its intent finds it again. An
# invoice is charged once in its life: that is why it stands in the operation. The twin remembers in a file what it has done.
set -euo pipefail

# shellcheck source=deploy/shell/onceward.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../deploy/shell/onceward.sh"
[ $# -ge 3 ] || { printf 'Usage: %s CUSTOMER INVOICE AMOUNT [--twin]\n' "$0" >&2; exit 2; }
customer=$1 invoice=$2 amount=$3
data='{"customer": "'$customer'", "invoice": "'$invoice'", "amount": "'$amount'"}'
charge() { onceward_call "$1" POST /submissions -H 'Content-Type: application/json' --data '{"type": "example.submitted", "data": '"$data"'}'; }

if [ "${4:-}" != --twin ]; then
    charge "$(onceward_key_of "$customer" "charge $invoice" "$data")"
else
    done_file=${TMPDIR:-/tmp}/charged-$customer-$invoice
    [ ! -e "$done_file" ] || exit 0
    charge ''
    : >"$done_file"
fi
