#!/bin/sh
# Runs the browser tests against a real `linkweir http --console`, fed with made traffic, once with a
# server that is killed, once with a run that ends; and against `linkweir flows --console`.
#
#   tests/browser/run.sh [LINKWEIR] [--require] [--images DIR]
#
# $GEOIP is a database of countries and AS numbers for `flows` [none]. LINKWEIR is the binary [target/release/linkweir]; python is $PYTHON, else .venv/bin/python beside
# this file, else python3. Exit as console.py: 0 holds, 1 does not, 77 something is missing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
binary=$here/../../target/release/linkweir
case ${1:-} in
'' | --*) ;;
*)
    binary=$1
    shift
    ;;
esac
[ -x "$binary" ] || {
    echo "browser: no binary $binary" >&2
    exit 1
}
python=${PYTHON:-$here/.venv/bin/python}
[ -n "${PYTHON:-}" ] || [ -x "$python" ] || python=python3

scratch=$(mktemp -d)
server=
feeder=
stop() {
    # shellcheck disable=SC2086 # both may be empty
    [ -z "$server$feeder" ] || kill -9 $server $feeder 2>/dev/null || :
    rm -rf "$scratch"
}
trap stop EXIT
trap 'exit 1' INT TERM

# command, end, then flags of console.py
once() {
    command=$1
    end=$2
    shift 2
    case $command in
    http) traffic=traffic.py rate=200 output="-w /dev/null --console-history $scratch/day" test=console.py rule='p95 of host api.shop.example > 300 ms for 3 intervals' ;;
    flows) traffic=flow_traffic.py rate=80 output="--no-output --archive $scratch/link.lwa --step 10s ${GEOIP:+--geoip $GEOIP}" test=flows.py rule='p95 of rtt of name api.shop.example > 300 ms for 3 intervals' ;;
    esac
    # The address is read from the log: one of the server before would be taken for this one's.
    rm -f "$scratch/pipe" "$scratch/log"
    mkfifo "$scratch/pipe"
    "$python" "$here/$traffic" --rate "$rate" --past 450 --seconds 900 >"$scratch/pipe" 2>/dev/null &
    feeder=$!
    # shellcheck disable=SC2086 # flags and their values
    "$binary" "$command" -r - --console 127.0.0.1:0 $output -q --alert "$rule" \
        <"$scratch/pipe" 2>"$scratch/log" &
    server=$!
    url=
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        url=$(sed -n 's/.*\(http:\/\/[^ ]*\).*/\1/p' "$scratch/log" 2>/dev/null | head -n 1)
        [ -n "$url" ] && break
        sleep 0.5
    done
    [ -n "$url" ] || {
        cat "$scratch/log" >&2
        echo "browser: the server does not say where it listens" >&2
        return 1
    }
    result=0
    "$python" "$here/$test" --url "$url" --pid "$server" --end "$end" "$@" || result=$?
    kill -9 "$server" "$feeder" 2>/dev/null || :
    wait "$server" "$feeder" 2>/dev/null || :
    server=
    feeder=
    return "$result"
}

once http kill "$@"
# With the history that the killed one left.
once http interrupt --restarted "$@"
# The pictures of the manual are of HTTP.
once flows interrupt
