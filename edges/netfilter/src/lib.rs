//! The kernel's packet queues, verdicts, and the rules that lead packets there.
#![forbid(unsafe_code)]

pub mod conntrack;
mod message;
pub mod queue;
pub mod reset;
pub mod rules;
pub mod stats;

pub use linkweir_sys::netlink::Waker;
pub use queue::{Queue, QueueCounts, QueueError, QueueOptions};
pub use reset::ResetSender;
