//! What became of requests, pages and sessions: what [`session`](crate::session) tells and
//! [`measure`](crate::measure) counts.

use linkweir_wire::Timestamp;

use crate::seam::Client;

/// Why a session did not come to its end. Every session that fails has one cause: its first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Failure {
    /// A RST answered the SYN.
    Refused,
    /// No SYN ACK came.
    ConnectTimeout,
    /// The server reset the connection before the response was complete.
    Reset,
    /// The server ended its stream before the response was complete.
    ClosedEarly,
    /// A request was never acknowledged.
    SendTimeout,
    /// The response did not come, or not all of it, in the time that the script allows.
    ResponseTimeout,
    /// What came is no HTTP response.
    Malformed,
    /// More came than the response announced, or bytes that nobody asked for.
    WrongLength,
    /// All ports of the client are in use.
    NoPort,
    /// The most connections or sessions at a time were open.
    NoRoom,
    /// Nobody answered for the address of the server or the router (ARP, neighbour discovery).
    Unreachable,
    /// The run ended before the session did.
    RunEnded,
}

impl Failure {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Refused,
        Self::ConnectTimeout,
        Self::Reset,
        Self::ClosedEarly,
        Self::SendTimeout,
        Self::ResponseTimeout,
        Self::Malformed,
        Self::WrongLength,
        Self::NoPort,
        Self::NoRoom,
        Self::Unreachable,
        Self::RunEnded,
    ];

    /// The word in records, summaries and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::ConnectTimeout => "connect_timeout",
            Self::Reset => "reset",
            Self::ClosedEarly => "closed_early",
            Self::SendTimeout => "send_timeout",
            Self::ResponseTimeout => "response_timeout",
            Self::Malformed => "malformed",
            Self::WrongLength => "wrong_length",
            Self::NoPort => "no_port",
            Self::NoRoom => "no_room",
            Self::Unreachable => "unreachable",
            Self::RunEnded => "run_ended",
        }
    }
}

/// A request and what came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Number of the session, from 0 on in the order of the schedule.
    pub session: u64,
    /// Its client.
    pub client: Client,
    /// Whether the request was for a page, not for an object in one.
    pub is_page: bool,
    /// When the script wanted it sent: that of the first request is the planned begin of the session,
    /// so that waiting for the generator or the handshake counts (no coordinated omission).
    pub intended: Timestamp,
    /// When its first byte was sent; `None` where it never was.
    pub sent: Option<Timestamp>,
    /// When the first segment of the final response arrived.
    pub first_byte: Option<Timestamp>,
    /// When its last segment arrived; `None` where it is not complete.
    pub last_byte: Option<Timestamp>,
    /// Status code of the final response; 0 where there is none.
    pub status: u16,
    /// Bytes of the request.
    pub request_bytes: u64,
    /// Bytes of the response that came, head and body as they stood on the wire.
    pub response_bytes: u64,
    /// Why it is not complete.
    pub failure: Option<Failure>,
}

/// A session that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionEnd {
    /// Number of the session, from 0 on in the order of the schedule.
    pub session: u64,
    /// Its client.
    pub client: Client,
    /// When the schedule wanted it.
    pub planned: Timestamp,
    /// When its first SYN was sent.
    pub started: Option<Timestamp>,
    /// When it was over.
    pub ended: Timestamp,
    /// Pages that were complete, with all their objects.
    pub pages: u32,
    /// Requests that were sent.
    pub requests: u32,
    /// Complete responses.
    pub responses: u32,
    /// Connections that were opened.
    pub connections: u32,
    /// Bytes of requests.
    pub request_bytes: u64,
    /// Bytes of responses.
    pub response_bytes: u64,
    /// Status code of the last complete response; 0 where there is none.
    pub last_status: u16,
    /// Complete responses by class: 1xx to 5xx.
    pub statuses: [u32; 5],
    /// Why it failed; `None` where it did all that its script says.
    pub failure: Option<Failure>,
}

/// Takes what became of everything.
pub trait Observer {
    /// A session began: its first SYN was handed to the sender.
    fn on_start(&mut self, client: Client, planned: Timestamp, started: Timestamp);
    /// A connection was made.
    fn on_connect(&mut self, client: Client, handshake_ns: u64, syn_retransmissions: u32);
    /// A request is over; `target` is its request target, `local_port` the port of its connection.
    fn on_exchange(&mut self, exchange: &Exchange, target: &[u8], local_port: u16);
    /// A page with all its objects is complete.
    fn on_page(&mut self, client: Client, intended: Timestamp, ended: Timestamp);
    /// A session is over. Every session of the schedule comes here once.
    fn on_session(&mut self, end: &SessionEnd);
}
