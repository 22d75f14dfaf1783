//! The passive commands on an interface.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper that fails is a failed test"
)]

#[path = "../common/mod.rs"]
mod common;

mod flows;
mod http;
mod lines;
mod privileges;
mod streams;
mod traffic;
