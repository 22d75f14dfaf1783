#!/bin/sh
# Prints the licences of all crates that the program is linked with: their names and terms, then the
# texts that come with their sources. The sources must have been fetched, as they are after a build.
set -eu
cd "$(dirname "$0")/.."

registry=${CARGO_HOME:-$HOME/.cargo}/registry/src
tree=$(cargo tree --locked --offline --package linkweir --edges normal --prefix none --format '{p}|{l}')
# Not those of the workspace, which have a path.
crates=$(printf '%s\n' "$tree" | sed 's/ (\*)$//; s/ (proc-macro)//' | grep -v ' (/' | sort -u)

printf 'linkweir contains these Rust crates.\n\n'
printf '%s\n' "$crates" | while IFS='|' read -r crate terms; do
    printf '  %-36s %s\n' "$crate" "$terms"
done

printf '%s\n' "$crates" | while IFS='|' read -r crate terms; do
    name=${crate%% v*}
    version=${crate##* v}
    found=
    for file in "$registry"/*/"$name-$version"/*; do
        case ${file##*/} in
        LICEN[CS]E* | COPYING* | COPYRIGHT* | NOTICE* | UNLICENSE*) ;;
        *) continue ;;
        esac
        [ -f "$file" ] || continue
        # Where the terms of MIT are offered too, these are the ones that are taken.
        case ${file##*/} in *APACHE*) [ -z "${terms##*MIT*}" ] && continue ;; esac
        printf '\n==== %s: %s\n\n' "$crate" "${file##*/}"
        cat "$file"
        found=yes
    done
    [ -n "$found" ] || printf '\n==== %s: no text comes with it; its terms: %s\n' "$crate" "$terms"
done
