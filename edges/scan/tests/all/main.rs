//! A real clamd, and a made one that misbehaves.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a helper that fails is a failed test"
)]

mod common;
mod fake;

mod clamd;
mod faults;
mod icap;
