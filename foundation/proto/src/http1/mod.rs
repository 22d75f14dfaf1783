//! HTTP/1.x heads (RFC 9112): start lines, the few fields that a measurement needs, body lengths.
//!
//! A head is parsed where it lies, in one pass over its lines. [`classify`] decides in a few
//! nanoseconds whether a payload begins with a start line; [`parse_request`] and
//! [`parse_response`] read the head. Neither keeps state: a head that spans segments is gathered
//! by the caller and parsed again when it is whole.
//!
//! A caller that follows a connection byte by byte has more: [`SectionEnd`] finds the end of a head that is
//! cut, [`Fields`] gives every field, [`Framing`] decides how long a body is and tells
//! contradictions, [`ChunkedDecoder`] joins chunks.

mod body;
mod chunked;
mod content;
mod fields;
mod framing;
mod head;
mod lengths;
mod lines;
mod section;
mod start;

pub use body::{BodyLength, chunked_length, request_body, response_body};
pub use chunked::{ChunkFault, ChunkPiece, ChunkedDecoder};
pub use content::{
    disposition_name, disposition_names, parameter_value, path, percent_decoded, range_total,
    target_name, without_port,
};
pub use fields::{Field, Fields, byte_fault, head_fault};
pub use framing::{Framing, FramingFault, OtherCoding};
pub use head::{
    Outcome, RequestHead, ResponseHead, authority, parse_request, parse_response, unfold,
};
pub use section::SectionEnd;
pub use start::{Start, classify, empty_lines};

/// The longest head that is gathered and parsed, bytes: twice what any common server accepts, and
/// room for a URI of 60,000 characters.
pub const MAX_HEAD: usize = 64 * 1024;

/// The longest method token that is taken for one, bytes (`UPDATEREDIRECTREF` of RFC 4437 has 17).
pub const MAX_METHOD: usize = 23;

#[cfg(test)]
mod tests;
