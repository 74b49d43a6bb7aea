# SPDX-License-Identifier: Apache-2.0
# Loop of a shell in the guest: reports that it is ready, waits for the next line as a file, executes it.
# Waiting takes no virtual time: the guest never sleeps, and the host stops it until there is a line.
trap : INT
[[ -v ORIGIN ]] || sleep 1 # in the first second after a boot ping(8) asks without a pause

# Continue as a shell on another node, with the next line, or execute a command there.
on() {
    [[ -e /run/netns/$1 ]] || { echo "no node $1: $(cd /run/netns && echo *)" >&2; return 1; }
    if (($# > 1)); then
        _at "$@"
        return
    fi
    NODE=$1 LINE_NUMBER=$LINE_NUMBER ORIGIN=$ORIGIN exec nsenter --net="/run/netns/$1" bash --noprofile --norc "${BASH_SOURCE[0]}"
}

source /run/names.bash
: "${LINE_NUMBER:=0}" "${ORIGIN:=${EPOCHREALTIME/./}}" "${STATUS:=0}"

while :; do
    printf '\036%s %s %s %s\037' "$STATUS" "$((${EPOCHREALTIME/./} - ORIGIN))" "$NODE" "$PWD"
    until [[ -e /task/lines/$LINE_NUMBER ]]; do :; done
    __line=$(<"/task/lines/$LINE_NUMBER")
    LINE_NUMBER=$((LINE_NUMBER + 1))
    (exit "$STATUS")
    eval "$__line"
    STATUS=$?
done
