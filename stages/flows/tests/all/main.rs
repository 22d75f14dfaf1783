//! The stage as a whole, from frames to records.
#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a helper that fails is a failed test"
)]

mod anomalies;
mod handshakes;
mod life;
mod parts;
