#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Refuses what the layers forbid: an include of a higher module or a sibling, a private header from outside, a
# third party's header outside its module or in a public header. The build runs it; it prints file:line for each.
# Usage: layers.sh [ROOT]
set -euo pipefail

root=${1:-$(dirname "${BASH_SOURCE[0]}")/../..}
cd "$root"

# Sources of lib and the programs, as far as they exist.
folders=()
for folder in lib producer outbox-relay consumer cli; do
    [ ! -d "$folder" ] || folders+=("$folder")
done

grep -rnE --include='*.c' --include='*.h' '^[[:space:]]*#[[:space:]]*include' "${folders[@]}" | awk '
    BEGIN {
        # What each folder may include besides itself.
        allowed["lib/base"] = ""
        allowed["lib/domain"] = "base"
        split("lib/wire lib/db lib/kafka", adapters, " ")
        for (i in adapters) allowed[adapters[i]] = "base domain"
        allowed["lib/http"] = "base"
        allowed["lib/digest"] = "base"
        split("producer outbox-relay consumer cli", programs, " ")
        for (i in programs) allowed[programs[i]] = "base domain wire db kafka http digest"

        # The one folder that may include each third party.
        owner["jansson.h"] = "lib/wire"
        owner["libpq-fe.h"] = "lib/db"
        owner["libpq"] = owner["postgres_ext.h"] = owner["pg_config.h"] = "lib/db"
        owner["librdkafka"] = "lib/kafka"
        owner["uv.h"] = owner["llhttp.h"] = "lib/http"
        owner["openssl"] = "lib/digest"
        owner["curl"] = "producer" # client.c alone; a module of lib once a program calls out.
    }
    function refuse(why) {
        print place ": " why ": " include
        found = 1
    }
    {
        split($0, parts, ":")
        place = parts[1] ":" parts[2]
        path = parts[1]
        count = split(path, folders, "/")
        home = folders[1] == "lib" ? folders[1] "/" folders[2] : folders[1]
        include = $0
        sub(/^[^<"]*/, "", include)
        name = substr(include, 2)
        sub(/[>"].*/, "", name)
        first = name
        sub(/\/.*/, "", first)
        own = substr(home, 5)

        if (substr(include, 1, 1) == "<") {
            if (!(first in owner)) next
            if (owner[first] != home) refuse("this third party belongs to " owner[first])
            else if (path ~ /\/include\//) refuse("no third party in a public header")
            next
        }
        if (index(name, "/") == 0) {
            folder = path
            sub(/[^\/]*$/, "", folder)
            if (path ~ /\/include\//) refuse("a public header includes a private one")
            else if ((getline line < (folder name)) < 0 && (getline line < (home "/" name)) < 0) refuse("not a header of " home)
            close(folder name)
            close(home "/" name)
            next
        }
        if (name ~ /private\.h$/ || name ~ /^\.\.?\// || name ~ /\/\.\.\//) { refuse("reaches into another folder"); next }
        if (first == own) next
        if (home !~ /^lib/ && (getline line < (home "/" name)) >= 0) { close(home "/" name); next }
        if (index(" " allowed[home] " ", " " first " ") == 0) refuse(home " may not include " first)
    }
    END { exit found }
'
