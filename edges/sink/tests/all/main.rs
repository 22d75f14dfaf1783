//! Every format and carrier, read back.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a helper that fails is a failed test"
)]

mod collectors;
#[cfg(feature = "parquet")]
mod columnar;
mod files;
mod formats;
mod ipfix;
