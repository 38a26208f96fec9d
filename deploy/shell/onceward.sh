# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The submit API from a shell: one call is carried out once, however often it has to be sent. Source this file.
#
#   ONCEWARD_URL=http://127.0.0.1:8480  ONCEWARD_TOKEN=owt_…
#   key=$(onceward_key_new)                              # keep it with the intent until the call is answered
#   onceward_call "$key" POST /submissions -H 'Content-Type: application/json' --data '{"type": "example.submitted"}'
#
# What curl's own --retry does not do: it gives up when a connection is refused or reset (unless told otherwise), does not
# know that 409 idempotency_in_progress means "again" and that most other 4xx do not, and a body that comes from a pipe is
# gone at the second try.

# A fresh key: a random UUID. For an intent that can be stored together with it.
onceward_key_new() {
    if [ -r /proc/sys/kernel/random/uuid ]; then cat /proc/sys/kernel/random/uuid; else uuidgen | tr '[:upper:]' '[:lower:]'; fi
}

# onceward_key_of USER OPERATION PAYLOAD: the same key for the same intent, where nothing can be stored. The parts are hashed
# with their lengths in bytes, as onceward_key_of() of the C client does. Two equal payments that are both meant need
# different operations ("pay invoice 17").
onceward_key_of() {
    local LC_ALL=C # Lengths count bytes.
    printf '%s:%s%s:%s%s:%s' "${#1}" "$1" "${#2}" "$2" "${#3}" "$3" | sha256sum | cut -d ' ' -f 1
}

# onceward_id_of TEXT...: a request id that is always the same for these texts, for an intent that has a name already which is no
# UUID: a webhook's delivery, an order's number. A UUID of version 8 (RFC 9562), made of their SHA-256.
onceward_id_of() {
    local LC_ALL=C part hash
    hash=$(for part in "$@"; do printf '%s:%s' "${#part}" "$part"; done | sha256sum)
    printf '%s-%s-8%s-a%s-%s\n' "${hash:0:8}" "${hash:8:4}" "${hash:13:3}" "${hash:17:3}" "${hash:20:12}"
}

# onceward_call KEY METHOD PATH [CURL-OPTION]...: prints the answer's body. KEY is '' for a call that only reads. Every try
# carries the same key. It is tried again where no answer came, and where the answer says so (retry.same_key; without
# Onceward's own answer: 408, 429 and 5xx), after growing waits and never before Retry-After.
# Returns 0 for 2xx; 1 for any other answer, which stands on stderr; 2 for a call that cannot be tried again; 3 when
# ONCEWARD_PATIENCE_S (60) seconds were over first. Then ask once more with the same key: it may have been carried out.
onceward_call() {
    local key=$1 method=$2 path=$3
    shift 3
    onceward_can_repeat "$@" || return 2
    case $key in
        *[[:cntrl:]]*) printf 'onceward_call: a key has no control characters\n' >&2; return 2 ;;
    esac
    key=${key//\\/\\\\}
    key=${key//\"/\\\"}
    local folder code=0
    folder=$(mktemp -d "${TMPDIR:-/tmp}/onceward-call.XXXXXX") || return 2
    [ -z "$key" ] || printf 'Idempotency-Key: "%s"\n' "$key" >>"$folder/headers"
    [ -z "${ONCEWARD_TOKEN:-}" ] || printf 'Authorization: Bearer %s\n' "$ONCEWARD_TOKEN" >>"$folder/headers" # Not in ps.
    : >>"$folder/headers"
    onceward_try_on "$folder" "$method" "${ONCEWARD_URL:-http://127.0.0.1:8480}$path" "$@" || code=$?
    rm -rf "$folder"
    return "$code"
}

# onceward_can_repeat CURL-OPTION...: whether every try would send the same. What is read from a pipe is gone after the first,
# so a file must be one that can be read again.
onceward_can_repeat() {
    local option before='' file
    for option in "$@"; do
        file=''
        case $before in
            -T|--upload-file) file=$option ;;
            -F|--form) case $option in *=[@\<]*) file=${option#*=[@<]}; file=${file%%;*} ;; esac ;;
            --data-urlencode) case ${option%%@*} in "$option"|*=*) ;; *) file=${option#*@} ;; esac ;;
            *) case $option in @*) file=${option#@} ;; esac ;;
        esac
        case $option in
            -T?*) file=${option#-T} ;;
            --*=*|--fail*|--retry*|-f|--next|-:|-K*|--config) # curl takes no option of this form, or it is not for here.
                printf 'onceward_call: %s: not taken; tries are counted here\n' "$option" >&2
                return 1 ;;
            -F*=[@\<]*) file=${option#*=[@<]}; file=${file%%;*} ;;
            -[!-]*@*) case ${option%%@*} in -*[!a-zA-Z]*) ;; *) file=${option#*@} ;; esac ;;
        esac
        if [ -n "$file" ] && [ ! -f "$file" ]; then
            printf 'onceward_call: %s: give the body as text or as a file, which can be read again\n' "$option" >&2
            return 1
        fi
        before=$option
    done
}

# The tries of one call. What came last lies in the folder: status, head, body.
onceward_try_on() {
    local folder=$1 method=$2 url=$3 deadline=$((SECONDS + ${ONCEWARD_PATIENCE_S:-60})) wait=1 status after pause code
    shift 3
    while :; do
        code=0
        : >"$folder/head"
        : >"$folder/body"
        status=$(curl -sS -X "$method" -H "@$folder/headers" -H 'Expect:' -o "$folder/body" -D "$folder/head" -w '%{http_code}' \
            --max-time "${ONCEWARD_TRY_S:-35}" "$@" "$url" 2>"$folder/errors") || code=$?
        case $code in
            2|3|26|43) cat "$folder/errors" >&2; return 2 ;; # A wrong option or URL, a body that cannot be read.
        esac
        [ "$code" -eq 0 ] || status=000
        case $status in
            2??) cat "$folder/body"; return 0 ;;
        esac
        if ! onceward_is_again "$status" "$folder/body"; then
            cat "$folder/body" >&2
            return 1
        fi
        after=$(sed -n 's/^[Rr]etry-[Aa]fter: *\([0-9]\{1,5\}\).*/\1/p' "$folder/head" | tail -n 1)
        pause=$((${after:-0} > wait ? after : wait))
        if [ $((SECONDS + pause)) -ge "$deadline" ]; then
            cat "$folder/body" "$folder/errors" >&2
            return 3
        fi
        sleep "$pause"
        wait=$((wait < 8 ? wait * 2 : 8))
    done
}

# onceward_is_again STATUS BODY-FILE: may the same call succeed later? A text inside the body cannot look like the member,
# since its quotation marks are escaped there.
onceward_is_again() {
    local body
    body=$(tr -d ' \r\n\t' <"$2")
    case $body in
        *'"retry":{'*'"same_key":true'*) return 0 ;;
        *'"retry":{'*'"same_key":false'*) return 1 ;;
    esac
    case $1 in 000|408|429|5??) return 0 ;; esac
    return 1
}
