//! TLS as far as it is in clear: records, `ClientHello`, `ServerHello`, and the common name of the
//! first certificate (RFC 8446, RFC 5246; extensions RFC 6066, 7301, 5077, 9849).
//!
//! [`RecordHeader`] and [`MessageHeader`] frame the stream; the caller walks it. The hellos are
//! parsed where they lie. Of a message that is cut, what was read so far is given.

mod certificate;
mod hello;
mod ja4;
pub(crate) mod reader;

pub use certificate::{certificate_dns_names, certificate_name, first_certificate};
pub use hello::{
    Alpn, ClientHello, ServerHello, client_random, parse_client_hello, parse_encrypted_extensions,
    parse_server_hello,
};
pub use ja4::{Carrier, JA4_BYTES, Ja4};

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

// What frames the stream: records and the handshake messages in them.

/// What a record carries (RFC 8446 sec. 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum ContentType {
    /// The sender encrypts what follows; of TLS 1.3 without meaning.
    ChangeCipherSpec = 20,
    /// A warning, or the end.
    Alert = 21,
    /// Handshake messages, or pieces of them.
    Handshake = 22,
    /// Application data; of TLS 1.3 everything that is encrypted.
    #[default]
    ApplicationData = 23,
    /// Heartbeat (RFC 6520).
    Heartbeat = 24,
}

impl ContentType {
    /// The content with this number.
    #[inline]
    #[must_use]
    pub const fn of(number: u8) -> Option<Self> {
        match number {
            20 => Some(Self::ChangeCipherSpec),
            21 => Some(Self::Alert),
            22 => Some(Self::Handshake),
            23 => Some(Self::ApplicationData),
            24 => Some(Self::Heartbeat),
            _ => None,
        }
    }
}

/// The header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader {
    /// What follows.
    pub content: ContentType,
    /// Legacy version, as on the wire (`0x0301`).
    pub version: u16,
    /// Bytes that follow.
    pub len: u16,
}

impl RecordHeader {
    /// Bytes of a header.
    pub const LEN: usize = 5;

    /// The most bytes that a record has: 2^14 and 2,048 of expansion (RFC 5246 sec. 6.2.3).
    pub const MAX_LEN: u16 = (1 << 14) + 2048;

    /// Reads a header; `None` where it is none: unknown content, version or length.
    #[inline]
    #[must_use]
    pub const fn parse(bytes: [u8; Self::LEN]) -> Option<Self> {
        let [content, major, minor, high, low] = bytes;
        let Some(content) = ContentType::of(content) else {
            return None;
        };
        let len = u16::from_be_bytes([high, low]);
        if major != 3 || minor > 4 || len > Self::MAX_LEN {
            return None;
        }
        Some(Self {
            content,
            version: u16::from_be_bytes([major, minor]),
            len,
        })
    }
}

/// Numbers of handshake messages (RFC 8446 sec. 4, RFC 5246 sec. 7.4).
pub mod message_type {
    /// The client's offer.
    pub const CLIENT_HELLO: u8 = 1;
    /// The server's choice.
    pub const SERVER_HELLO: u8 = 2;
    /// A ticket for a later session.
    pub const NEW_SESSION_TICKET: u8 = 4;
    /// TLS 1.3: the client has sent what it sends before it has an answer.
    pub const END_OF_EARLY_DATA: u8 = 5;
    /// TLS 1.3: what the server adds to its hello.
    pub const ENCRYPTED_EXTENSIONS: u8 = 8;
    /// Certificates.
    pub const CERTIFICATE: u8 = 11;
    /// The server's part of the key exchange.
    pub const SERVER_KEY_EXCHANGE: u8 = 12;
    /// The end of the server's part.
    pub const SERVER_HELLO_DONE: u8 = 14;
    /// The client's part of the key exchange.
    pub const CLIENT_KEY_EXCHANGE: u8 = 16;
    /// The end of the handshake.
    pub const FINISHED: u8 = 20;
    /// TLS 1.3: its sender goes on with new keys.
    pub const KEY_UPDATE: u8 = 24;
}

/// The header of a handshake message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageHeader {
    /// One of [`message_type`].
    pub kind: u8,
    /// Bytes that follow.
    pub len: u32,
}

impl MessageHeader {
    /// Bytes of a header.
    pub const LEN: usize = 4;

    /// Reads a header.
    #[inline]
    #[must_use]
    pub const fn parse(bytes: [u8; Self::LEN]) -> Self {
        let [kind, a, b, c] = bytes;
        Self {
            kind,
            len: u32::from_be_bytes([0, a, b, c]),
        }
    }
}

/// The hello of SSL 2, with which old clients also offer SSL 3 and TLS (RFC 5246 appendix E.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ssl2Hello {
    /// Highest version offered; `0x0200` of SSL 2 itself.
    pub version: u16,
    /// Bytes of the record, with its header of two.
    pub len: u16,
}

impl Ssl2Hello {
    /// Reads the first bytes of a stream; `None` where they are none.
    #[must_use]
    pub const fn parse(bytes: [u8; RecordHeader::LEN]) -> Option<Self> {
        let [high, low, 1, major, minor] = bytes else {
            return None;
        };
        let version = match (major, minor) {
            (0, 2) => 0x0200,
            (3, 0..=4) => u16::from_be_bytes([major, minor]),
            _ => return None,
        };
        let len = u16::from_be_bytes([high & 0x7f, low]) + 2;
        // Three lengths and a challenge of 16 bytes at least.
        if high & 0x80 == 0 || len < 27 {
            return None;
        }
        Some(Self { version, len })
    }
}

#[cfg(test)]
mod tests;
