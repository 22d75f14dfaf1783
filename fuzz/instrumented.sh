#!/bin/sh
# The compiler for `cargo xtask fuzz-smoke`: cargo calls it with rustc and its arguments, for the crates of the
# workspace alone (RUSTC_WORKSPACE_WRAPPER). So our code has the coverage that libFuzzer reads, and libraries
# are those that the tests have built already. The flags are those of cargo-fuzz, without a sanitizer.
case " $* " in
*" --crate-name build_script_build "*) exec "$@" ;;
esac
exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing
