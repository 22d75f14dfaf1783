#!/bin/sh
# Shows what the program does: records of the bundled capture, then the laboratory, in which all systems
# measure one another.
#
#   scripts/demo.sh PATH_OF_LINKWEIR OUTPUT_DIRECTORY [WORDS_FOR_THE_LABORATORY]...
#
# Exit: that of the laboratory (the last, where it ran slower again): 1 where a check failed.
set -eu
cd "$(dirname "$0")/.."

linkweir=${1:?path of linkweir}
out=${2:?output directory}
shift 2
capture=app/testkit/captures/nginx-demo.pcap.gz

written() { # the file and what it is
    [ -s "$out/$1" ] || {
        echo "demo: $out/$1 is missing or empty" >&2
        exit 1
    }
    printf '  %-26s %s\n' "$out/$1" "$2"
}

mkdir -p "$out"
printf '\n1. A capture: one record for each HTTP transaction\n\n$ linkweir http -r %s -w %s/records.txt ...\n\n' "$capture" "$out"
"$linkweir" http -r "$capture" -w "$out/records.txt" -w "$out/records.jsonl" --overwrite \
    --summary "$out/summary.json" --report "$out/report.html"
printf '\nThe first records (client|port|server|port|request time|response time|seconds between|phrase|code|method|agent|host|URI):\n\n'
head -n 3 "$out/records.txt"

printf '\n2. The laboratory: clients, a gateway and a web server in network namespaces; everybody counts\n'
laboratory() { # more words for it
    printf '\n$ linkweir lab web --report %s/lab.html%s\n\n' "$out" "${*:+ $*}"
    status=0
    "$linkweir" lab web --overwrite --report "$out/lab.html" --summary "$out/lab.json" "$@" >"$out/lab.txt" || status=$?
    [ ! -s "$out/lab.txt" ] || cat "$out/lab.txt"
}
laboratory "$@"
# A generator that cannot keep its schedule says so, and then the rest has no meaning: a busy machine is asked for less.
case " $* " in
*" --rate"*) slower='' ;;
*) slower='300 100' ;;
esac
for rate in $slower; do
    { [ "$status" -eq 1 ] && grep -q INVALID "$out/lab.txt"; } || break
    printf '\nThis machine was too slow or too busy for that many sessions; again, with %s a second.\n' "$rate"
    laboratory "$@" --rate "$rate"
done

printf '\nWritten:\n'
written records.txt "one line per HTTP transaction"
written records.jsonl "the same, one JSON object per line"
written summary.json "the totals"
written report.html "plots of the capture; open it in a browser, no network needed"
case $status in
0 | 1)
    written lab.txt "the laboratory's table, as above"
    written lab.json "the same as a JSON object"
    written lab.html "the same with plots"
    ;;
3)
    # A program that is missing is named above; what can be done without it was done.
    if ! scripts/setup.sh demo --check; then
        echo "The laboratory needs what is named above; then run make demo again." >&2
        status=0
    fi
    ;;
esac
exit "$status"
