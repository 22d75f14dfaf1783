//! What reads the records and statistics: a broker, engines, a browser, a cluster.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a helper that fails is a failed test"
)]

#[path = "../common/mod.rs"]
mod common;

mod cluster;
mod console;
mod engines;
/// A real Kafka broker.
mod kafka {
    mod faults;
    mod live;
    mod probes;
    mod records;
    mod site;
    mod tls;
}
