#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The design's models hold, and each mutation that must be caught is.
set -euo pipefail

exec nice -n 19 "$(dirname "${BASH_SOURCE[0]}")/run" --quick
