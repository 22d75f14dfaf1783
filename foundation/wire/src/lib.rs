//! Layers 2 to 4: frames, packets, segments, sequence arithmetic, checksums and emit.
#![forbid(unsafe_code)]

pub mod link_type;
pub mod time;

pub use link_type::LinkType;
pub use time::Timestamp;
