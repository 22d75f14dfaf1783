//! QUIC as far as anybody on the path can read it: long headers, and the `ClientHello` in the
//! client's Initial packets (RFC 9000, RFC 9001; version 2 RFC 9369; drafts 22 to 34; Google's
//! versions before it).
//!
//! Initial packets are encrypted with keys that follow from the connection id in them, so that they
//! are no secret. [`LongHeader::parse`] decides cheaply whether a datagram can be QUIC at all;
//! only then [`ClientInitials`] derives keys, decrypts and gathers what the client says.

mod client;
mod frame;
mod header;
mod keys;
mod stream;

pub use client::{ClientInitials, Progress, user_agent};
pub use client::{GoogleHello, parse_google_hello, public_version};
pub use frame::{Frame, Frames};
pub use header::{Kind, LongHeader, Version};
pub use keys::InitialKeys;
pub use stream::CryptoStream;

#[cfg(test)]
mod tests;
