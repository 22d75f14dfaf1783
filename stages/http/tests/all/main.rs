//! Several shards, extracted halves and uneven traffic against one stage that sees all.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a helper that fails is a failed test"
)]

#[allow(dead_code, reason = "the tests of the program read the rest")]
mod common;

mod even;
mod halves;
mod handoffs;
mod parts;
#[path = "../../src/tests/random.rs"]
mod random;
mod shards;
