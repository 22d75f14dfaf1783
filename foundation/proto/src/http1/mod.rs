//! HTTP/1.x heads (RFC 9112): start lines, the few fields that a measurement needs, body lengths.
//!
//! A head is parsed where it lies, in one pass over its lines. [`classify`] decides in a few
//! nanoseconds whether a payload begins with a start line; [`parse_request`] and
//! [`parse_response`] read the head. Neither keeps state: a head that spans segments is gathered
//! by the caller and parsed again when it is whole.

mod body;
mod head;
mod lines;
mod start;

pub use body::{BodyLength, chunked_length, request_body, response_body};
pub use head::{Outcome, RequestHead, ResponseHead, parse_request, parse_response};
pub use start::{Start, classify};

/// The longest head that is gathered and parsed, bytes: twice what any common server accepts, and
/// room for a URI of 60,000 characters.
pub const MAX_HEAD: usize = 64 * 1024;

/// The longest method token that is taken for one, bytes (`UPDATEREDIRECTREF` of RFC 4437 has 17).
pub const MAX_METHOD: usize = 23;

#[cfg(test)]
mod tests;
