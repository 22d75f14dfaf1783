//! What a transaction has beside its request and response where it is of HTTP/2, of TLS, estimated, or has header fields that
//! are kept.

use crate::place::Place;

/// Where a transaction was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Source {
    /// In bytes that anybody can read.
    #[default]
    Clear,
    /// In TLS, opened with the secrets of a key log.
    Keys,
    /// Nowhere: estimated from the lengths and the order of records of TLS.
    Estimate,
}

impl Source {
    /// The word in the `source` field.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Keys => "keys",
            Self::Estimate => "estimate",
        }
    }
}

/// How far an estimate is to be trusted; what is worse is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Confidence {
    /// No other explanation fits, unless a peer manipulates lengths.
    #[default]
    Exact,
    /// Another explanation fits, and is rare.
    Likely,
    /// Several explanations fit: no response time is given.
    CannotTell,
}

impl Confidence {
    /// The word in the `confidence` field.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Likely => "likely",
            Self::CannotTell => "cannot_tell",
        }
    }
}

/// What a call of gRPC has beside its request and response (`PROTOCOL-HTTP2.md` of gRPC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Grpc {
    /// Status from the trailers, or from the only header fields.
    pub status: Option<u32>,
    /// Messages of the client and of the server, and bytes of them, without the five in front of each; nothing of a
    /// side whose messages were lost sight of.
    pub messages: [Option<(u64, u64)>; 2],
    /// What the client gave the call: its timeout.
    pub timeout_ns: Option<u64>,
    /// From the request to the packet with the first byte of the server's first and last message.
    pub answered_ns: Option<[u64; 2]>,
}

/// What the events of a streamed response have come to: `text/event-stream`, lines of JSON, messages of WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Events {
    /// From the first packet of the request to the packet that completes the first event.
    pub first_ns: Option<u64>,
    /// Median, 99th percentile and maximum of the times between events, nanoseconds; nothing below two events.
    pub gaps_ns: Option<[u64; 3]>,
    /// Events.
    pub count: u32,
    /// Events that came with the packet that completed the one before.
    pub coalesced: u32,
    /// Gaps over 500 ms and over ten times the median gap.
    pub stalls: u32,
    /// Whether the events have waited for one another on their way; nothing where that cannot be said.
    pub is_buffered: Option<bool>,
}

/// What only a transaction of HTTP/2, one inside TLS, or a stream has. Few rows have it: it stands beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Web<'a> {
    /// Where it was read.
    pub source: Source,
    /// Of an estimate, how far it is to be trusted.
    pub confidence: Option<Confidence>,
    /// Whether empty texts may be unknown instead of absent: the connection was joined late, or bytes are lost.
    pub is_partial: bool,
    /// The stream.
    pub stream_id: Option<u32>,
    /// The version of TLS as on the wire; 0 without TLS.
    pub tls_version: u16,
    /// The server name that the client asked for.
    pub sni: &'a [u8],
    /// The protocol that the two ends chose in the handshake.
    pub alpn: &'a [u8],
    /// JA4 of the client: fingerprint of what it offers in its `ClientHello`.
    pub ja4: Option<[u8; 36]>,
    /// Where client and server are, where a database says it.
    pub places: [Place; 2],
    /// What a call of gRPC has.
    pub grpc: Option<Grpc>,
    /// What a stream of events has.
    pub events: Option<Events>,
    /// Header fields that are kept of the request and of the final response, by [`crate::header::push`].
    pub fields: [&'a [u8]; 2],
}

/// [`Web`] as a batch keeps it: its texts stand behind those of the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WebRow {
    pub(crate) web: Web<'static>,
    pub(crate) start: u32,
    /// Behind the server name, the protocol, and the header fields of request and response.
    pub(crate) ends: [u32; 4],
}

/// A [`WebRow`] and the texts of its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WebAt<'a> {
    pub(crate) row: &'a WebRow,
    pub(crate) arena: &'a [u8],
}

impl<'a> WebAt<'a> {
    fn text(&self, from: u32, to: u32) -> &'a [u8] {
        let text = self.arena.get(from as usize..to as usize);
        text.unwrap_or_default()
    }

    pub(crate) fn sni(&self) -> &'a [u8] {
        self.text(self.row.start, self.row.ends[0])
    }

    pub(crate) fn alpn(&self) -> &'a [u8] {
        self.text(self.row.ends[0], self.row.ends[1])
    }

    pub(crate) fn fields(&self) -> [&'a [u8]; 2] {
        let [_, from, between, to] = self.row.ends;
        [self.text(from, between), self.text(between, to)]
    }
}
