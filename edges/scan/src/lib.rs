//! Virus scanning by clamd or an ICAP service, off the packet path.
//!
//! ```text
//! queue thread ─ ScanClient::submit ─► gathered ─ last chunk ─► ready ─► worker ─ INSTREAM ─► clamd
//!              ◄ take_reports ─ wake ◄───────────────────────────────────┘
//! ```
//! A [`Scanner`] has a few threads of its own, each with one connection; a [`ScanClient`] never waits
//! for any of them. clamd sees a scan only when its last chunk is there: it closes connections on
//! which nothing comes for long, and a file that passes by may take minutes.
//!
//! What can go wrong ends as [`ScanOutcome::Failed`](linkweir_engine::effect::ScanOutcome::Failed)
//! with a cause, at most [`ScannerOptions::timeout`] after the last chunk; the policy says what then
//! happens to the traffic. While clamd is known not to answer scans fail at once, and one thread asks
//! it again and again until it does.
//!
//! The protocol is that of clamd(8): `INSTREAM` within an `IDSESSION`, so that one connection serves
//! many scans. That takes 5 to 15 % more per second than a connection for each scan, the more the
//! shorter they are (`examples/throughput.rs` measures both).
//!
//! # Settings of clamd that matter
//! - `StreamMaxLength`: at least [`ScannerOptions::max_scan_bytes`].
//! - `MaxThreads`: at least [`ScannerOptions::connections`], of which one for each processor is enough.
//! - `TemporaryDirectory`: in memory (`/dev/shm`). clamd writes every stream to a file before it scans
//!   it, which costs a third of the rate with windows of 20 KiB.
#![forbid(unsafe_code)]

mod answered;
mod health;
mod icap;
mod link;
mod options;
mod queue;
mod reply;
mod scanner;
mod session;
mod shared;
mod status;
mod threads;

pub use options::{Address, AddressError, Protocol, ScannerOptions};
pub use scanner::ScanClient;
pub use scanner::{ScanStartError, Scanner};
pub use status::{FailureCause, Failures, ScannerStatus};
