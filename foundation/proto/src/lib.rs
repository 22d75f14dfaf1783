//! Layer 7 parsers: pure functions from payload bytes to what a protocol says.
//!
//! A protocol is a directory here. Parsers borrow from the payload, never allocate, never panic on
//! hostile bytes, and say "need more" as an outcome, not as an error.
#![forbid(unsafe_code)]

pub mod application;
pub mod bittorrent;
mod cut;
pub mod dns;
pub mod edonkey;
pub mod http1;
pub mod http2;
pub mod http3;
pub mod msn;
pub mod msnftp;
pub mod quic;
pub mod rtp;
pub mod tls;

pub use cut::Cut;
