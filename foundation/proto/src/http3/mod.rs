//! HTTP/3 as it is on its streams (RFC 9114): frames, and the fields of their sections.
//!
//! Who follows a connection of QUIC puts its streams in order; here are the parts, each from its bytes.

mod fixed;
pub mod frame;
pub mod qpack;
