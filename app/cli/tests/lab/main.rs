//! The scenarios of the laboratory.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper that fails is a failed test"
)]

#[path = "../common/mod.rs"]
mod common;

mod ends;
mod failover;
mod loss;
mod overload;
mod p2p;
mod web;
