//! TLS as far as it is in clear: records, `ClientHello`, `ServerHello`, and the common name of the
//! first certificate (RFC 8446, RFC 5246; extensions RFC 6066, 7301, 5077, 9849).
//!
//! [`RecordHeader`] and [`MessageHeader`] frame the stream; the caller walks it. The hellos are
//! parsed where they lie. Of a message that is cut, what was read so far is given.

mod certificate;
mod hello;
pub(crate) mod reader;
mod record;

pub use certificate::certificate_name;
pub use hello::{Alpn, ClientHello, ServerHello, parse_client_hello, parse_server_hello};
pub use record::{ContentType, MessageHeader, RecordHeader, Ssl2Hello, message_type};

/// What became of an attempt to parse a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed<T> {
    /// The whole message.
    Complete(T),
    /// The bytes end before the message does: what was read so far.
    Partial(T),
    /// Not such a message.
    Not,
}

impl<T> Parsed<T> {
    /// What was read, whole or not.
    #[must_use]
    pub fn seen(self) -> Option<T> {
        match self {
            Self::Complete(value) | Self::Partial(value) => Some(value),
            Self::Not => None,
        }
    }
}

#[cfg(test)]
mod tests;
