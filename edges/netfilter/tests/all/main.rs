//! The kernel's queues, and the rules that lead packets there.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a helper that fails is a failed test"
)]

mod kernel;
mod rules;
