# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The example of the quickstart: type example.submitted -> topic example.submissions -> table example.submissions.
# Uses state, url, database, kafka, ports, sql, onceward and step of deploy/quickstart.

example_topic=example.submissions

example_prepare() {
    sql -f "$root/schema/example/submissions.sql"
    onceward topic add "$example_topic" --partitions 3
    onceward route add example.submitted "$example_topic"
}

example_consumer_configuration() {
    cat <<EOF
# Written by $program at every start. The statement is schema/example/sink.sql in one line.
consumer = example
name = quickstart
listen = 127.0.0.1:${ports[2]}
database = $(database_as consumer)
kafka = $kafka
topics = $example_topic
start = earliest
sink_sql = $(tr -s '\n ' ' ' <"$root/schema/example/sink.sql")
EOF
}

# call METHOD PATH [CURL-OPTION]...: the answer's body in answer, its status in status.
call() {
    local method=$1 path=$2
    shift 2
    status=$(curl -sS -X "$method" -o "$state/run/answer" -w '%{http_code}' --max-time 30 "$@" "$url$path") ||
        die "$method $path: no answer from the producer"
    answer=$(tr -d '\n' <"$state/run/answer")
}
# member NAME: a member of answer, as text.
member() { printf '%s\n' "$answer" | sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p"; }
said() { printf '          %-58s %s\n' "$1" "$2"; }

# One request built up step by step, each step sent twice as a client does that lost the answer.
example_step_by_step() {
    local id=$1 try
    for try in 1 2; do
        call PUT "/requests/$id" -H 'Content-Type: application/json' \
            --data "{\"type\": \"example.submitted\", \"data\": {\"subject\": \"quickstart\", \"amount\": \"12.50\"}}"
        said "PUT /requests/$id" "$status $(member status)"
    done
    for try in README.md LICENSE LICENSE; do
        call POST "/requests/$id/documents?name=$try" -H 'Content-Type: text/plain' --data-binary "@$root/$try"
        said "POST .../documents?name=$try" "$status"
    done
    for try in 1 2 3; do
        call POST "/requests/$id/submit"
        said "POST .../submit" "$status $(member status), event $(member event_id)"
    done
}

# The same in one call, sent twice.
example_in_one_call() {
    local id=$1 try
    for try in 1 2; do
        call POST /submissions -H 'Content-Type: application/json' --data \
            "{\"id\": \"$id\", \"type\": \"example.submitted\", \"data\": {\"subject\": \"in one call\"}, \"documents\": [{\"name\": \"note.txt\", \"media_type\": \"text/plain\", \"content\": \"$(printf 'Hello, once.' | base64)\"}]}"
        said "POST /submissions (id $id)" "$status $(member status)"
    done
}

# await TEXT SQL: until the statement says true.
await() {
    local deadline=$((SECONDS + 30))
    until [ "$(sql -c "$2")" = t ]; do
        [ "$SECONDS" -lt "$deadline" ] || die "$1 did not happen within 30 s; see the logs in $state/log"
        sleep 0.1
    done
}

duplicates_dropped() {
    curl -sS --max-time 10 "http://127.0.0.1:${ports[2]}/metrics" | sed -n 's/^onceward_consumer_duplicates_total //p'
}

# Puts the record of a request on the topic once more, byte for byte, as a producer that retries would.
example_copy_record() {
    local id=$1 topic partition offset before pair pairs=() headers=()
    before=$(duplicates_dropped)
    IFS=' ' read -r topic partition offset < <(sql -F ' ' -c "SELECT p.topic, p.partition, p.record_offset FROM onceward.outbox o
        CROSS JOIN LATERAL onceward.event_place(o.lane, o.id) p WHERE o.key = '$id'")
    IFS=',' read -r -a pairs < <(kcat -q -C -b "$kafka" -t "$topic" -p "$partition" -o "$offset" -c 1 -e -f '%h\n')
    for pair in "${pairs[@]}"; do headers+=(-H "$pair"); done
    kcat -q -C -b "$kafka" -t "$topic" -p "$partition" -o "$offset" -c 1 -e -f '%s' >"$state/run/record"
    kcat -q -P -b "$kafka" -t "$topic" -p "$partition" -k "$id" "${headers[@]}" "$state/run/record"
    await "the copy's delivery" "SELECT bool_or(next_offset > $offset + 1) FROM onceward.consumer_progress
        WHERE topic = '$topic' AND partition = $partition"
    said "record $topic/$partition/$offset put on the topic again" \
        "delivered, dropped as a duplicate ($(($(duplicates_dropped) - before)) more dropped by the consumer)"
}

# Where each request's event is now: submitted -> published -> applied.
example_show_way() {
    local ids
    ids=$(printf ",'%s'" "$@")
    PSQL_PAGER='' psql -X -q -P footer=off "$database" -c "
        SELECT s.request_id, to_char(s.submitted_at, 'HH24:MI:SS.MS') AS submitted,
               p.topic || '/' || p.partition || '/' || p.record_offset AS published,
               (SELECT to_char(min(e.applied_at), 'HH24:MI:SS.MS') FROM example.effects e WHERE e.event_id = s.event_id) AS applied,
               (SELECT count(*) FROM example.effects e WHERE e.event_id = s.event_id) AS effects
          FROM onceward.submissions s
          JOIN onceward.outbox o USING (event_id)
          LEFT JOIN LATERAL onceward.event_place(o.lane, o.id) p ON true
         WHERE s.request_id IN (${ids#,})
         ORDER BY o.id" | sed 's/^/          /'
}

example_run() {
    local first second ids
    first=$(cat /proc/sys/kernel/random/uuid)
    second=$(cat /proc/sys/kernel/random/uuid)
    ids="'$first','$second'"
    step "a request with two documents; every step is sent again, as after a lost answer"
    example_step_by_step "$first"
    step "another one in a single call, sent twice"
    example_in_one_call "$second"
    await "an effect of both submissions" "SELECT count(DISTINCT request_id) = 2 FROM example.effects WHERE request_id IN ($ids)"
    await "the relay's note of both places" "SELECT count(*) = 2 FROM onceward.outbox o
        CROSS JOIN LATERAL onceward.event_place(o.lane, o.id) p WHERE o.key IN ($ids)"
    step "a copy of the first record"
    example_copy_record "$first"
    step "the way of each: submitted -> published (topic/partition/offset) -> applied, once"
    example_show_way "$first" "$second"
}
