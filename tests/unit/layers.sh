#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The layers hold, and each way to break them is refused: tried on a copy.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
copy=$(mktemp -d "${TMPDIR:-/tmp}/onceward-layers.XXXXXX")
trap 'rm -rf "$copy"' EXIT
failures=0

complain() {
    printf '%s\n' "$*"
    failures=1
}

"$root/tests/support/layers.sh" "$root" || complain "the layers are broken"

# refused FILE LINE: a file with this line, put into an empty tree, must be named.
refused() {
    rm -rf "$copy/tree"
    mkdir -p "$copy/tree/lib/db/include/db" "$copy/tree/lib/wire/include/wire" "$copy/tree/$(dirname "$1")"
    printf '%s\n' '#include "db/db.h"' >"$copy/tree/lib/db/db.c"
    : >"$copy/tree/lib/wire/wire_private.h"
    "$root/tests/support/layers.sh" "$copy/tree" || complain "the clean copy was refused"
    printf '\n%s\n' "$2" >"$copy/tree/$1"
    if output=$("$root/tests/support/layers.sh" "$copy/tree") || [[ $output != "$1:2: "* ]]; then
        complain "not refused: $2 in $1 (${output:-no output})"
    fi
}

refused lib/base/x.c '#include "domain/event.h"'
refused lib/domain/x.c '#include "wire/wire_json.h"'
refused lib/domain/include/domain/x.h '#  include "db/db.h"'
refused lib/wire/x.c '#include "db/db.h"'
refused lib/http/x.c '#include "domain/event.h"'
refused lib/digest/x.c '#include "http/health.h"'
refused lib/kafka/x.c '#include "wire/wire_json.h"'
refused lib/db/x.c '#include "relay/relay.h"'
refused producer/x.c '#include "consumer/apply.h"'
refused producer/x.c '#include "wire/wire_private.h"'
refused producer/x.c '#include "../lib/wire/wire_private.h"'
refused producer/x.c '#include "wire_private.h"'
refused producer/x.c '#include <jansson.h>'
refused outbox-relay/x.c '#include <librdkafka/rdkafka.h>'
refused consumer/sinks/x.c '#include <libpq-fe.h>'
refused cli/x.c '#include <openssl/evp.h>'
refused consumer/x.c '#include <curl/curl.h>'
refused lib/base/x.h '#include <uv.h>'
refused lib/wire/x.c '#include <llhttp.h>'
refused lib/db/include/db/x.h '#include <libpq-fe.h>'
refused lib/wire/include/wire/x.h '#include "wire_private.h"'

# A cycle between modules: the root's own property and functions, two modules that use each other.
mkdir -p "$copy/cycle"
cp "$root/cmake/onceward.cmake" "$copy/cycle/"
printf 'int %s(void);\nint %s(void) { return 0; }\n' one one >"$copy/cycle/one.c"
{
    printf 'cmake_minimum_required(VERSION 3.25)\nset(CMAKE_C_COMPILER_WORKS ON)\nproject(cycle VERSION 1.0 LANGUAGES C)\n'
    grep GLOBAL_DEPENDS_NO_CYCLES "$root/CMakeLists.txt" || complain "the root allows cycles"
    printf 'include(onceward.cmake)\nonceward_module(one SOURCES one.c USES two)\nonceward_module(two SOURCES one.c USES one)\n'
} >"$copy/cycle/CMakeLists.txt"
if output=$(cmake -G Ninja -S "$copy/cycle" -B "$copy/cycle/build" 2>&1) || [[ $output != *"strongly connected component"* ]]; then
    complain "a cycle of modules was not refused: $output"
fi
exit "$failures"
