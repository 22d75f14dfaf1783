//! The tree, the round-robin files and the archive, read back.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a helper that fails is a failed test"
)]

mod archive_kill;
mod rrd;
mod tstat;
