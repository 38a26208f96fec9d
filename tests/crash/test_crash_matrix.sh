#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The crash matrix: a program is killed at one of its failpoints under load, started again, and the checker proves that
# nothing is lost, nothing is twice and the order per key is right. Every failpoint that the sources name has a row here,
# or the test fails; so does a row whose program does not die just there. At last the same is done to a consumer that
# commits its cursor before the effect, which the checker must find out.
#
#   test_crash_matrix.sh BIN_DIR [--long] [ROW...]     each row at one passage; --long: at all that it names
set -euo pipefail

program=test_crash_matrix
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=tests/support/system.sh
. "$here/../support/system.sh"
# shellcheck source=tests/support/failpoints.sh
. "$here/../support/failpoints.sh"

# failpoint, passages (the short form takes the first that stands here), what is done besides the load until it dies.
# The passages are the first and later ones. "once" as the last: nobody passes there twice in his life.
matrix='
producer.after_lock                 9 1 30
producer.before_commit              7 1 20
producer.after_commit               6 1 20
producer.before_hint                5 1 15
relay.after_renewal                 1 2              idle
relay.after_lane_before_log         5 1 8
relay.after_take                    4 1 8
relay.after_own_xid                 2 1 6
relay.after_snapshot                3 1 6
relay.after_read                    3 1 6
relay.before_send                  12 1 30
relay.after_collect                25 1 60
relay.after_refusal                 1 3              refuse
relay.after_deferral                2 1              refuse
relay.before_settle                 3 1 5
relay.before_log_insert             2 1 5
relay.after_log_insert              3 1 5
relay.after_tail                    5 1 8            cut
relay.after_old_rows                1 2              idle
relay.draining                      1 once           stop
relay.after_release                 3 1 8            stop
consumer.after_take                 1 2              rewind
consumer.after_look                 2 1 4
consumer.offset_first               3 1 6
consumer.after_cursor_before_inbox  4 1 7
consumer.check_then_act             3 1 6
consumer.after_inbox_before_sink    4 1 7
consumer.after_sink_before_commit   3 1 7
consumer.after_commit               4 1 7
consumer.after_commit_before_hint   5 1 9
'
patience_s=90 # Until a point is reached, also on a busy machine.
requests=8
settle_s=30
is_long=off
wanted=()
kills=0


row_of() { awk -v point="$1" '$1 == point' <<<"$matrix"; }

# Rows and failpoints are the same names, and every row begins at the first passage and goes on to a later one.
check_rows() {
    local names point passages
    names=$(awk 'NF {print $1}' <<<"$matrix" | sort)
    diff <(printf '%s\n' "$names") <(failpoints "$system_root") >&2 ||
        system_fail "the rows of the matrix (<) are not the failpoints of the programs (>)"
    for point in $names; do
        passages=" $(passages_of "$point" | tr '\n' ' ')"
        [[ $passages == *' 1 '* ]] || system_fail "$point is not killed at its first passage"
        [[ $passages == *' '[2-9]* || $passages == *' 1'[0-9]* || $(row_of "$point") == *' once '* ]] ||
            system_fail "$point is not killed at a later passage"
    done
}

passages_of() { row_of "$1" | grep -oE ' [0-9]+' | tr -d ' '; }
stimulus_of() { row_of "$1" | awk '$NF ~ /^(idle|refuse|cut|stop|rewind)$/ {print $NF}'; }

# ---- What is done until the victim dies ----

start_load() {
    "$here/../load/run" --requests "$requests" --events $((4 * requests)) --clients 4 --keys 12 --writers 2 --topic "$system_topic" \
        --corpus "$system_folder/corpus" --seed "$kills" --insist --out "$1" >"$1.log" 2>&1 &
    load_pid=$!
}

end_load() { wait "$load_pid" || { cat "$1.log" >&2; system_fail "the load $1 was not accepted"; }; }

# The broker refuses the very first of these, and all others are held behind it.
stimulate_refuse() {
    system_query "SELECT onceward.publish('$refusing_topic', 'refused', 'example.refused', to_json(repeat('x', 4000)));
           SELECT onceward.publish('$refusing_topic', 'refused', 'example.refused', '1')" >/dev/null
}

