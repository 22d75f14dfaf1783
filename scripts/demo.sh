#!/bin/sh
# Runs `linkweir http` on the bundled capture and shows what came out.
#
#   scripts/demo.sh PATH_OF_LINKWEIR OUTPUT_FOLDER
set -eu
cd "$(dirname "$0")/.."

linkweir=${1:?path of linkweir}
out=${2:?output folder}
capture=app/testkit/captures/nginx-demo.pcap.gz

mkdir -p "$out"
printf '\n$ linkweir http -r %s -w %s/records.txt -w %s/records.jsonl --summary %s/summary.json --report %s/report.html\n\n' \
    "$capture" "$out" "$out" "$out" "$out"
"$linkweir" http -r "$capture" -w "$out/records.txt" -w "$out/records.jsonl" \
    --summary "$out/summary.json" --report "$out/report.html"

printf '\nThe first records (client|port|server|port|request time|response time|seconds between|phrase|code|method|agent|host|URI):\n\n'
head -n 5 "$out/records.txt"
printf '\nWritten:\n'
for file in records.txt records.jsonl summary.json report.html; do
    [ -s "$out/$file" ] || { echo "demo: $out/$file is missing or empty" >&2; exit 1; }
    case $file in
    records.txt) what="one line per HTTP transaction" ;;
    records.jsonl) what="the same, one JSON object per line" ;;
    summary.json) what="the totals" ;;
    report.html) what="plots; open it in a browser, no network needed" ;;
    esac
    printf '  %-26s %s\n' "$out/$file" "$what"
done
