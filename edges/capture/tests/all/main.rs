//! Captures of every format, damaged ones, and live interfaces.
#![allow(
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a helper that fails is a failed test"
)]

mod common;
mod netns;

mod damage;
mod formats;
mod inputs;
mod live;