# Only a relay that holds lanes has something to look after when it is connected again.
stimulate_cut() {
    system_query "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()
              AND application_name = 'onceward-relay' AND EXISTS (SELECT FROM onceward.lanes WHERE owner = 'relay-1')" >/dev/null
    sleep 1
}

# It may be dead by the time that it is asked to end.
stimulate_stop() {
    [ "$(system_query "SELECT count(*) FROM onceward.lanes WHERE owner = 'relay-1'")" -eq 0 ] || system_signal relay TERM || true
}

stimulate_rewind() {
    system_query "INSERT INTO onceward.consumer_progress (consumer, scope, topic, partition, seq, owner, incarnation, attempt, kind,
                                                   next_offset, cluster_id)
           SELECT consumer, scope, topic, partition, seq + 1, 'operator', gen_random_uuid(), gen_random_uuid(), 'rewound',
                  greatest(next_offset - 20, 0), cluster_id
             FROM onceward.consumer_state ON CONFLICT DO NOTHING"
    sleep 1
}

# Until the victim is dead: the load, again where it ends before, and the stimulus. Sets folders, the manifests.
provoke() {
    local victim=$1 stimulus=$2 name=$3 deadline=$((SECONDS + patience_s)) turn=0
    folders=()
    load_pid=''
    while kill -0 "${system_pids[$victim]}" 2>/dev/null; do
        [ "$SECONDS" -lt "$deadline" ] || { system_fail "$name was not reached within $patience_s s"; return 1; }
        if [ -z "$load_pid" ] || { [ "$stimulus" != idle ] && ! kill -0 "$load_pid" 2>/dev/null; }; then
            [ -z "$load_pid" ] || end_load "${folders[-1]}"
            folders+=("$system_folder/$name.$turn")
            start_load "${folders[-1]}"
        fi
        case $stimulus in ''|idle) ;; *) "stimulate_$stimulus" ;; esac
        turn=$((turn + 1))
        sleep 0.1
    done
}

# ---- A row ----

# expect_death VICTIM POINT PASSAGE: by the signal, and at that point by its own word.
expect_death() {
    local code=0 said
    system_await "$1" || code=$?
    [ "$code" -eq 137 ] || { tail -n 20 "$system_folder/$1.log" >&2; system_fail "$1 ended with $code, not killed at $2"; return 1; }
    # The log is the one of all its lives, so it must have one more word of this kind than before.
    said=$(grep '^failpoint ' "$system_folder/$1.log" || true)
    kills_of[$1]=$((kills_of[$1] + 1))
    if [ "$(wc -l <<<"$said")" -ne "${kills_of[$1]}" ] || [ "$(tail -n 1 <<<"$said")" != "failpoint $2: killed at passage $3" ]; then
        system_fail "$1 was killed elsewhere than at $2"
    fi
}

# The shell's own remarks about who was killed are shown only if something goes wrong.
provoke_death() {
    provoke "${1%%.*}" "$3" "$4" 2>>"$system_folder/remarks"
    expect_death "${1%%.*}" "$1" "$2" 2>>"$system_folder/remarks"
    : >"$system_folder/remarks"
}

finish() {
    local code=$?
    [ "$code" -eq 0 ] || [ ! -e "$system_folder/remarks" ] || cat "$system_folder/remarks" >&2
    (exit "$code")
    system_stop
}

check() {
    local options=() folder
    for folder in "${folders[@]}"; do options+=(--manifest "$folder"); done
    "$here/../load/check" "${options[@]}" --settle "$1" --fetch 20 >"$system_folder/check.log" 2>&1
}

# What the broker refused is deferred, once, with all that came behind it, and nothing of it is on the topic.
check_refused() {
    [ "$(system_query "SELECT count(*) FROM onceward.outbox o LEFT JOIN onceward.deferred d USING (id)
                 WHERE o.topic = '$refusing_topic' AND d.state IS DISTINCT FROM
                       CASE WHEN o.id = (SELECT min(id) FROM onceward.outbox WHERE topic = o.topic) THEN 'parked' ELSE 'held' END")" -eq 0 ]
}

