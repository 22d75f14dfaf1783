//! HTTP transactions without TCP reassembly.
//!
//! The method of HTTPanalyzer (Vega et al. 2017): only segments that begin with a start line are
//! looked at, and a response belongs to the request whose acknowledgment number is the response's
//! sequence number (`key`). The table of halves that wait for one another (`pending`) is the
//! only state; there is none per connection.
//!
//! What is added, still by local knowledge only:
//! heads that span segments and messages that begin inside one (`watch`), pipelined requests
//! (the sequence number of the next response is computed from head and body length), interim
//! responses, retransmissions told from new messages, and time to last byte (`body`). Only connections on
//! which requests wait behind one another are read in order (`follow`).
//!
//! Of responses that are streams the events are found (`events`), on connections that have one only.
//! Transactions of TLS without keys are estimated from the lengths and the order of records (`estimate`).
//!
//! ```text
//! frame ─ decode ─► segment ─ classify ─► head ─► pending table ─► record
//!                      └── watched flow? ─► gather, go on
//! ```
#![forbid(unsafe_code)]

mod body;
mod chosen;
mod config;
mod emit;
mod estimate;
mod events;
pub mod extract;
mod halves;
mod handoff;
mod key;
mod matcher;
mod payload;
mod pending;
mod reach;
mod records;
mod seen;
mod segment;
mod split;
mod stage;
mod stats;
mod trips;
mod watch;
mod web;

pub use config::{HttpConfig, PortSet, Shard};
pub use events::StreamStats;
pub use extract::frames::HalfFrames;
pub use extract::{HalfCounts, HalfStage, HalvesConfig};
pub use handoff::Handoff;
pub use payload::PayloadSample;
pub use split::{Balance, EvenConnections, GroupCounts, GroupsConfig, TransactionGroups};
pub use stage::HttpStage;
pub use stats::HttpStats;

#[cfg(test)]
mod tests;
