#!/bin/sh
# Checks that dist/ is what the sources give: types, unit tests, a new build, no difference.
# Exit 0: fresh. 1: dist/ is out of date, or a check failed. 77: there is no Node to check with.
set -eu
cd "$(dirname "$0")/.."
for tool in node npm; do
    command -v "$tool" >/dev/null 2>&1 || {
        echo "fresh: SKIPPED: no $tool (Node 20 or newer)" >&2
        exit 77
    }
done
before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
# What is compared is what a binary would carry now, committed or not.
cp dist/index.html dist/app.js dist/app.css "$before"
npm ci --no-audit --no-fund --loglevel=error
npm run --silent check
npm test --silent >/dev/null
npm run --silent build
for file in index.html app.js app.css; do
    cmp "$before/$file" "dist/$file" || {
        echo "fresh: dist/$file was out of date; it has been built: commit it" >&2
        exit 1
    }
done
others=$(find dist -type f ! -name index.html ! -name app.js ! -name app.css)
[ -z "$others" ] || {
    echo "fresh: no build makes $others" >&2
    exit 1
}
! grep -q '"resolved"' package-lock.json || {
    echo "fresh: package-lock.json names a registry; remove its \"resolved\" lines" >&2
    exit 1
}
echo "fresh: dist/ is what the sources give"