await_refused() {
    local deadline=$((SECONDS + settle_s))
    until check_refused; do
        [ "$SECONDS" -lt "$deadline" ] || { system_query "SELECT id, state, reason_code FROM onceward.deferred" >&2; system_fail "not all that was refused is deferred"; return 1; }
        sleep 0.2
    done
}

# crash POINT PASSAGE
crash() {
    local point=$1 passage=$2 victim=${1%%.*} begun=$SECONDS code=0
    system_signal "$victim" TERM
    system_await "$victim" || system_fail "$victim did not end as it should"
    system_spawn "$victim" "$point=kill@$passage"
    provoke_death "$point" "$passage" "$(stimulus_of "$point")" "$kills.$point@$passage"
    system_run "$victim"
    end_load "${folders[-1]}"
    check "$settle_s" || code=$?
    [ "$code" -eq 0 ] || { cat "$system_folder/check.log" >&2; system_fail "killed at $point, passage $passage, and something is wrong"; return 1; }
    [ "$(stimulus_of "$point")" != refuse ] || await_refused
    kills=$((kills + 1))
    printf '%-36s passage %3d  %3d s  %s events\n' "$point" "$passage" $((SECONDS - begun)) \
        "$(sed -n 's/^compared_events: //p' "$system_folder/check.log")"
}

run_matrix() {
    local point passage
    for point in "${wanted[@]}"; do
        for passage in $(passages_of "$point"); do
            crash "$point" "$passage"
            [ "$is_long" = on ] || break
        done
    done
}

# The twin: as good as the consumer while it lives, and found out by the same check once it dies behind its cursor.
run_twin() {
    local twin=consumer.offset_first=error code=0 point=consumer.after_cursor_before_inbox
    system_signal consumer TERM
    system_await consumer || system_fail "the consumer did not end as it should"
    system_spawn consumer "$twin"
    folders=("$system_folder/twin.alive")
    start_load "${folders[0]}"
    end_load "${folders[0]}"
    check "$settle_s" || { cat "$system_folder/check.log" >&2; system_fail "the twin is found out while it lives"; return 1; }
    system_signal consumer TERM
    system_await consumer || system_fail "the twin did not end as it should"
    system_spawn consumer "$twin;$point=kill@3"
    provoke_death "$point" 3 '' twin.killed
    system_run consumer
    end_load "${folders[-1]}"
    check 5 || code=$?
    if [ "$code" -ne 1 ] || ! grep -qE '^anomalies_lost_effect: [1-9]' "$system_folder/check.log"; then
        cat "$system_folder/check.log" >&2
        system_fail "the twin that commits its cursor first was not found out"
    fi
    printf 'the twin that commits its cursor first: %s\n' "$(grep '^anomalies_lost_effect: ' "$system_folder/check.log")"
}

bin_dir=$1
shift
for argument in "$@"; do
    case $argument in
        --long) is_long=on ;;
        *) wanted+=("$argument") ;;
    esac
done
check_rows
[ "${#wanted[@]}" -gt 0 ] || mapfile -t wanted < <(awk 'NF {print $1}' <<<"$matrix")

trap finish EXIT
declare -A kills_of=([producer]=0 [relay]=0 [consumer]=0)
system_start "$bin_dir"
system_commands[consumer]+=$'\nbatch_records_max = 5'
refusing_topic=$system_topic.refusing
"$system_bin/onceward" topic add "$refusing_topic" --partitions 1 --topic.max.message.bytes 2000 >>"$system_folder/migrate.log"
system_query "UPDATE onceward.topics SET event_bytes_max = 1000000 WHERE topic = '$refusing_topic'"
python3 -B -c 'import sys; sys.path.insert(0, sys.argv[1]); import corpus; corpus.Corpus().sample(sys.argv[2], 20)' \
    "$here/../load" "$system_folder/corpus"
run_matrix
run_twin
system_versions
printf '%s kills, each at its point\n' "$kills"
