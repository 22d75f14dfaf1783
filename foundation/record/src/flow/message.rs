//! Heads of HTTP messages within a flow: what Tstat's `log_http_complete` has lines of.

use std::net::IpAddr;

/// Which half of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// From the client. Texts: method, host, path, `Referer`, `User-Agent`, `Cookie`, `DNT`, and the
    /// name of the server by DNS.
    Request,
    /// From the server. Texts: `Content-Length`, `Content-Type`, `Server`, `Content-Range`,
    /// `Location`, `Set-Cookie`, and two that are empty.
    Response,
}

/// The fixed part of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageRow {
    /// Request or response.
    pub kind: MessageKind,
    /// When its first packet was seen, nanoseconds since the epoch.
    pub time_ns: u64,
    /// Address and port of the client.
    pub client: (IpAddr, u16),
    /// Address and port of the server.
    pub server: (IpAddr, u16),
    /// Status code of a response; zero of a request.
    pub status: u16,
}

/// Texts of a message.
pub const MESSAGE_TEXTS: usize = 8;

/// A head, borrowed from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// The fixed part.
    pub row: &'a MessageRow,
    /// Its texts in the order of [`MessageKind`]; empty where there is none.
    pub texts: [&'a [u8]; MESSAGE_TEXTS],
}
