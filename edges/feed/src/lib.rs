//! Frames distributed to consumers through rings in shared memory.
//!
//! ```text
//!                         ┌─► Producer ═ ring 0 ═ Consumer ─► stage
//! Source ─► Splitter ─► Feeder                                              threads or processes
//!                         └─► Producer ═ ring 1 ═ Consumer ─► stage
//! ```
//! The paper's packet feeder (Vega et al. 2017, sec. 2.1.4). [`ring`] joins two threads; a
//! [`Feeder`] distributes a source to the consumers of a named feed, which [`attach()`] by its name from other
//! processes. No system call, lock or allocation per packet.
#![forbid(unsafe_code)]

mod attach;
mod consumer;
mod feeder;
mod frame;
mod producer;
mod server;
mod socket;

pub use attach::{FeedSource, attach};
pub use consumer::Consumer;
pub use feeder::{ConsumerStatus, FeedError, Feeder, FeederOptions, Waiting, WhenFull};
pub use producer::{Producer, Refused, RingCounters};
pub use server::Presence;
pub use socket::{ConsumerName, check_name};

/// A ring of about `capacity` bytes between two threads: rounded up to a power of two from 64 KiB to
/// 1 GiB. `name` is how the consumer's faults call their input.
///
/// A frame takes its captured bytes and 24 more, rounded up to eight.
///
/// # Errors
/// Where the system gives no memory.
pub fn ring(capacity: usize, name: &str) -> std::io::Result<(Producer, Consumer)> {
    let producer = Producer::create(capacity)?;
    let consumer = Consumer::new(producer.reader()?, name.to_owned());
    Ok((producer, consumer))
}

#[cfg(test)]
mod tests;
