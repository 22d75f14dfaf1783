//! Frames to an interface and from it: sending in batches, receiving with the kernel's time stamps.
//!
//! A [`Port`] is an interface for as long as a run lasts. What it receives and how fast was measured;
//! `docs/decisions/0012-frames-to-and-from-an-interface.md` has the table.

#![forbid(unsafe_code)]

mod filter;
mod options;
pub mod plan;
mod port;
mod receiver;
mod sender;

pub use linkweir_sys::ingress::Unwanted;
pub use options::PortError;
pub use options::{PortOptions, SenderKind};
pub use port::{Port, PortCounts};
pub use receiver::{Checksum, ReceivedFrame};
pub use sender::Sent;
