//! Commands on interfaces, in network namespaces of their own.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper that fails is a failed test"
)]

#[path = "../common/mod.rs"]
mod common;

mod gateway;
mod load;
