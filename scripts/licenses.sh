#!/bin/sh
# Prints the licences of all crates that the program is linked with: their names and terms, then the
# texts that come with their sources, those of the C libraries inside them too. The sources must have been
# fetched, as they are after a build. Exit 1 where a library that is not Rust has no text.
set -eu
cd "$(dirname "$0")/.."

registry=${CARGO_HOME:-$HOME/.cargo}/registry/src
# Crates with something else in them: C libraries. Without their texts the program may not be handed on.
foreign="libz-sys rdkafka-sys zstd-sys ring"

tree=$(cargo tree --locked --offline --package linkweir --package linkweir-lab --edges normal --prefix none --format '{p}|{l}')
# Not those of the workspace, which have a path.
crates=$(printf '%s\n' "$tree" | sed 's/ (\*)$//; s/ (proc-macro)//' | grep -v ' (/' | sort -u)

# The licence files of a crate: at its top, and up to two directories down for what it carries. librdkafka has all
# the texts of its parts in one file, and each once more; of zstd's two licences the other one is taken.
texts_of() { # directory of the crate
    find "$1" -maxdepth 3 -type f \( -name 'LICEN[CS]E*' -o -name 'COPYING*' -o -name 'COPYRIGHT*' -o \
        -name 'NOTICE*' -o -name 'UNLICENSE*' \) ! -path '*/librdkafka/LICENSE.*' ! -path '*/zstd/COPYING' | sort
}

printf 'linkweir contains these Rust crates.\n\n'
printf '%s\n' "$crates" | while IFS='|' read -r crate terms; do
    printf '  %-36s %s\n' "$crate" "$terms"
done

printf '%s\n' "$crates" | while IFS='|' read -r crate terms; do
    name=${crate%% v*}
    version=${crate##* v}
    found=
    deep=
    for directory in "$registry"/*/"$name-$version"; do
        [ -d "$directory" ] || continue
        texts=$(texts_of "$directory")
        while IFS= read -r file; do
            [ -n "$file" ] || continue
            inside=${file#"$directory"/}
            # Where the terms of MIT are offered too, these are the ones that are taken.
            case $inside in *APACHE*) [ -z "${terms##*MIT*}" ] && continue ;; esac
            printf '\n==== %s: %s\n\n' "$crate" "$inside"
            cat "$file"
            found=yes
            case $inside in */*) deep=yes ;; esac
        done <<END
$texts
END
    done
    [ -n "$found" ] || printf '\n==== %s: no text comes with it; its terms: %s\n' "$crate" "$terms"
    case " $foreign " in *" $name "*)
        [ -n "$deep" ] || {
            echo "licenses: no text of what $crate carries" >&2
            exit 1
        }
        ;;
    esac
done
