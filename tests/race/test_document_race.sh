#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A document that is added while its request is submitted, and a broken twin that the same race catches.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export PYTHONPATH=$here/../support PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/test_document_race.py" "$@"
