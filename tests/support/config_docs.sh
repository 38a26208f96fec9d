#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# docs/CONFIGURATION.md, made from the programs' own tables. Usage: config_docs.sh BIN_DIR prints it.
set -euo pipefail

bin=$1
cat <<'EOF'
# Settings

<!-- Made by tests/support/config_docs.sh from the programs' tables. Do not edit: a test compares. -->

A setting can be given in three places, the later of which wins:

1. a file, named by `--config FILE`, with one `name = value` a line and whole-line comments that begin with `#`. Blanks
   around a value are dropped, unless it stands between quotation marks: `"…"`, in which `\"`, `\\`, `\n`, `\r` and `\t`
   are a quotation mark, a backslash, the two line breaks and a tab;
2. the environment, as `ONCEWARD_NAME`;
3. a flag, as `--name-with-dashes value` or `--name-with-dashes=value`. A flag of type *on or off* needs no value.

Names that end in `…` stand for every name that begins so: `kafka.security.protocol = ssl` in a file,
`ONCEWARD_KAFKA_SECURITY_PROTOCOL=ssl` in the environment, `--kafka.security.protocol=ssl` as a flag.

All mistakes are reported at once, with the place of each. A name that no setting has is a mistake; a variable that
belongs to another program of Onceward is not. Every program has `--help`, `--version`, `--check` (are the settings
right?) and `--print-config` (the settings in force, with where each comes from, in the form that a file has). Passwords
are never printed.

Control characters are refused everywhere, but for line breaks and tabs in the properties of Kafka: a certificate may be
given as it is in the environment or a flag, and with `\n` in a file.

Sizes are bytes, or numbers with `KiB`, `MiB` or `GiB`. Units stand in the names of everything else.
EOF
for program in onceward-producer outbox-relay onceward-consumer onceward; do
    printf '\n'
    env -i "$bin/$program" --print-config-docs
done
