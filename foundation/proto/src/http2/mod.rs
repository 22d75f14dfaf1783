//! HTTP/2 as it is on the wire (RFC 9113): the preface, frames, and the fields of header blocks.
//!
//! A connection is followed by whoever keeps its bytes in order; here are the parts, each from its bytes.

pub mod direction;
pub mod frame;
pub mod hpack;

/// What a client sends first (RFC 9113 sec. 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
